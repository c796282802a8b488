"""A request to the API server as a value, and how each verb makes one."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from kuberay_op.kube.errors import DeadlineExceeded, Unreachable
from kuberay_op.kube.resource import Key, Object, Resource

#: Bytes from which an answer counts as large.
LARGE: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Request:
    """One request, as often as it is sent. ``doing`` names it in errors: ``"get pods default/a"``."""

    method: str
    path: str
    doing: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    #: More headers; the server's own credentials go before one of the same name.
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Whether somebody behind the server answers (its proxy): an error status is an answer then, and the
    #: parameters are not the server's to read.
    passed_on: bool = False

    def decoded(self, body: bytes) -> Object:
        """The object in the answer to this request."""
        # A list makes tens of thousands of dicts and no garbage; looking for some would double the time.
        resting = len(body) > LARGE and gc.isenabled()
        if resting:
            gc.disable()
        try:
            answer: Any = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise Unreachable(f"{self.doing}: the API server's answer is not JSON") from error
        finally:
            if resting:
                gc.enable()
        if not isinstance(answer, dict):
            raise Unreachable(f"{self.doing}: the API server's answer is not an object")
        return answer

    def late(self, seconds: float) -> DeadlineExceeded:
        """The error for an answer that did not come in time."""
        return DeadlineExceeded(f"{self.doing}: no answer from the API server within {seconds:g} s")


def on_object(
    method: str,
    verb: str,
    resource: Resource,
    namespace: str | None,
    name: str,
    *,
    subresource: str | None = None,
    params: Mapping[str, str] | None = None,
    body: Any = None,
    content_type: str = "application/json",
) -> Request:
    """A request about one object."""
    what = f"{resource}/{subresource}" if subresource else str(resource)
    return Request(
        method,
        resource.path(namespace, name, subresource),
        f"{verb} {what} {Key(namespace or '', name)}",
        params or {},
        None if body is None else orjson.dumps(body),
        content_type,
    )


def on_collection(
    method: str,
    verb: str,
    resource: Resource,
    namespace: str | None,
    *,
    name: str = "",
    params: Mapping[str, str] | None = None,
    body: Any = None,
) -> Request:
    """A request about all objects of a resource, or to make one; ``name`` is for the text of errors."""
    where = str(Key(namespace or "", name)) if name else f"in {namespace or 'all namespaces'}"
    return Request(
        method,
        resource.path(namespace),
        f"{verb} {resource} {where}",
        params or {},
        None if body is None else orjson.dumps(body),
    )


def selectors(label_selector: str | None, field_selector: str | None) -> dict[str, str]:
    """The query parameters of selectors, as far as there are any."""
    both = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {name: value for name, value in both.items() if value}


def delete_options(
    *,
    uid: str | None = None,
    resource_version: str | None = None,
    propagation: str | None = None,
    grace: int | None = None,
) -> Object:
    """The body of a delete."""
    options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
    wanted = {"uid": uid, "resourceVersion": resource_version}
    preconditions = {name: value for name, value in wanted.items() if value}
    if preconditions:
        options["preconditions"] = preconditions
    if propagation:
        options["propagationPolicy"] = propagation
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    return options
