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
        if found is not None and holds(found["spec"], definition["spec"]):
            # Writing a megabyte that is there already would keep the API server busy for seconds.
            if theirs != __version__:
                await _mark(client, name)
            say(f"{name}: unchanged")
            continue
        definition["metadata"]["annotations"] = {**_notes(definition), WRITER: __version__}
        await client.patch(
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
        say(f"{name}: {'created' if found is None else 'updated'}")


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


def holds(found: Any, wanted: Any) -> bool:
    """Whether all that is wanted is there; what the server added does not matter. Pure."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            name in found and holds(found[name], value) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(holds, found, wanted))
    return bool(found == wanted)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def _notes(definition: Any) -> dict[str, str]:
    return dict((definition or {}).get("metadata", {}).get("annotations") or {})


async def _mark(client: Client, name: str) -> None:
    await client.patch(
        CUSTOM_RESOURCE_DEFINITIONS,
        name,
        None,
        {"metadata": {"annotations": {WRITER: __version__}}},
        field_manager="kuberay-op",
        reason="the CRD is as this version has it",
        deadline=REQUEST_SECONDS,
    )


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
