"""``kuberay-op crds``: print the CRDs, write them to files or a cluster, or check files against them."""

from __future__ import annotations

import asyncio
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
@click.option("--apply", "action", flag_value="apply", help="Write them to the cluster; a newer one stays.")
@click.option(
    "--delete",
    "action",
    flag_value="delete",
    help="Delete them from the cluster, with all objects of theirs.",
)
@click.option(
    "--kubeconfig", default="", help="Kubeconfig for --apply and --delete; as for `run` when empty."
)
def crds(
    kinds: tuple[str, ...],
    output_dir: Path | None,
    check_dir: Path | None,
    output: str,
    action: str | None,
    kubeconfig: str,
) -> None:
    """Print the CustomResourceDefinitions, of all kinds or of those named.

    They are too large for a client-side "kubectl apply"; install them with --apply, or with

        kuberay-op crds | kubectl apply --server-side -f -

    Exit codes: 0 all is well, 1 a file differs (--check) or the cluster refuses, 2 wrong use.
    """
    if sum(map(bool, (output_dir, check_dir, action))) > 1:
        raise click.UsageError("give only one of --output-dir, --check, --apply and --delete")
    chosen = [_kind(name) for name in kinds] or list(VERSIONS)
    if action:
        asyncio.run(_act(action, chosen, kubeconfig))
    elif check_dir:
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


async def _act(action: str, kinds: list[str], kubeconfig: str) -> None:
    # Late: whoever only prints needs no client.
    from kuberay_op.commands.crds_apply import apply_crds, delete_crds
    from kuberay_op.kube.client import Client

    async with await Client.connect(kubeconfig or None) as client:
        await (apply_crds if action == "apply" else delete_crds)(client, kinds, click.echo)
