"""Defaults of the schema, applied as the API server does when an object is created."""

from __future__ import annotations

import copy
from typing import Any

from kuberay_op.api.crds import schema_of, view_of
from kuberay_op.api.view import Json


def with_defaults(obj: Json) -> Json:
    """A new object with the defaults of its kind; ``obj`` is not changed.

    A null counts as "not set", as on the server: it gives way to the default, or goes if there is none.
    Unknown fields stay; it is the server that drops them. An object of another kind comes back as a copy.
    """
    view = view_of(str(obj.get("apiVersion")), str(obj.get("kind")))
    if view is None:
        return copy.deepcopy(obj)
    result: Json = _defaulted(obj, schema_of(view))
    return result


def _defaulted(value: Any, schema: Json | None) -> Any:
    if schema is None:
        return copy.deepcopy(value)
    if isinstance(value, dict):
        properties: Json = schema.get("properties", {})
        result = {}
        for key, entry in value.items():
            inner = properties.get(key, schema.get("additionalProperties"))
            if entry is None and inner is not None and not inner.get("nullable"):
                continue
            result[key] = _defaulted(entry, inner)
        for key, inner in properties.items():
            if "default" in inner and key not in result:
                result[key] = copy.deepcopy(inner["default"])
        return result
    if isinstance(value, list | tuple):
        return [_defaulted(entry, schema.get("items")) for entry in value]
    return value
