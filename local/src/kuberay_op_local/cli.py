"""The command ``kuberay-op local``: thin, the work is done elsewhere in this package."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

import click

from kuberay_op_local import binaries, components, versions
from kuberay_op_local.cluster import DEFAULT_NAME, Cluster, Status
from kuberay_op_local.errors import LocalError
from kuberay_op_local.images import recipes
from kuberay_op_local.images.build import Image
from kuberay_op_local.images.build import build as build_image
from kuberay_op_local.operator import install
from kuberay_op_local.real import objects, packages
from kuberay_op_local.real.node import require

#: How often ``logs --follow`` looks for more.
FOLLOW_SECONDS = 0.2


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
versioned = click.option(
    "--kubernetes", metavar="VERSION", help=f"Kubernetes version; {versions.KUBERNETES} when not given."
)
from_folder = click.option(
    "--binaries",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"A folder with programs to use instead of ours (also: {binaries.FOLDER}).",
)


def sourced(command: Callable[..., None]) -> Callable[..., None]:
    """The options of commands that build images."""
    for option in (
        click.option("--tag", help="The tag of the image; not given: its version."),
        click.option(
            "--arg",
            "arguments",
            metavar="KEY=VALUE",
            multiple=True,
            help="A build argument: RAY_VERSION of ray, PLUGINS of operator.",
        ),
        click.option(
            "--source",
            type=click.Path(file_okay=False, exists=True, path_type=Path),
            help="A checkout of kuberay-op; not given: the one this command runs in.",
        ),
    ):
        command = option(command)
    return command


_passed_on = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.group(cls=_Group)
def local() -> None:
    """Run a real Kubernetes on this machine, without Docker and, but for real nodes, without root.

    Exit codes: 0 done, 1 failed (with the reason on stderr), 2 wrong usage, 130 interrupted.
    """


@local.command()
@named
@click.option(
    "--node",
    metavar="kwok:COUNT|real|none",
    help="Nodes: COUNT played by kwok, a real one (needs root), or none. "
    "Not given: as they are, none for a new cluster.",
)
@versioned
@click.option(
    "--port", type=click.IntRange(1, 65535), help="Port of the API server; a free one if not given."
)
@from_folder
@click.option(
    "--small-requests/--full-requests",
    default=None,
    help="Whether Pods on a real node are scheduled as if they asked for little. "
    f"Not given: on a machine with fewer than {objects.ENOUGH_CORES} cores.",
)
def up(
    name: str,
    node: str | None,
    kubernetes: str | None,
    port: int | None,
    folder: Path | None,
    small_requests: bool | None,
) -> None:
    """Bring a cluster up; on one that is up, change its nodes or do nothing."""
    cluster = Cluster.up(
        name,
        node=node,
        kubernetes=kubernetes,
        port=port,
        folder=folder,
        small_requests=small_requests,
        say=say,
    )
    say(f'talk to it with: eval "$(kuberay-op local env --name {cluster.name})"')


@local.command()
@named
def down(name: str) -> None:
    """Remove a cluster, its processes and its files."""
    say(f"cluster {name!r} is gone" if Cluster(name).down(say) else f"there is no cluster {name!r}")


@local.command()
@named
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def status(name: str, output: str) -> None:
    """Say how a cluster is; the exit code is 0 only when all of it works."""
    found = Cluster(name).status()
    click.echo(json.dumps(found.as_dict(), indent=2) if output == "json" else status_text(found))
    if found.state != "running":
        sentence = f"cluster {name!r} is {found.state}"
        lost = [part for part, facts in (found.components or {}).items() if not facts["running"]]
        if lost:
            sentence += f": {', '.join(lost)} not running"
        raise LocalError(f"{sentence}; `kuberay-op local up --name {name}` brings it up")


def status_text(found: Status) -> str:
    """A cluster's status for people."""
    if found.components is None:
        return f"cluster {found.name}: {found.state}"
    lines = [
        f"cluster {found.name}: {found.state}, Kubernetes {found.kubernetes}, nodes {found.nodes}",
        f"server {found.server}",
        f"kubeconfig {found.kubeconfig}",
    ]
    for part, facts in found.components.items():
        state = "ready" if facts["ready"] else "not ready" if facts["running"] else "not running"
        lines.append(f"  {part:<24} {facts['pid'] or '-':>8}  {state}")
    return "\n".join(lines)


@local.command()
@named
def env(name: str) -> None:
    """Print the shell line that points kubectl and helm at the cluster."""
    cluster = Cluster(name)
    _ = cluster.spec  # it must exist
    click.echo(f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}")


@local.command(context_settings=_passed_on)
@named
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubectl(name: str, arguments: tuple[str, ...]) -> None:
    """Run kubectl on a cluster: everything after --name is for kubectl."""
    _become("kubectl", name, arguments)


@local.command(context_settings=_passed_on)
@named
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def helm(name: str, arguments: tuple[str, ...]) -> None:
    """Run helm on a cluster: everything after --name is for helm."""
    _become("helm", name, arguments)


def _become(tool: str, name: str, arguments: tuple[str, ...]) -> NoReturn:
    cluster = Cluster(name)
    spec = cluster.spec
    program = spec.programs.get(tool) or str(
        binaries.resolve([tool], kubernetes=spec.kubernetes, folder=None, say=say)[tool]
    )
    try:
        os.execve(program, [tool, *arguments], cluster.environment())  # noqa: S606 - it takes our place
    except OSError as error:
        raise LocalError(f"{program} cannot be started: {error.strerror}") from error


@local.command(context_settings=_passed_on)
@named
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def operator(name: str, flags: tuple[str, ...]) -> None:
    """Install the CRDs and start our operator on a cluster; FLAGS are those of `kuberay-op run`.

    It runs beside the cluster's components: `logs operator` shows its log, `down` ends it. Calling this again
    starts it anew.
    """
    cluster = Cluster(name)
    _ = cluster.spec  # it must exist
    install(cluster, flags, say=say)


@local.command()
@click.argument("image")
@sourced
@click.option("--fresh", is_flag=True, help="Build from nothing, bare Debian included.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def build(
    image: str, source: Path | None, arguments: tuple[str, ...], tag: str | None, fresh: bool, output: str
) -> None:
    """Build one of the project's images (base, ray, redis, operator, submitter), without Docker, as root.

    The archive it names can be given to `load`, `docker load` and `ctr images import`. Nothing is built
    when nothing has changed.
    """
    made = _build(image, source, arguments, tag, fresh=fresh)
    if output == "json":
        click.echo(json.dumps(asdict(made), indent=2))
    else:
        click.echo(f"{made.name} {made.id} {made.archive}")


@local.command()
@named
@click.argument("image", required=False)
@click.option("--build", "recipe", metavar="NAME", help="Build this image of the project and load it.")
@sourced
def load(
    name: str,
    image: str | None,
    recipe: str | None,
    source: Path | None,
    arguments: tuple[str, ...],
    tag: str | None,
) -> None:
    """Give the real node an image: an archive, one from a registry, or one of the project's with --build."""
    cluster = Cluster(name)
    if (image is None) == (recipe is None):
        raise click.UsageError("give an IMAGE (an archive or a name) or --build NAME, one of them")
    if recipe is not None:
        cluster.check_real()
        image = _build(recipe, source, arguments, tag).archive
    for loaded in cluster.load(str(image)):
        say(f"cluster {name!r} has the image {loaded}")


def _build(
    image: str, source: Path | None, arguments: tuple[str, ...], tag: str | None, *, fresh: bool = False
) -> Image:
    given = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals:
            raise click.UsageError(f"--arg {argument!r} is not KEY=VALUE")
        given[key] = value
    checkout = recipes.checkout((source or Path.cwd()).absolute())
    return build_image(image, source=checkout, given=given, tag=tag, fresh=fresh, say=say)


@local.command()
@named
@click.argument("component")
@click.option("--follow", "-f", is_flag=True, help="Go on until Ctrl-C.")
def logs(name: str, component: str, follow: bool) -> None:
    """Print a log: of etcd, kube-apiserver, kubelet, operator or another component."""
    cluster = Cluster(name)
    known = (*cluster.spec.components, components.OPERATOR)
    if component not in known:
        raise LocalError(f"there is no component {component!r}; there are {', '.join(known)}")
    try:
        file = cluster.layout.log(component).open(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise LocalError(f"{component} has not been started in cluster {name!r}, so it has no log") from None
    with file:
        while True:
            for line in file:
                sys.stdout.write(line)
            sys.stdout.flush()
            if not follow:
                return
            time.sleep(FOLLOW_SECONDS)


@local.command()
@versioned
@click.option("--node", type=click.Choice(["kwok", "real"]), default="kwok", show_default=True)
def setup(kubernetes: str | None, node: str) -> None:
    """Fetch or build all programs, so that later commands start at once.

    With --node real, as root, also those of a real node, and the Debian packages that it and images need.
    """
    if node == "real":
        require(say)
        packages.ensure(packages.FOR_IMAGES, say=say)
    version = versions.check_kubernetes(kubernetes or versions.KUBERNETES)
    tools = (*versions.ALL_TOOLS, *(versions.NODE_TOOLS if node == "real" else ()))
    found = binaries.resolve(tools, kubernetes=version, folder=None, say=say)
    say(f"all programs are in {found['kube-apiserver'].parent} and {found['kwok'].parent}")


@local.command()
@click.argument("tool", type=click.Choice((*versions.ALL_TOOLS, *versions.NODE_TOOLS)))
@versioned
@from_folder
def path(tool: str, kubernetes: str | None, folder: Path | None) -> None:
    """Print the path of a program; fetches or builds it first when it is not there."""
    version = versions.check_kubernetes(kubernetes or versions.KUBERNETES)
    click.echo(binaries.resolve([tool], kubernetes=version, folder=folder, say=say)[tool])
