"""``kuberay-op rbac``: the exact role that the operator needs with these plugins."""

from __future__ import annotations

from pathlib import Path

import click


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
@click.option("--name", default="kuberay-operator", show_default=True, help="Name of the ClusterRole.")
@click.option("--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def rbac(
    plugins: str,
    batch_scheduler: str,
    without: str,
    feature_gates: str,
    folders: tuple[Path, ...],
    name: str,
    output: str,
) -> None:
    """Print the ClusterRole for the operator with exactly these plugins, ready for `kubectl apply -f -`."""
    # Late: none of this is needed to show help.
    from kuberay_op.commands.output import show
    from kuberay_op.features import Gates
    from kuberay_op.loader.choose import Wanted
    from kuberay_op.loader.load import load_plugins
    from kuberay_op.rbac import cluster_role

    enabled = dict.fromkeys(_names(plugins), True) | dict.fromkeys(_names(without), False)
    wanted = Wanted(enabled=enabled, batch_scheduler=batch_scheduler)
    loaded = load_plugins(wanted, Gates.default().with_overrides(feature_gates), folders=folders)
    show(cluster_role(name, loaded.hooks.rbac_rules()), output)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
