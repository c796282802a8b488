"""Writing the CRDs to a cluster, and removing them: ``kuberay-op crds --apply`` and ``--delete``.

The chart's Job does this at install and upgrade: Helm itself installs CRDs once and never touches them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from kuberay_op import __version__
from kuberay_op.api.crds import crd
from kuberay_op.errors import OperatorError
from kuberay_op.kube.client import Client, PatchKind
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.resource import CUSTOM_RESOURCE_DEFINITIONS

#: On a CRD: the version of kuberay-op that wrote it. The newest of several on a cluster has its way.
WRITER: Final = "kuberay-op/version"

#: Seconds for one request (a CRD has a megabyte), and until the API server serves a kind.
REQUEST_SECONDS: Final = 60.0
SERVED_SECONDS: Final = 60.0

Say = Callable[[str], None]


async def apply_crds(client: Client, kinds: Sequence[str], say: Say) -> None:
    """Write the CRDs by server-side apply, whoever made them, and wait until they are served."""
    for kind in kinds:
        definition = crd(kind)
        name = definition["metadata"]["name"]
        found = await _find(client, name)
        theirs = _notes(found).get(WRITER, "")
        if newer(theirs, __version__):
            say(f"{name}: kept, it is of version {theirs} and this is {__version__}")
            continue
        definition["metadata"]["annotations"] = {**_notes(definition), WRITER: __version__}
        written = await client.patch(
            CUSTOM_RESOURCE_DEFINITIONS,
            name,
            None,
            definition,
            kind=PatchKind.APPLY,
            field_manager="kuberay-op",
            force=True,
            reason=f"the CRD of {kind} in version {__version__}",
            deadline=REQUEST_SECONDS,
        )
        await _served(client, name)
        say(f"{name}: {_outcome(found, written)}")


async def delete_crds(client: Client, kinds: Sequence[str], say: Say) -> None:
    """Delete the CRDs, and with them all objects of these kinds; does not wait for those to go."""
    for kind in kinds:
        name = crd(kind)["metadata"]["name"]
        try:
            await client.delete(
                CUSTOM_RESOURCE_DEFINITIONS, name, None, reason="asked for", deadline=REQUEST_SECONDS
            )
            say(f"{name}: deleted")
        except NotFound:
            say(f"{name}: was not there")


def newer(version: str, than: str) -> bool:
    """Whether a version is later than another; what is not a version is not. Pure."""
    return _numbers(version) > _numbers(than)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def _notes(definition: Any) -> dict[str, str]:
    return dict((definition or {}).get("metadata", {}).get("annotations") or {})


def _outcome(before: Any, after: Any) -> str:
    if before is None:
        return "created"
    same = before["metadata"]["generation"] == after["metadata"]["generation"]
    return "unchanged" if same else "updated"


async def _find(client: Client, name: str) -> Any:
    try:
        return await client.get(CUSTOM_RESOURCE_DEFINITIONS, name, deadline=REQUEST_SECONDS)
    except NotFound:
        return None


async def _served(client: Client, name: str) -> None:
    try:
        async with asyncio.timeout(SERVED_SECONDS):
            while not _established(await _find(client, name)):  # noqa: ASYNC110 (the answer is on the server)
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise OperatorError(
            f"{name} was written but is not served after {SERVED_SECONDS:.0f} s; "
            f"see: kubectl describe crd {name}"
        ) from None


def _established(definition: Any) -> bool:
    conditions = ((definition or {}).get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
