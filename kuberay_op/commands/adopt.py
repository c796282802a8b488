"""``kuberay-op adopt``: whether this operator can take over from KubeRay without anybody noticing."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Final

import click

from kuberay_op.commands.previews.setting import operator_options

#: Exit code when taking over would change something.
CHANGES: Final = 2


@click.command()
@operator_options
@click.option("--check", is_flag=True, required=True, help="Only look; nothing is written anywhere.")
@click.option("-n", "--namespace", "namespaces", multiple=True, help="Only here; otherwise everywhere.")
@click.option("--kubeconfig", help="Kubeconfig file; otherwise KUBECONFIG, in-cluster, or ~/.kube/config.")
@click.option("--context", help="Context in the kubeconfig.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def adopt(
    check: bool,
    namespaces: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    output: str,
    **settings: Any,
) -> None:
    """Tell beforehand what would change if this operator took over from the one that runs now.

    Every RayCluster and RayJob is read with your own rights, and planned for as this operator would with the
    configuration and plugins that are named. Give those that the other operator has.

    Exit codes: 0 nothing would change, 1 it cannot be told, 2 something would change.
    """
    # Late: none of this is needed to show help.
    from datetime import UTC, datetime

    from kuberay_op.commands.output import show
    from kuberay_op.commands.previews.live import everything
    from kuberay_op.commands.previews.setting import load
    from kuberay_op.commands.previews.show import Shown
    from kuberay_op.controllers.preview import Previewer

    setting = load(**settings)
    there = asyncio.run(everything(setting, namespaces, kubeconfig=kubeconfig, context=context))
    more: dict[str, Any] = {"missing": there.missing, "routes": there.routes}
    previewer = Previewer(setting.config, setting.plugins.hooks, now=datetime.now(UTC), **more)
    previews = {
        f"{owner['kind']} {owner['metadata']['namespace']}/{owner['metadata']['name']}": previewer.of(
            owner, children
        )
        for owner, children in there.owners
    }
    changed = {name: preview for name, preview in previews.items() if preview.planned or preview.refused}
    shown = Shown(setting.secrets)
    if output == "json":
        show(shown.as_json(previews), output)
    else:
        if changed:
            click.echo(shown.as_text(changed), color=False if "NO_COLOR" in os.environ else None)
            click.echo()
        click.echo(
            f"{len(previews)} objects: {len(changed)} would change, {len(previews) - len(changed)} would not"
        )
    if changed:
        raise SystemExit(CHANGES)
