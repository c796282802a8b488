"""``kuberay-op rbac``: the exact role that the operator needs with these plugins."""

from __future__ import annotations

from pathlib import Path

import click

from kuberay_op.commands.flags import split


@click.command()
@click.option("--plugins", default="", help="Plugins to enable, separated by commas.")
@click.option("--batch-scheduler", default="", help="Batch scheduler, as in the operator's configuration.")
@click.option("--without", default="", help="Default plugins to leave out, separated by commas.")
@click.option("--feature-gates", default="", help="Gates, such as RayCronJob=true.")
@click.option(
    "--plugin-folder",
    "folders",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of YAML plugins; may be given several times.",
)
@click.option("--webhook", is_flag=True, help="Add what the webhook needs to make its own certificates.")
@click.option("--name", default="kuberay-operator", show_default=True, help="Name of the ClusterRole.")
@click.option("--namespace", default="", help="Namespace of the operator, for the Role of leader election.")
@click.option("--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def rbac(
    plugins: str,
    batch_scheduler: str,
    without: str,
    feature_gates: str,
    folders: tuple[Path, ...],
    webhook: bool,
    name: str,
    namespace: str,
    output: str,
) -> None:
    """Print what the operator may do with exactly these plugins, ready for `kubectl apply -f -`.

    A ClusterRole, and Roles in the operator's own namespace for leader election and, if asked for, the
    webhook. Exit codes: 0 printed, 1 these plugins cannot be loaded.
    """
    # Late: none of this is needed to show help.
    from kuberay_op.commands.output import show
    from kuberay_op.config import Config
    from kuberay_op.loader.choose import Wanted
    from kuberay_op.loader.gates import known_gates
    from kuberay_op.loader.load import load_plugins
    from kuberay_op.rbac import cluster_role, leader_role, webhook_role, webhook_rules

    enabled = dict.fromkeys(split(plugins), True) | dict.fromkeys(split(without), False)
    wanted = Wanted(enabled=enabled, batch_scheduler=batch_scheduler)
    gates = known_gates(folders).with_overrides(feature_gates)
    loaded = load_plugins(wanted, gates, folders=folders, complete=False)
    config = Config()
    more = webhook_rules(split(config.webhook_configurations)) if webhook else ()
    roles = [cluster_role(name, loaded.hooks.rbac_rules(), gates, more), leader_role(name, namespace)]
    if webhook:
        roles.append(webhook_role(name, config.webhook_secret_name, namespace))
    show({"apiVersion": "v1", "kind": "List", "items": roles}, output)
