"""Which fields of an object its plugin wants, remembered on the object itself.

Fields that somebody else has put on an object stay. To tell those from fields that the plugin wanted once and
does not want any more, an annotation lists the plugin's own: names only, never values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from kuberay_op.api.annotations import FIELDS
from kuberay_op.plan.actions import Manifest

#: Not looked at: what says what the object is, and another way to write a field of a Secret.
_NOT_FIELDS: Final = frozenset({"apiVersion", "kind", "stringData"})

#: What makes the object the one it is; it never changes.
_IDENTITY: Final = frozenset({"name", "namespace", "ownerReferences"})


def with_fields(obj: Manifest) -> Manifest:
    """The object with a list of its own fields on it."""
    metadata = obj["metadata"]
    own = {
        **{key: value for key, value in obj.items() if key not in _NOT_FIELDS},
        "metadata": {key: value for key, value in metadata.items() if key not in _IDENTITY},
    }
    if texts := obj.get("stringData"):  # the server keeps it there
        own["data"] = {**(obj.get("data") or {}), **texts}
    text = orjson.dumps(_names(own), option=orjson.OPT_SORT_KEYS).decode()
    marks = {**(metadata.get("annotations") or {}), FIELDS: text}
    return {**obj, "metadata": {**metadata, "annotations": marks}}


def fields_of(obj: Manifest) -> Manifest:
    """The fields that were listed on an object; none when nobody did, or what is there makes no sense."""
    text = (obj.get("metadata", {}).get("annotations") or {}).get(FIELDS)
    try:
        names = _names(orjson.loads(text)) if text else {}
    except orjson.JSONDecodeError:
        names = {}
    return {key: value for key, value in names.items() if key not in _NOT_FIELDS} if names else {}


def padded(obj: Manifest, fields: Manifest) -> Manifest:
    """The object with an empty map for each that was wanted and is not any more.

    So a map goes key by key, and what others have put into it stays.
    """
    result = dict(obj)
    for name, below in fields.items():
        if isinstance(below, Mapping) and isinstance(obj.get(name, {}), Mapping):
            result[name] = padded(obj.get(name, {}), below)
    return result


def _names(value: Any) -> Any:
    """Names of fields, without what they hold; lists count as a whole."""
    return {str(key): _names(item) for key, item in value.items()} if isinstance(value, Mapping) else 0
