"""The CustomResourceDefinitions of the four kinds, made from the views."""

from __future__ import annotations

from functools import cache
from typing import Final

from kuberay_op.api import v1alpha1
from kuberay_op.api.meta import GROUP, CustomResource
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.raycronjob import RayCronJob
from kuberay_op.api.rayjob import RayJob
from kuberay_op.api.rayservice import RayService
from kuberay_op.api.view import Json
from kuberay_op.hints import nearest

#: The versions of every kind, the stored one first.
VERSIONS: Final[dict[str, tuple[type[CustomResource], ...]]] = {
    "RayCluster": (RayCluster, v1alpha1.RayCluster),
    "RayCronJob": (RayCronJob,),
    "RayJob": (RayJob, v1alpha1.RayJob),
    "RayService": (RayService, v1alpha1.RayService),
}


def view_of(api_version: str, kind: str) -> type[CustomResource] | None:
    """The view of a kind in the version that an object names; None if it is not one of ours."""
    group, _, version = api_version.partition("/")
    if group != GROUP:
        return None
    return next((view for view in VERSIONS.get(kind, ()) if version == view.VERSION), None)


@cache
def schema_of(view: type[CustomResource]) -> Json:
    """The structural schema of one version of a kind. Shared: do not change it."""
    return view.schema()


def crd(kind: str) -> Json:
    """The CustomResourceDefinition of a kind."""
    versions = VERSIONS[kind]
    stored = versions[0]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{stored.PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "categories": ["all"],
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": stored.PLURAL,
                "singular": kind.lower(),
            },
            "scope": "Namespaced",
            "versions": [_version(view, stored=view is stored) for view in versions],
        },
    }


def _version(view: type[CustomResource], *, stored: bool) -> Json:
    """One entry of ``spec.versions``; every version but the stored one is deprecated."""
    version: Json = {"name": view.VERSION, "served": True, "storage": stored, "subresources": {"status": {}}}
    if not stored:
        version["deprecated"] = True
        version["deprecationWarning"] = (
            f"{GROUP}/{view.VERSION} {view.KIND} is deprecated; use {GROUP}/v1 {view.KIND}. "
            f"{view.VERSION} receives no new fields and will be unavailable in KubeRay 1.9."
        )
    if view.COLUMNS:
        version["additionalPrinterColumns"] = [column.schema() for column in view.COLUMNS]
    version["schema"] = {"openAPIV3Schema": schema_of(view)}
    return version


def file_name(kind: str) -> str:
    """The name of the file that holds the CRD, the same as in KubeRay's charts."""
    return f"{GROUP}_{VERSIONS[kind][0].PLURAL}.yaml"


def crd_yaml(kind: str) -> str:
    """The CRD as YAML text. Small mappings share a line, which keeps these large files in bounds."""
    # Late, because reading objects never needs it.
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # C where there is one
        """Writes equal parts out in full: anchors in a CRD would surprise tools."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    text: str = yaml.dump(
        crd(kind), Dumper=Dumper, default_flow_style=None, sort_keys=False, width=4096, allow_unicode=True
    )
    return text


def find_kind(name: str) -> str | None:
    """The kind that ``name`` means: RayCluster, raycluster and rayclusters are all the same."""
    return next(
        (kind for kind, views in VERSIONS.items() if name.lower() in (kind.lower(), views[0].PLURAL)), None
    )


def nearest_kind(name: str) -> str:
    """The sentence for a name that :func:`find_kind` does not know."""
    near = nearest(name, [kind.lower() for kind in VERSIONS])
    hint = f"did you mean {near!r}?" if near else f"there are {', '.join(VERSIONS)}"
    return f"there is no kind {name!r}; {hint}"
