"""Write ``kuberay_op/api/kube_schema.json``: the Kubernetes types inside our kinds, as structural schemas.

Read from the OpenAPI documents in the Go module ``k8s.io/kubernetes`` at one pinned version, trimmed to the
definitions we need, without descriptions. Run by ``make generate``::

    python tools/kubernetes_schema.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import click

from kuberay_op.api.fields import Kube, KubeList, quantity_schema
from kuberay_op.api.meta import Condition
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.raycronjob import RayCronJob
from kuberay_op.api.rayjob import RayJob
from kuberay_op.api.rayservice import RayService
from kuberay_op.api.view import View, walk
from kuberay_op.testing.go_modules import ModuleUnavailableError, module_dir

MODULE: Final = "k8s.io/kubernetes"
VERSION: Final = "v1.36.3"
#: The v3 documents: unlike v2 they keep defaults beside references.
DOCUMENTS: Final = ("api__v1_openapi.json", "apis__networking.k8s.io__v1_openapi.json")
OUTPUT: Final = Path(__file__).parent.parent / "kuberay_op" / "api" / "kube_schema.json"


def without_descriptions(schema: Any) -> Any:
    """A schema of ours with nothing but structure."""
    if isinstance(schema, dict):
        return {key: without_descriptions(value) for key, value in schema.items() if key != "description"}
    return schema


#: What a structural schema keeps of an OpenAPI one.
KEPT: Final = (
    "type",
    "format",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)

#: Metadata that users may give inside a template; all else is pruned.
METADATA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "name": {"type": "string"},
        "namespace": {"type": "string"},
    },
}

#: Definitions with a form of their own in a structural schema. Conditions are here because the documents
#: leave out the limits that Kubernetes enforces.
REPLACED: Final[dict[str, dict[str, Any]]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": quantity_schema(),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    },
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": METADATA,
    "io.k8s.apimachinery.pkg.apis.meta.v1.Condition": without_descriptions(Condition.schema()),
}

#: Defaults of Kubernetes that our schemas leave to Kubernetes itself, because the reference's do.
UNDEFAULTED: Final = {
    ("io.k8s.api.core.v1.AzureDiskVolumeSource", "cachingMode"),
    ("io.k8s.api.core.v1.AzureDiskVolumeSource", "kind"),
}

#: Fields that only older Kubernetes versions had, and that published manifests may still carry.
SUPPLEMENT: Final[dict[tuple[str, str], dict[str, Any]]] = {
    # Kubernetes 1.35 only; 1.36 has schedulingGroup in its place.
    ("io.k8s.api.core.v1.PodSpec", "workloadRef"): {
        "type": "object",
        "required": ["name", "podGroup"],
        "properties": {
            "name": {"type": "string"},
            "podGroup": {"type": "string"},
            "podGroupReplicaKey": {"type": "string"},
        },
    },
}

#: What CRD generators for Go read from comments in the source, and the documents do not have: these mappings
#: are owned as a whole under server-side apply, ...
ATOMIC: Final = {
    f"io.k8s.api.core.v1.{name}"
    for name in (
        "ConfigMapEnvSource",
        "ConfigMapProjection",
        "ConfigMapVolumeSource",
        "SecretEnvSource",
        "SecretProjection",
    )
}
#: ... and this one has limits.
PORT_STATUS: Final = "io.k8s.api.core.v1.PortStatus"


def documents(folder: Path) -> dict[str, Any]:
    """All definitions of the documents we read, by name."""
    found: dict[str, Any] = {}
    for name in DOCUMENTS:
        found.update(json.loads((folder / name).read_bytes())["components"]["schemas"])
    return found


def wanted() -> set[str]:
    """The definitions that our fields name."""
    kinds: tuple[type[View], ...] = (RayCluster, RayJob, RayService, RayCronJob)
    return {
        field.definition for kind in kinds for _, field in walk(kind) if isinstance(field, Kube | KubeList)
    }


def trim(source: dict[str, Any], *, owner: str, needed: set[str]) -> dict[str, Any]:
    """One schema in structural form; the definitions it refers to are added to ``needed``."""
    for inner in source.get("allOf", [source]):
        if "$ref" in inner:
            name = inner["$ref"].rsplit("/", 1)[1]
            needed.add(name)
            return {"$def": name}
    schema: dict[str, Any] = {key: source[key] for key in KEPT if key in source}
    if "required" in schema:
        schema["required"] = sorted(schema["required"])
    if "properties" in source:
        required = source.get("required", ())
        schema["properties"] = {
            name: with_default(trim(entry, owner=owner, needed=needed), entry, owner, name, required)
            for name, entry in sorted(source["properties"].items())
        }
        for (definition, name), entry in SUPPLEMENT.items():
            if definition == owner:
                schema["properties"][name] = entry
    for key in ("items", "additionalProperties"):
        if key in source:
            schema[key] = trim(source[key], owner=owner, needed=needed)
    return schema


def with_default(
    schema: dict[str, Any], source: dict[str, Any], owner: str, name: str, required: list[str]
) -> dict[str, Any]:
    """The schema of a property with its default, if that is one.

    The documents also give the zero value of every Go field that cannot be left out; those are no defaults.
    """
    default = source.get("default")
    if default in (None, {}) or name in required or (owner, name) in UNDEFAULTED:
        return schema
    return {**schema, "default": default}


def amend(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A definition with what the documents leave out."""
    if name in ATOMIC:
        return {**schema, "x-kubernetes-map-type": "atomic"}
    if name == PORT_STATUS:
        error = {"type": "string", "maxLength": 316, "pattern": Condition.type.pattern}
        return {
            **schema,
            "required": ["error", "port", "protocol"],
            "properties": {**schema["properties"], "error": error},
        }
    return schema


def build(source: dict[str, Any]) -> dict[str, Any]:
    """The data file: every definition our fields need, directly or not."""
    definitions = dict(REPLACED)
    needed = wanted()
    while missing := sorted(needed - definitions.keys()):
        for name in missing:
            definitions[name] = amend(name, trim(source[name], owner=name, needed=needed))
    return {"kubernetes": VERSION, "definitions": dict(sorted(definitions.items()))}


def render() -> str:
    """The text of the data file: one definition per line, so that a new version can be reviewed as a diff."""
    data = build(documents(module_dir(MODULE, VERSION) / "api" / "openapi-spec" / "v3"))
    lines = ",\n".join(
        f"{json.dumps(name)}:{json.dumps(schema, separators=(',', ':'))}"
        for name, schema in data["definitions"].items()
    )
    return f'{{"kubernetes":{json.dumps(VERSION)},"definitions":{{\n{lines}\n}}}}\n'


@click.command()
def main() -> None:
    """Write the schemas of the Kubernetes types that our kinds contain."""
    try:
        OUTPUT.write_text(render())
    except ModuleUnavailableError as error:
        # Without a network the rest can still be generated; a test compares the file where there is one.
        click.echo(f"{OUTPUT.name} stays as it is: {error}", err=True)
    else:
        click.echo(f"{OUTPUT.name}: Kubernetes {VERSION}")


if __name__ == "__main__":
    main()
