"""Writes ``values.schema.json`` and ``README.md`` of each chart, from its values and ``tools/chart_schemas``.

A value has the type of its default, and is described by the comment ``# -- …`` before it. A map whose keys
are described takes no other keys. The rest (types, ranges, parts of the CRDs) stands in the schema files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from kuberay_op.api.crds import crd

ROOT: Final = Path(__file__).parent.parent
CHARTS: Final = ("kuberay-operator", "ray-cluster")
KEY: Final = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z][\w-]*):")

Json = dict[str, Any]


@dataclass
class Value:
    """A key of values.yaml."""

    description: str
    default: Any
    children: dict[str, Value] = field(default_factory=dict)


def read_values(text: str) -> dict[str, Value]:
    """The keys of values.yaml, down to those that are described."""
    found: dict[str, Value] = {}
    defaults = yaml.safe_load(text)
    path: list[tuple[int, str]] = []
    comment = ""
    for line in text.splitlines():
        if line.strip().startswith("# --"):
            comment = line.strip().removeprefix("# --").strip()
            continue
        match = KEY.match(line)
        if match is None:
            continue
        indent = len(match["indent"])
        path = [(at, key) for at, key in path if at < indent]
        at: Any = defaults
        level: dict[str, Value] | None = found
        for _, name in path:
            at = at[name]
            # Inside a map that is described as a whole, nothing is described.
            level = None if level is None or level[name].description else level[name].children
        path.append((indent, match["key"]))
        if level is not None:
            level[match["key"]] = Value(comment, at[match["key"]])
        comment = ""
    return found


def schema_of(value: Value, path: str, more: Mapping[str, Json]) -> Json:
    """The schema of a value."""
    given = dict(more.get(path, {}))
    is_open = given.pop("open", False)
    if "crd" in given:
        given = closed(crd_part(given.pop("crd"))) | given
    if "$ref" in given:
        return given | ({"description": value.description} if value.description else {})
    result: Json = {"description": value.description} if value.description else {}
    if value.children and not is_open:
        result |= {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                key: schema_of(child, f"{path}.{key}", more) for key, child in value.children.items()
            },
        }
    elif "type" not in given and "enum" not in given:
        result["type"] = type_of(value.default)
    return result | given


def type_of(default: Any) -> str:
    """The type of a value like this."""
    for python, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string")):
        if isinstance(default, python):
            return name
    return "array" if isinstance(default, list) else "object"


def crd_part(path: str) -> Json:
    """A part of the RayCluster's spec."""
    version = next(each for each in crd("RayCluster")["spec"]["versions"] if each["name"] == "v1")
    part: Json = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for name in path.split("."):
        part = part.get("items", part)["properties"][name]
    return part


def closed(part: Json) -> Json:
    """A schema of a CRD as one for values: without prose, and without room for names that are not there."""
    if part.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "number", "string"]}
    result: Json = {key: part[key] for key in ("type", "enum", "minimum", "maximum") if key in part}
    if "properties" in part:
        result["properties"] = {key: closed(child) for key, child in part["properties"].items()}
        result["additionalProperties"] = False
    elif isinstance(part.get("additionalProperties"), dict):
        result["additionalProperties"] = closed(part["additionalProperties"])
    if "items" in part:
        result["items"] = closed(part["items"])
    return result


def group_schema(*parts: Mapping[str, Json]) -> Json:
    """The schema of the head or of a worker group."""
    properties = {
        name: schema_of(Value(given.get("description", ""), None), name, {name: given})
        for part in parts
        for name, given in part.items()
    }
    return {"type": "object", "additionalProperties": False, "properties": dict(sorted(properties.items()))}


def schema(chart: str, values: Mapping[str, Value], source: Mapping[str, Any]) -> Json:
    """The whole schema of a chart's values."""
    more: Mapping[str, Json] = source["values"]
    definitions = dict(source.get("definitions", {}))
    for name in ("head", "worker"):
        if name in source:
            definitions[name] = group_schema(source["group"], source[name])
    properties: Json = {key: schema_of(value, key, more) for key, value in values.items()}
    # Accepted, though values.yaml does not have them.
    for path, given in more.items():
        *parents, key = path.split(".")
        level: Any = properties
        for parent in parents:
            level = level[parent].get("properties", {})
        level.setdefault(key, given)
    properties["global"] = {"type": "object", "description": "Values that charts share; not used here."}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"Values of the chart {chart}",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "definitions": definitions,
    }


# --- README


def rows(values: Mapping[str, Value], prefix: str = "") -> list[tuple[str, str, str]]:
    """Name, default and description of each value."""
    found = []
    for key, value in values.items():
        if value.description:
            found.append((prefix + key, default_text(value.default), value.description))
        found += rows(value.children, f"{prefix}{key}.")
    return found


def default_text(default: Any) -> str:
    """A default as it is shown in a table; long ones are only in values.yaml."""
    text = json.dumps(default, ensure_ascii=False)
    return f"`{text}`" if len(text) <= 60 else "see values.yaml"


def table(header: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    cells = [header, tuple("---" for _ in header), *lines]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in cells)


def readme(intro: str, values: Mapping[str, Value], source: Mapping[str, Any]) -> str:
    """The README of a chart: its introduction, and the tables of its values."""
    parts = [intro.strip(), "## Values"]
    parts.append(table(("value", "default", "meaning"), [(f"`{n}`", d, m) for n, d, m in rows(values)]))
    titles = {
        "group": "Values of `head`, `worker` and each of `additionalWorkerGroups`",
        "head": "Values of `head` only",
        "worker": "Values of `worker` and each of `additionalWorkerGroups`",
    }
    for name, title in titles.items():
        if name in source:
            lines = [(f"`{key}`", given["description"]) for key, given in sorted(source[name].items())]
            parts += [f"### {title}", table(("value", "meaning"), lines)]
    plugin = source["values"].get("extraPlugins")
    if plugin:
        fields = plugin["items"]["properties"]
        parts += [
            "### Values of each of `extraPlugins`",
            table(
                ("value", "meaning"), [(f"`{key}`", given["description"]) for key, given in fields.items()]
            ),
        ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Write both files of each chart."""
    for chart in CHARTS:
        folder = ROOT / "charts" / chart
        source = yaml.safe_load((ROOT / "tools" / "chart_schemas" / f"{chart}.yaml").read_text("utf-8"))
        intro = (ROOT / "tools" / "chart_schemas" / f"{chart}.md").read_text("utf-8")
        values = read_values((folder / "values.yaml").read_text("utf-8"))
        text = json.dumps(schema(chart, values, source), indent=1, ensure_ascii=False)
        (folder / "values.schema.json").write_text(text + "\n", "utf-8")
        (folder / "README.md").write_text(readme(intro, values, source), "utf-8")


if __name__ == "__main__":
    main()
