"""Warnings that hold for every kind: deprecated versions and fields, and objects that are not ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kuberay_op.api.fields import Nested, NestedList
from kuberay_op.api.meta import CustomResource
from kuberay_op.api.names import CONTROLLER
from kuberay_op.api.problems import Path, Problem, show
from kuberay_op.api.validation.rules import Check, Finding, Findings, run, warning
from kuberay_op.api.view import View


@dataclass(frozen=True, slots=True)
class CommonSubject:
    """A whole object."""

    obj: CustomResource
    at: Path = ()


@warning("warning.version", "The apiVersion is ray.io/v1.")
def version(subject: CommonSubject) -> Findings:
    """An older version drops the fields it does not know."""
    api_version = subject.obj.api_version
    if api_version == "ray.io/v1alpha1":
        text = "ray.io/v1alpha1 is deprecated and drops every newer field; use ray.io/v1"
        yield Finding("apiVersion", text, api_version)


@warning("warning.deprecated", "No deprecated field is used.")
def deprecated(subject: CommonSubject) -> Findings:
    """The views know which those are."""
    yield from _deprecated(subject.obj, ())


def _deprecated(view: View, at: Path) -> Findings:
    for field in view.fields().values():
        if field.json == "status" or view.raw.get(field.json) is None:
            continue
        path = (*at, field.json)
        if field.deprecated:
            yield Finding(path, f"is deprecated: {field.deprecated}")
        value: Any = view.raw[field.json]
        if isinstance(field, Nested):
            yield from _deprecated(field.read(value), path)
        elif isinstance(field, NestedList):
            for index, entry in enumerate(field.read(value)):
                yield from _deprecated(entry, (*path, index))


@warning("warning.managed-by", "managedBy leaves the object to this operator.")
def managed_by(subject: CommonSubject) -> Findings:
    """An object of another controller is not touched."""
    spec = subject.obj.raw.get("spec")
    manager = spec.get("managedBy") if isinstance(spec, Mapping) else None
    if manager is not None and manager != CONTROLLER:
        yield Finding(
            "spec.managedBy", f"is {show(manager)}: this operator will not touch the object", manager
        )


RULES: Final[tuple[Check[CommonSubject], ...]] = (version, deprecated, managed_by)


def check(subject: CommonSubject) -> Iterator[Problem]:
    """All warnings that hold for every kind."""
    yield from run(RULES, subject)
