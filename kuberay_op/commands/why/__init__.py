"""``kuberay-op why``: what stands between an object and being ready, asked with the caller's own rights.

A kind is a module with a function ``examine(look, name) -> Answer`` and a line in :data:`KINDS`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from kuberay_op.commands.why.answer import Answer

#: The module of each kind, imported when it is asked for.
KINDS: Final[Mapping[str, str]] = {
    "raycluster": "kuberay_op.commands.why.raycluster",
    "rayjob": "kuberay_op.commands.why.rayjob",
}

#: Exit code for an object that is not ready.
NOT_READY: Final = 3


@click.command()
@click.argument("kind", type=click.Choice(list(KINDS), case_sensitive=False))
@click.argument("name")
@click.option("-n", "--namespace", help="Namespace of the object; that of the context when not given.")
@click.option("--kubeconfig", help="Kubeconfig file; otherwise KUBECONFIG, in-cluster, or ~/.kube/config.")
@click.option("--context", help="Context in the kubeconfig.")
@click.option(
    "--operator-namespace",
    help="Namespace of the operator's Lease; without it, Leases in all namespaces are looked at.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the print.",
)
def why(
    kind: str,
    name: str,
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    operator_namespace: str | None,
    output: str,
) -> None:
    """Say what stands between an object and being ready, the most important first.

    Looks at the object, its Pods, volume claims and events, and at the operator's Lease, with your own
    rights; what you may not see is named. Each line is followed by a command that shows more. For a RayJob
    the end of its log is shown.

    Exit codes: 0 ready (a RayJob: running or complete), 1 it could not be found out, 2 wrong use, 3 not.
    """
    answer = asyncio.run(_ask(kind, name, namespace, kubeconfig, context, operator_namespace))
    click.echo(answer.as_json() if output == "json" else answer.as_text())
    if not answer.ready:
        raise SystemExit(NOT_READY)


async def _ask(
    kind: str,
    name: str,
    namespace: str | None,
    kubeconfig: str | None,
    context: str | None,
    operator_namespace: str | None,
) -> Answer:
    # Late: none of this is needed to show help.
    from kuberay_op import __version__
    from kuberay_op.commands.why.look import DEADLINE, Look
    from kuberay_op.kube.client import Client

    async with await Client.connect(
        kubeconfig, context=context, user_agent=f"kuberay-op-why/{__version__}", deadline=DEADLINE
    ) as client:
        look = Look(client, namespace or client.namespace, operator_namespace)
        answer: Answer = await import_module(KINDS[kind]).examine(look, name)
        return answer
