"""Every field of a RayCluster can be set by a value of the chart ray-cluster.

The schema of the API is walked, not a list of ours: a field that the API gets is missed here until the chart
has it. Pod templates are reached by named values and by ``podSpec`` and ``container``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kuberay_op.api.crds import crd
from tests.charts.helm import Json, of_kind, rendered

#: Where a field stands in the values, by the beginning of its path; the longest counts. The other fields have
#: the same name in both.
PLACES = {
    "headGroupSpec.": "head.",
    "headGroupSpec.labels": "head.groupLabels",
    "headGroupSpec.resources": "head.groupResources",
    "headGroupSpec.serviceType": "service.type",
    "headGroupSpec.template.spec.": "head.podSpec.",
    "workerGroupSpecs.0.": "worker.",
    "workerGroupSpecs.0.labels": "worker.groupLabels",
    "workerGroupSpecs.0.resources": "worker.groupResources",
    "workerGroupSpecs.0.priority": "worker.groupPriority",
    "workerGroupSpecs.0.template.spec.": "worker.podSpec.",
    "autoscalerOptions.": "head.autoscalerOptions.",
    "enableInTreeAutoscaling": "head.enableInTreeAutoscaling",
    "gcsFaultToleranceOptions.": "gcsFaultTolerance.",
}

#: The containers of a template are put together by the chart, and its metadata too.
TEMPLATE = ("template.metadata", "template.spec.containers")


def spec_schema() -> Json:
    version = next(each for each in crd("RayCluster")["spec"]["versions"] if each["name"] == "v1")
    found: Json = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def leaves(schema: Json, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every field below a schema, with a value that it takes."""
    if any(path.endswith(part) for part in TEMPLATE):
        return
    if path.endswith("template.spec"):
        # One level: what is in there is the API server's to know.
        for name, inner in schema["properties"].items():
            if name != "containers":
                yield f"{path}.{name}", sample(inner, name)
    elif "properties" in schema:
        for name, inner in schema["properties"].items():
            yield from leaves(inner, f"{path}.{name}".lstrip("."))
    elif schema.get("type") == "array":
        yield from leaves(schema["items"], f"{path}.0")
    else:
        yield path, sample(schema, path.rsplit(".", 1)[-1])


def sample(schema: Json, name: str) -> Any:
    """A value of this type that is not the default."""
    if name == "serviceType":
        return "NodePort"  # the values say which there are, the API does not
    if "enum" in schema:
        return next(each for each in schema["enum"] if each)
    if schema.get("x-kubernetes-int-or-string"):
        return 7
    kind = schema.get("type")
    if kind == "object":
        return {"some": "thing"}
    if kind == "array":
        return [sample(schema["items"], name)]
    return {"boolean": True, "integer": 7, "string": "x"}[str(kind)]


def value_path(path: str) -> str:
    place = max((each for each in PLACES if path.startswith(each)), key=len, default="")
    exact = place and not place.endswith(".")
    if exact and path != place and path[len(place)] != ".":
        return path
    return PLACES.get(place, "") + path[len(place) :]


def put(tree: Any, path: str, value: Any) -> None:
    """Set a value in a tree of maps and lists; ``0`` in a path is the first of a list."""
    *parents, last = path.split(".")
    for at, name in enumerate(parents):
        below: Any = [{}] if [*parents, last][at + 1] == "0" else {}
        if name == "0":
            tree[0] = tree[0] or below
            tree = tree[0]
        else:
            tree = tree.setdefault(name, below)
    if last == "0":
        tree[:] = [value]
    else:
        tree[last] = value


def look(tree: Any, path: str) -> Any:
    for name in path.split("."):
        tree = tree[0] if name == "0" else tree[name]
    return tree


def test_every_field_has_a_value() -> None:
    fields = dict(leaves(spec_schema()))
    assert len(fields) > 150
    values: Json = {}
    for path, value in fields.items():
        put(values, value_path(path), value)
    values["gcsFaultTolerance"]["enabled"] = True
    spec = of_kind(rendered("ray-cluster", values), "RayCluster")["spec"]
    missing = {}
    for path, value in fields.items():
        try:
            found = look(spec, path)
        except (KeyError, IndexError, TypeError):
            missing[path] = "is not there"
            continue
        if found != value and not (isinstance(value, dict) and value.items() <= found.items()):
            missing[path] = f"is {found!r} and not {value!r}"
    assert missing == {}


@pytest.mark.parametrize("group", ["head", "worker"])
def test_any_field_of_a_container_has_a_value(group: str) -> None:
    """Those that the chart has no name for come from ``container``, which wins."""
    template = spec_schema()["properties"]["headGroupSpec"]["properties"]["template"]
    fields = template["properties"]["spec"]["properties"]["containers"]["items"]["properties"]
    values = {name: sample(inner, name) for name, inner in fields.items() if name != "name"}
    spec = of_kind(rendered("ray-cluster", {group: {"container": values}}), "RayCluster")["spec"]
    found = spec["headGroupSpec"] if group == "head" else spec["workerGroupSpecs"][0]
    container = found["template"]["spec"]["containers"][0]
    for name, value in values.items():
        assert container[name] == value or value.items() <= container[name].items(), name
