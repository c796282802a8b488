"""Rules about names, one pair per kind: the length leaves room for what the operator appends."""

from __future__ import annotations

from typing import Final

from kuberay_op.api.formats import dns1035_label_problem
from kuberay_op.api.names import MAX_NAME
from kuberay_op.api.validation.rules import Check, Finding, Findings, rule
from kuberay_op.api.validation.subjects import ObjectSubject


def _name(subject: ObjectSubject) -> str:
    """The name, or for an object that leaves it to the API server one of the kind that it would make."""
    metadata = subject.obj.metadata
    if not metadata.name and metadata.generate_name:
        return f"{metadata.generate_name}bcdfg"
    return metadata.name


def name_length(rule_id: str, kind: str) -> Check[ObjectSubject]:
    """The rule about the length of a name."""
    limit = MAX_NAME[kind]

    @rule(rule_id, f"The name of a {kind} has at most {limit} characters.")
    def check(subject: ObjectSubject) -> Findings:
        name = _name(subject)
        if len(name) > limit:
            text = f"has {len(name)} characters; a {kind} may have {limit}, the rest is for generated names"
            yield Finding("metadata.name", text, name)

    return check


def name_form(rule_id: str, kind: str) -> Check[ObjectSubject]:
    """The rule about the characters of a name."""

    @rule(rule_id, f"The name of a {kind} is a DNS label that starts with a letter.")
    def check(subject: ObjectSubject) -> Findings:
        name = _name(subject)
        if not name:
            yield Finding("metadata.name", "must be set")
        elif problem := dns1035_label_problem(name):
            yield Finding("metadata.name", problem, name)

    return check


RAYCLUSTER: Final = (
    name_length("raycluster.metadata.1", "RayCluster"),
    name_form("raycluster.metadata.2", "RayCluster"),
)
RAYJOB: Final = (name_length("rayjob.metadata.1", "RayJob"), name_form("rayjob.metadata.2", "RayJob"))
RAYSERVICE: Final = (
    name_length("rayservice.metadata.1", "RayService"),
    name_form("rayservice.metadata.2", "RayService"),
)
RAYCRONJOB: Final = (name_length("raycronjob.spec.1", "RayCronJob"),)
