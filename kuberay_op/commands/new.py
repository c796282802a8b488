"""``kuberay-op new``: a small manifest to start from, with a word on every choice."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

import click

from kuberay_op.api.crds import VERSIONS, find_kind, nearest_kind
from kuberay_op.api.formats import dns1035_label_problem
from kuberay_op.api.names import MAX_NAME
from kuberay_op.api.versions import parse_version

#: The Ray version of a manifest when none is asked for.
RAY_VERSION: Final = "2.52.0"


@click.command()
@click.argument("kind", metavar="|".join(kind.lower() for kind in VERSIONS))
@click.argument("name", required=False)
@click.option(
    "--ray-version", default=RAY_VERSION, show_default=True, help="Version of Ray, also of the image."
)
def new(kind: str, name: str | None, ray_version: str) -> None:
    """Print a small, commented manifest of a kind, ready for "kubectl apply".

    For example: kuberay-op new raycluster trial | kubectl apply -f -

    Exit codes: 0 all is well, 2 wrong use.
    """
    found = find_kind(kind)
    if found is None:
        raise click.UsageError(nearest_kind(kind))
    click.echo(manifest(found, name or found.lower(), ray_version), nl=False)


def manifest(kind: str, name: str, ray_version: str = RAY_VERSION) -> str:
    """The manifest as text; the name must be one that the operator will accept."""
    if problem := dns1035_label_problem(name):
        raise click.UsageError(f"the name {problem}")
    if len(name) > MAX_NAME[kind]:
        raise click.UsageError(
            f"the name {name!r} has {len(name)} characters; a {kind} may have at most {MAX_NAME[kind]}"
        )
    try:
        parse_version(ray_version)
    except ValueError as error:
        raise click.UsageError(f"--ray-version: {error}") from error
    template = files("kuberay_op.commands").joinpath("manifests", f"{kind.lower()}.yaml")
    text = template.read_text(encoding="utf-8")
    return text.replace("$NAME", name).replace("$RAY_VERSION", ray_version)
