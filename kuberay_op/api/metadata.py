"""What the API server checks in ``metadata`` beyond types: names, labels, annotations and owners."""

from __future__ import annotations

from typing import Final

from kuberay_op.api.formats import dns1123_subdomain_problem, label_value_problem, qualified_name_problem
from kuberay_op.api.meta import Metadata, OwnerReference
from kuberay_op.api.problems import Problem

#: Bytes that all annotations of an object may have together.
MAX_ANNOTATIONS: Final = 256 * 1024


def metadata_problems(metadata: Metadata) -> list[Problem]:
    """All that the API server has against the metadata of an object that is to be created."""
    return [*_names(metadata), *_labels(metadata), *_annotations(metadata), *_lists(metadata)]


def _names(metadata: Metadata) -> list[Problem]:
    prefix = metadata.generate_name
    if not metadata.name and not prefix:
        return [Problem(("metadata", "name"), "is required")]
    # The server adds letters to a prefix, so that may end with a dash.
    checks = {"name": metadata.name, "generateName": prefix.rstrip("-") if prefix.endswith("-") else prefix}
    return [
        Problem(("metadata", key), problem, text)
        for key, text in checks.items()
        if text and (problem := dns1123_subdomain_problem(text))
    ]


def _labels(metadata: Metadata) -> list[Problem]:
    found: list[Problem] = []
    for key, value in metadata.labels.items():
        if problem := qualified_name_problem(key):
            found.append(Problem(("metadata", "labels", key), f"the key {problem}", key))
        if problem := label_value_problem(value):
            found.append(Problem(("metadata", "labels", key), f"the value {problem}", value))
    return found


def _annotations(metadata: Metadata) -> list[Problem]:
    path = ("metadata", "annotations")
    found = [
        Problem((*path, key), f"the key {problem}", key)
        for key in metadata.annotations
        if (problem := qualified_name_problem(key.lower()))  # capitals are allowed in the prefix here
    ]
    size = sum(len(key.encode()) + len(value.encode()) for key, value in metadata.annotations.items())
    if size > MAX_ANNOTATIONS:
        found.append(Problem(path, f"must have at most {MAX_ANNOTATIONS} bytes together, not {size}"))
    return found


def _lists(metadata: Metadata) -> list[Problem]:
    found = [
        Problem(("metadata", "finalizers", index), problem, name)
        for index, name in enumerate(metadata.finalizers)
        if (problem := qualified_name_problem(name))
    ]
    owners: list[OwnerReference] = []
    for owner in metadata.owner_references:
        if owner.controller and owner not in owners:  # the server merges equal ones
            owners.append(owner)
    if len(owners) > 1:
        found.append(
            Problem(("metadata", "ownerReferences"), "must have at most one entry with controller: true")
        )
    return found
