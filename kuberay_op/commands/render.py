"""``kuberay-op render``: the objects that the operator would make, as plain manifests."""

from __future__ import annotations

from typing import Any

import click

from kuberay_op.commands.previews.setting import options


@click.command()
@options
@click.option("--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def render(filenames: tuple[str, ...], namespace: str, output: str, **settings: Any) -> None:
    """Print the objects that the operator would make of new RayClusters, RayJobs and RayCronJobs.

    For people who want to see or check them: other tools can read them, but it is the operator that should
    make them. Names of Pods end where the server adds to them; secrets are hidden.

    Exit codes: 0 printed, 1 it cannot be told or is refused.
    """
    # Late: none of this is needed to show help.
    from datetime import UTC, datetime

    import yaml

    from kuberay_op.commands.output import show
    from kuberay_op.commands.previews.setting import load, read_owners
    from kuberay_op.commands.previews.show import Shown
    from kuberay_op.controllers.preview import Previewer
    from kuberay_op.errors import Invalid

    setting = load(**settings)
    previewer = Previewer(setting.config, setting.plugins.hooks, now=datetime.now(UTC))
    shown = Shown(setting.secrets)
    made = []
    for owner in read_owners(filenames, namespace):
        preview = previewer.of(owner)
        if preview.refused:
            raise Invalid("; ".join(shown.clean(preview.refused)))
        made += [shown.manifest(planned.action.obj) for planned in preview.planned]
    if output == "json":
        show({"apiVersion": "v1", "kind": "List", "items": made}, output)
    else:
        click.echo(yaml.safe_dump_all(made, sort_keys=False, default_flow_style=False), nl=False)
