"""The command ``kuberay-op local``: thin, all work is in ``cluster``."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import click

from kuberay_op_local.cluster import DEFAULT_NAME, Cluster
from kuberay_op_local.errors import LocalError


class _Group(click.Group):
    """Turns our errors into click's: one text on stderr and exit code 1."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except LocalError as error:
            raise click.ClickException(str(error)) from error


def say(text: str) -> None:
    """Progress goes to stderr, so that stdout can be piped."""
    click.echo(text, err=True)


named = click.option("--name", default=DEFAULT_NAME, show_default=True, help="Which cluster.")


@click.group(cls=_Group)
def local() -> None:
    """Run a real Kubernetes on this machine, without Docker and without root."""


@local.command()
@named
@click.option("--node", metavar="kwok:COUNT|none", help="Nodes of the cluster.")
@click.option("--kubernetes", metavar="VERSION")
@click.option("--port", type=click.IntRange(1, 65535))
@click.option("--binaries", type=click.Path(file_okay=False, path_type=Path))
def up(name: str, node: str | None, kubernetes: str | None, port: int | None, binaries: Path | None) -> None:
    """Bring a cluster up; does nothing when it is."""
    Cluster.up(name, node=node, kubernetes=kubernetes, port=port, folder=binaries, say=say)


@local.command()
@named
def down(name: str) -> None:
    """Remove a cluster, its processes and its files."""
    say(f"cluster {name!r} is gone" if Cluster(name).down() else f"there is no cluster {name!r}")


@local.command()
@named
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
def status(name: str, output: str) -> None:
    """Say how a cluster is."""
    click.echo(json.dumps(Cluster(name).status().as_dict(), indent=2))


@local.command()
@named
def env(name: str) -> None:
    """Print the shell line that points kubectl at the cluster."""
    cluster = Cluster(name)
    _ = cluster.spec
    click.echo(f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}")


@local.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@named
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubectl(name: str, arguments: tuple[str, ...]) -> None:
    """Run kubectl on a cluster."""
    cluster = Cluster(name)
    program = cluster.spec.programs["kubectl"]
    os.execve(program, [program, *arguments], cluster.environment())  # noqa: S606 - kubectl takes our place
