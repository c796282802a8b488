"""Our CRDs beside those of KubeRay 1.6.2, field by field.

Nothing of theirs may be missing in ours, and every difference must stand in docs/reference/crd-differences.md
with its reason: no more and no fewer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kuberay_op.api.crds import VERSIONS, crd, crd_yaml, file_name
from kuberay_op.api.view import Json
from kuberay_op.testing.go_modules import ModuleUnavailableError, module_dir

MODULE: Final = "github.com/ray-project/kuberay/ray-operator"
VERSION: Final = "v1.6.2"
PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "crd-differences.md"

#: Where copies of one type sit; the first that matches names the type a path belongs to.
COPIES: Final = (
    (r".*\.(?:headGroupSpec|workerGroupSpecs\.\[\])\.template", "Pod template"),
    (r".*\.submitterPodTemplate", "Pod template"),
    (r"RayCluster\.spec", "RayClusterSpec"),
    (r"RayJob\.spec\.rayClusterSpec", "RayClusterSpec"),
    (r"RayService\.spec\.rayClusterConfig", "RayClusterSpec"),
    (r"RayCronJob\.spec\.jobTemplate\.rayClusterSpec", "RayClusterSpec"),
    (r"RayCronJob\.spec\.jobTemplate", "RayJobSpec"),
    (r"RayJob\.spec", "RayJobSpec"),
)

Difference = tuple[str, str, str]


@pytest.fixture(scope="module")
def reference() -> Path:
    """The folder with KubeRay's CRD files."""
    try:
        return module_dir(MODULE, VERSION) / "config" / "crd" / "bases"
    except ModuleUnavailableError as error:
        pytest.skip(f"the Go module of KubeRay cannot be had here: {error}")


def load(path: Path) -> Json:
    """One of KubeRay's CRDs."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: Json = yaml.load(path.read_bytes(), Loader=loader)  # noqa: S506  # a safe loader, in C where there is one
    return found


def facts(schema: Json, path: str) -> Iterator[tuple[str, Json]]:
    """Every field below with what the schema says about it; descriptions do not count."""
    own = {
        key: sorted(value) if key in ("required", "x-kubernetes-list-map-keys") else value
        for key, value in schema.items()
        if key not in ("properties", "items", "additionalProperties", "description")
    }
    yield path, own
    for name, entry in schema.get("properties", {}).items():
        yield from facts(entry, f"{path}.{name}")
    if "items" in schema:
        yield from facts(schema["items"], f"{path}.[]")
    if "additionalProperties" in schema:
        yield from facts(schema["additionalProperties"], f"{path}.*")


def named(path: str) -> tuple[str, str]:
    """The type a path belongs to, and the rest of the path."""
    for pattern, name in COPIES:
        if found := re.match(rf"{pattern}(?:\.|$)", path):
            return name, path[found.end() :]
    kind, _, rest = path.partition(".")
    return kind, rest


def compare(kind: str, theirs: Json, ours: Json) -> Iterator[Difference]:
    """How two versions of a kind differ in their schemas."""
    old = dict(facts(theirs["schema"]["openAPIV3Schema"], kind))
    new = dict(facts(ours["schema"]["openAPIV3Schema"], kind))
    for path, before in old.items():
        if path not in new:
            yield *named(path), "missing"
            continue
        for key in sorted(before.keys() | new[path].keys()):
            if before.get(key) != new[path].get(key):
                yield *named(path), what_changed(key, before.get(key), new[path].get(key))
    for path in new:
        if path not in old and path.rpartition(".")[0] in old:
            yield *named(path), "added"


def what_changed(key: str, before: Any, after: Any) -> str:
    """One changed keyword in a word or two."""
    if key == "x-kubernetes-validations" and before and after:
        same = [rule["rule"].strip("()") for rule in before] == [rule["rule"].strip("()") for rule in after]
        return "other message" if same else "other rule"
    if key == "required":
        dropped, gained = set(before or ()) - set(after or ()), set(after or ()) - set(before or ())
        words = [f"{name} not required" for name in sorted(dropped)]
        return ", ".join(words + [f"{name} required" for name in sorted(gained)])
    return f"{key}: {before} became {after}"


def around(kind: str, theirs: Json, ours: Json) -> Iterator[Difference]:
    """How two CRDs differ outside of their schemas."""
    for part in ("group", "names", "scope"):
        if theirs["spec"][part] != ours["spec"][part]:
            yield kind, part, "changed"
    for before, after in zip(theirs["spec"]["versions"], ours["spec"]["versions"], strict=True):
        for key in sorted((before.keys() | after.keys()) - {"schema", "additionalPrinterColumns"}):
            if before.get(key) != after.get(key):
                yield "all kinds" if key.startswith("deprec") else kind, f"{after['name']} {key}", "added"
        old = {column["name"]: column for column in before.get("additionalPrinterColumns", ())}
        new = {column["name"]: column for column in after.get("additionalPrinterColumns", ())}
        for name in old.keys() | new.keys():
            if old.get(name) != new.get(name):
                verb = "missing" if name not in new else "added" if name not in old else "changed"
                yield kind, f"column {name}", verb


def found_differences(folder: Path) -> set[Difference]:
    """All differences, each once however many copies of the type there are."""
    found: set[Difference] = set()
    for kind in VERSIONS:
        theirs, ours = load(folder / file_name(kind)), crd(kind)
        found.update(around(kind, theirs, ours))
        for before, after in zip(theirs["spec"]["versions"], ours["spec"]["versions"], strict=True):
            found.update(compare(kind, before, after))
    return found


def listed_differences() -> dict[Difference, tuple[str, str]]:
    """The rows of the page, with reason and section."""
    rows = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 5 and cells[0] not in ("Where", "---"):
            rows[(cells[0], cells[1], cells[2])] = (cells[3], cells[4])
    return rows


def test_nothing_of_theirs_is_missing(reference: Path) -> None:
    assert [entry for entry in found_differences(reference) if entry[2] == "missing"] == []


def test_the_list_of_differences_is_exact(reference: Path) -> None:
    found, listed = found_differences(reference), listed_differences()
    assert sorted(found - listed.keys()) == [], "these are not in the page"
    assert sorted(listed.keys() - found) == [], "these are in the page and not true"


def test_every_difference_has_a_reason_and_a_section() -> None:
    listed = listed_differences()
    assert listed
    for difference, (reason, section) in listed.items():
        assert len(reason) > 10, f"{difference} has no reason"
        assert re.fullmatch(r"§\d+(\.\d+)?", section), f"{difference} names no section"


@pytest.mark.parametrize("kind", VERSIONS)
def test_no_file_is_larger_than_theirs(kind: str, reference: Path) -> None:
    assert len(crd_yaml(kind).encode()) <= (reference / file_name(kind)).stat().st_size
