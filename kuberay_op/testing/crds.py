"""CRDs, ours and others', on a control plane for tests."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from typing import Any, Final

import httpx

from kuberay_op.api.crds import VERSIONS, crd
from kuberay_op.testing.controlplane import ControlPlane

PATH: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#: Tells which text a CRD was made from, so that it is written once however many workers ask for it.
DIGEST: Final = "testing.kuberay-op/digest"
SECONDS: Final = 120.0


def install_crds(plane: ControlPlane, kinds: Iterable[str] = tuple(VERSIONS)) -> None:
    """Put our CRDs on a control plane, over others if there are any, and wait until they are served."""
    install(plane, [crd(kind) for kind in kinds])


def install(plane: ControlPlane, definitions: Iterable[dict[str, Any]]) -> None:
    """Put any CRDs on a control plane, and wait until they are served."""
    chosen = list(definitions)
    for definition in chosen:
        _write(plane, definition)
    deadline = time.monotonic() + SECONDS
    for definition in chosen:
        name = definition["metadata"]["name"]
        while not _established(plane, f"{PATH}/{name}"):
            if time.monotonic() > deadline:
                raise AssertionError(f"the CRD {name} was not served within {SECONDS:.0f} s")
            time.sleep(0.05)


def _write(plane: ControlPlane, definition: dict[str, Any]) -> None:
    digest = hashlib.sha256(json.dumps(definition).encode()).hexdigest()[:16]
    notes = definition["metadata"].get("annotations") or {}
    metadata = {**definition["metadata"], "annotations": {**notes, DIGEST: digest}}
    address = f"{PATH}/{metadata['name']}"
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            current = plane.api("GET", address)["metadata"]
        except httpx.HTTPStatusError as error:
            _expect(error, httpx.codes.NOT_FOUND)
            current = {}
        if current.get("annotations", {}).get(DIGEST) == digest:
            return
        version = {"resourceVersion": current["resourceVersion"]} if current else {}
        body = {**definition, "metadata": {**metadata, **version}}
        try:
            plane.api("PUT" if current else "POST", address if current else PATH, body)
        except httpx.HTTPStatusError as error:
            _expect(error, httpx.codes.CONFLICT)  # another worker was quicker; look again
        except httpx.TimeoutException:
            continue  # a CRD this large takes a loaded server seconds; look again
    raise AssertionError(f"{metadata['name']} could not be written within {SECONDS:.0f} s")


def _expect(error: httpx.HTTPStatusError, code: int) -> None:
    if error.response.status_code != code:
        raise error


def _established(plane: ControlPlane, address: str) -> bool:
    conditions = plane.api("GET", address).get("status", {}).get("conditions") or ()  # null at first
    return any(entry["type"] == "Established" and entry["status"] == "True" for entry in conditions)
