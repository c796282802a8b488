"""Changing objects in tests by naming paths: ``changed(obj, {"spec.workerGroupSpecs.0.replicas": 3})``."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from kuberay_op.api.view import Json


def changed(obj: Json, changes: Mapping[str, Any]) -> Json:
    """A copy of ``obj`` with new values at some paths; None removes what is there.

    Steps are joined by dots and numbers are positions in lists. Objects on the way are made as needed, and
    the position after the last appends.
    """
    result = copy.deepcopy(obj)
    for path, value in changes.items():
        _put(result, [int(step) if step.isdigit() else step for step in path.split(".")], value)
    return result


def _put(target: Any, steps: list[str | int], value: Any) -> None:
    for step, following in pairwise(steps):
        _grow(target, step, [] if isinstance(following, int) else {})
        target = target[step]
    last = steps[-1]
    if value is None:
        target.pop(last, None) if isinstance(target, dict) else target.pop(last)
    else:
        _grow(target, last, value)
        target[last] = copy.deepcopy(value)


def _grow(target: Any, step: str | int, value: Any) -> None:
    """Make room for the step where there is none."""
    if isinstance(target, dict):
        target.setdefault(step, value)
    elif isinstance(step, int) and len(target) == step:
        target.append(value)
