"""What several rules share: Ray versions, and YAML inside a field."""

from __future__ import annotations

from kuberay_op.api.problems import show
from kuberay_op.api.versions import Version, parse_version


def version_problem(version: str, since: Version) -> str:
    """What is wrong with a rayVersion for a feature that came with ``since``; empty when nothing is."""
    if not version:
        return "rayVersion is not set"
    try:
        parsed = parse_version(version)
    except ValueError:
        return f"rayVersion {show(version)} is not a version such as 2.56.0"
    return f"rayVersion is {show(version)}" if parsed < since else ""


def yaml_mapping_problem(text: str) -> str:
    """What keeps ``text`` from being YAML with a mapping (or nothing) in it; empty when nothing does.

    The text may hold secrets, so the answer names lines, never content.
    """
    from kuberay_op.api import yamltext  # late: most objects have no YAML inside

    try:
        root = yamltext.first_document(text)
    except yamltext.YamlTextError as error:
        return f"is not YAML: {error}"
    if root is None or yamltext.is_null(root) or yamltext.is_mapping(root):
        return ""
    return "must be YAML with a mapping in it, such as working_dir: /app"
