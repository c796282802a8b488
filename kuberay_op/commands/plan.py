"""``kuberay-op plan``: what the operator would do, and which plugin is behind it."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Final

import click

from kuberay_op.commands.previews.setting import options

#: Exit code when something would be done.
CHANGES: Final = 2


class WrongUse(click.UsageError):
    """A mistake in the arguments."""

    exit_code = 1


class PlanCommand(click.Command):
    """A command for which 2 means something else than wrong use."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; wrong use ends with 1, as all that keeps a plan from being made."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise WrongUse(error.format_message(), ctx) from error


@click.command(cls=PlanCommand)
@options
@click.option("--live", is_flag=True, help="Compare with a cluster, read with your own rights.")
@click.option("--kubeconfig", help="Kubeconfig file; otherwise KUBECONFIG, in-cluster, or ~/.kube/config.")
@click.option("--context", help="Context in the kubeconfig.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def plan(
    filenames: tuple[str, ...],
    namespace: str,
    live: bool,
    kubeconfig: str | None,
    context: str | None,
    output: str,
    **settings: Any,
) -> None:
    """Show what the operator would do about RayClusters, RayJobs and RayCronJobs. Nothing is written.

    Every object that would be made, changed or deleted, as a diff, with the plugins and steps that asked for
    it or changed it. Offline the objects are taken for new; with --live they are compared with what is on a
    cluster. Hooks that ask the outside world (before_..., admit_gang, after_...) are not called.

    Exit codes: 0 nothing would be done, 1 it cannot be told or is refused, 2 something would be done.
    """
    # Late: none of this is needed to show help.
    from datetime import UTC, datetime

    from kuberay_op.commands.output import show
    from kuberay_op.commands.previews.setting import load, read_owners
    from kuberay_op.commands.previews.show import Shown
    from kuberay_op.controllers.preview import Previewer

    setting = load(**settings)
    owners: list[tuple[dict[str, Any], Any]] = [(owner, None) for owner in read_owners(filenames, namespace)]
    more: dict[str, Any] = {}
    if live:
        from kuberay_op.commands.previews.live import look  # late: the client is large

        there = asyncio.run(
            look(setting, [owner for owner, _ in owners], kubeconfig=kubeconfig, context=context)
        )
        owners, more = there.owners, {"missing": there.missing, "routes": there.routes}
    previewer = Previewer(setting.config, setting.plugins.hooks, now=datetime.now(UTC), **more)
    previews = {
        f"{owner['kind']} {owner['metadata']['namespace']}/{owner['metadata']['name']}": previewer.of(
            owner, children
        )
        for owner, children in owners
    }
    shown = Shown(setting.secrets)
    if output == "json":
        show(shown.as_json(previews), output)
    else:
        click.echo(shown.as_text(previews), color=False if "NO_COLOR" in os.environ else None)
    if any(preview.refused for preview in previews.values()):
        raise SystemExit(1)
    if any(preview.planned for preview in previews.values()):
        raise SystemExit(CHANGES)
