"""``kuberay-op crds``: print the CRDs, write them as files, or check files against them."""

from __future__ import annotations

import json
from pathlib import Path

import click

from kuberay_op.api.crds import VERSIONS, crd, crd_yaml, file_name, find_kind, nearest_kind


@click.command()
@click.argument("kinds", nargs=-1, metavar="[KIND]...")
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write one file per kind into this folder instead.",
)
@click.option(
    "--check",
    "check_dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Write nothing; fail unless the files in this folder are what would be written.",
)
@click.option(
    "--output",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="Form of the print.",
)
def crds(kinds: tuple[str, ...], output_dir: Path | None, check_dir: Path | None, output: str) -> None:
    """Print the CustomResourceDefinitions, of all kinds or of those named.

    They are too large for a client-side "kubectl apply"; install them with

        kuberay-op crds | kubectl apply --server-side -f -

    Exit codes: 0 all is well, 1 a file differs (--check), 2 wrong use.
    """
    if output_dir and check_dir:
        raise click.UsageError("give either --output-dir or --check, not both")
    chosen = [_kind(name) for name in kinds] or list(VERSIONS)
    if check_dir:
        _check(chosen, check_dir)
    elif output_dir:
        output_dir.mkdir(parents=True, exist_ok=True)
        for kind in chosen:
            path = output_dir / file_name(kind)
            path.write_text(crd_yaml(kind), encoding="utf-8")
            click.echo(path)
    elif output == "json":
        click.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": [crd(kind) for kind in chosen]}))
    else:
        click.echo("---\n".join(crd_yaml(kind) for kind in chosen), nl=False)


def _kind(name: str) -> str:
    kind = find_kind(name)
    if kind is None:
        raise click.UsageError(nearest_kind(name))
    return kind


def _check(kinds: list[str], folder: Path) -> None:
    wrong = 0
    for kind in kinds:
        path = folder / file_name(kind)
        if not path.exists():
            problem = "is missing"
        elif path.read_text(encoding="utf-8") != crd_yaml(kind):
            problem = "differs"
        else:
            continue
        wrong += 1
        click.echo(f"{path} {problem}; write it with: kuberay-op crds --output-dir {folder}", err=True)
    if wrong:
        raise click.exceptions.Exit(1)
    click.echo(f"{folder}: up to date")
