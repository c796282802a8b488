"""Checks what plugins answer, and copies it: what is not as the contract says is the plugin's mistake.

All of this runs where the plugin's code may run, since an answer can be a generator.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

import orjson

from kuberay_op.api import finalizers
from kuberay_op.api.problems import Problem
from kuberay_op.errors import OperatorError
from kuberay_op.hooks.patches import BadPatch, JsonPatch, Made, Manifest, Merge, Patch
from kuberay_op.hooks.verdicts import Done, Refuse, Verdict, Wait

T = TypeVar("T")

#: Things one answer may hold; a plugin that yields more is broken, not generous.
MOST_ITEMS: Final = 200

#: Bytes of one object or patch; the API server takes little more.
MOST_BYTES: Final = 1_000_000

#: What the API server takes for the part of a finalizer behind the slash.
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


#: The reason of an event, or none; and what becomes part of one.
_WORD: Final = re.compile(r"([A-Z][A-Za-z]{0,99})?")
_WORDS: Final = re.compile(r"[A-Za-z ]{0,80}")


class Rubbish(OperatorError):
    """An answer of the wrong kind."""


def items(value: Any) -> list[Any]:
    """The things in an answer that may be a list or a generator; refuses text and endless streams.

    Runs a generator, so it must be called where the plugin's code may run.
    """
    if isinstance(value, str | bytes | Mapping):
        raise Rubbish(f"a list was expected, not {type(value).__name__}")
    try:
        stream = iter(value)
    except TypeError:
        raise Rubbish(f"a list was expected, not {type(value).__name__}") from None
    found = []
    for item in stream:
        found.append(item)
        if len(found) > MOST_ITEMS:
            raise Rubbish(f"more than {MOST_ITEMS} items")
    return found


def of(kind: type[T]) -> Callable[[Any], T]:
    """A check that the answer is of this class."""

    def check(value: Any) -> T:
        if not isinstance(value, kind):
            raise Rubbish(f"{kind.__name__} was expected, not {type(value).__name__}")
        return value

    return check


def plain(value: Any) -> Any:
    """A copy of what must be JSON, so that the plugin cannot change it later."""
    try:
        text = orjson.dumps(value)
    except TypeError as error:
        raise Rubbish(f"plain JSON was expected: {error}") from None
    if len(text) > MOST_BYTES:
        raise Rubbish(f"an object or patch may have {MOST_BYTES} bytes, this has {len(text)}")
    return orjson.loads(text)


def manifest(value: Any) -> Manifest:
    """An object that can be made: JSON with apiVersion, kind and a name."""
    obj = plain(value)
    if not isinstance(obj, dict) or not obj.get("kind") or not obj.get("apiVersion"):
        raise Rubbish("an object with apiVersion and kind was expected")
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise Rubbish(f"a {obj['kind']} without metadata.name; the core finds an object by its name")
    return obj


def made(value: Any) -> Made:
    """An object that can be made, with the step that asked for it if the plugin says."""
    if isinstance(value, Made):
        releases = tuple(of(str)(each) for each in items(value.releases))
        return Made(manifest(value.obj), str(value.step), bool(value.replace), releases)
    return Made(manifest(value))


def patches(answer: Any) -> list[Patch]:
    """One patch or several, as a list."""
    return [_patch(patch) for patch in ([answer] if isinstance(answer, Merge | JsonPatch) else items(answer))]


def _patch(patch: Any) -> Patch:
    if isinstance(patch, Merge):
        return replace(patch, patch=plain(patch.patch))
    if isinstance(patch, JsonPatch):
        return replace(patch, operations=plain(patch.operations))
    raise Rubbish(f"a Merge or a JsonPatch was expected, not {type(patch).__name__}")


def only_spec(before: Manifest, after: Manifest) -> None:
    """Defaults are about what the user wants: the rest of the object is the server's and ours."""
    for key in {*before, *after} - {"spec"}:
        if before.get(key) != after.get(key):
            raise BadPatch(f"a default may change spec only, not {key}")


def finalizer(value: Any) -> str:
    """A finalizer of our domain."""
    if finalizer_mistake(value):
        raise Rubbish(finalizer_mistake(value))
    return str(value)


def finalizer_mistake(value: Any) -> str:
    """Why this cannot be a plugin's finalizer; "" if it can."""
    domain, slash, name = value.partition("/") if isinstance(value, str) else ("", "", "")
    if domain + slash == finalizers.OURS and _NAME.fullmatch(name):
        return ""
    return f"a finalizer must be {finalizers.OURS}NAME, not {str(value)[:100]!r}"


def problem(value: Any) -> Problem:
    """A mistake in an object that can be shown."""
    found = of(Problem)(value)
    str(found)  # now, where a failure is the plugin's
    return found


def verdict(value: Any) -> Verdict:
    """A verdict whose parts are what they should be."""
    if not isinstance(value, Done | Wait | Refuse):
        raise Rubbish(f"Done, Wait or Refuse was expected, not {type(value).__name__}")
    if not isinstance(value.reason, str):
        raise Rubbish(f"the reason of a verdict must be a text, not {type(value.reason).__name__}")
    if isinstance(value, Done) and not _WORD.fullmatch(str(value.event)):
        raise Rubbish(f"an event of a verdict must be one word, not {str(value.event)[:100]!r}")
    if isinstance(value, Wait):
        seconds = value.seconds
        if not _WORDS.fullmatch(str(value.called)):
            raise Rubbish(f"what objects are called must be plain words, not {str(value.called)[:100]!r}")
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
            raise Rubbish(f"Wait needs a number of seconds, not {seconds!r}")
        return replace(value, objects=tuple(manifest(obj) for obj in items(value.objects)))
    return value
