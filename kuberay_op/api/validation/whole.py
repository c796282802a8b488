"""All that can be said about an object as a user wrote it: its structure, the rules, and warnings."""

from __future__ import annotations

from typing import Any

from kuberay_op.api.defaults import with_defaults
from kuberay_op.api.predicates import GateQuery
from kuberay_op.api.problems import Path, Problem
from kuberay_op.api.schema import schema_problems
from kuberay_op.api.validation.entry import validate, warnings


def examine(obj: dict[str, Any], gates: GateQuery | None = None) -> list[Problem]:
    """Every error and warning about ``obj``, which may lack the defaults that the API server adds.

    Where the structure is wrong the rules about the same field are not asked: they would only say it again.
    """
    found = schema_problems(obj)
    wrong = {problem.path for problem in found}
    if ("apiVersion",) in wrong or ("kind",) in wrong:  # then nobody knows which rules there are
        return found
    full = with_defaults(obj)
    more = [*validate(full, gates), *warnings(full, gates)]
    found.extend(problem for problem in more if not _said(problem.path, wrong))
    return found


def _said(path: Path, wrong: set[Path]) -> bool:
    """Whether the field, or something it is part of, is known to be wrong."""
    return any(path[:length] in wrong for length in range(1, len(path) + 1))
