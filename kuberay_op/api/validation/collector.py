"""Rule 14 of a cluster spec: the history collector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kuberay_op.api import env, names
from kuberay_op.api.podtemplate import containers, environment
from kuberay_op.api.problems import Path, Problem, one_of
from kuberay_op.api.validation.rules import Check, Finding, Findings, rule, run
from kuberay_op.api.validation.subjects import ClusterSubject

_COLLECTOR: Final = "historyServerOptions.collectorOptions"
_ENV: Final[Path] = ("historyServerOptions", "collectorOptions", "env")

#: Variables a storage backend cannot do without.
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "GCS": (env.GCS_BUCKET,),
    "S3": (env.S3_REGION,),
    "ALIYUNOSS": (env.OSS_BUCKET, env.OSS_ENDPOINT, env.OSS_REGION),
}
#: Variables of which Azure needs one, by its authentication mode; any mode not listed needs either.
_AZURE: Final[Mapping[str, tuple[str, ...]]] = {
    "connection_string": (env.AZURE_STORAGE_CONNECTION_STRING,),
    "workload_identity": (env.AZURE_STORAGE_ACCOUNT_URL,),
    "default": (env.AZURE_STORAGE_ACCOUNT_URL,),
}
_AZURE_EITHER: Final = (env.AZURE_STORAGE_CONNECTION_STRING, env.AZURE_STORAGE_ACCOUNT_URL)


def _variables(cluster: ClusterSubject) -> dict[str, Mapping[str, Any]]:
    """The collector's variables by name; of two with one name the last counts."""
    options = cluster.spec.history_server_options.collector_options
    return {str(variable.get("name")): variable for variable in environment(options.raw)}


def _literal(variable: Mapping[str, Any]) -> str:
    value = variable.get("value")
    return value if isinstance(value, str) else ""


def _given(variables: Mapping[str, Mapping[str, Any]], name: str) -> bool:
    variable = variables.get(name, {})
    return bool(_literal(variable)) or variable.get("valueFrom") is not None


@rule("raycluster.spec.14.1", "historyServerOptions needs the feature gate RayClusterHistoryServer.")
def gate(cluster: ClusterSubject) -> Findings:
    """The operator would not add the collector."""
    if not cluster.gates("RayClusterHistoryServer"):
        yield Finding("historyServerOptions", "needs the feature gate RayClusterHistoryServer, which is off")


@rule("raycluster.spec.14.2", "historyServerOptions has collectorOptions.")
def options_given(cluster: ClusterSubject) -> Findings:
    """Without them there is nothing to run."""
    if not cluster.spec.history_server_options.collector_options:
        yield Finding(_COLLECTOR, "must be set")


@rule("raycluster.spec.14.3.1", "The collector has an image.")
def image(cluster: ClusterSubject) -> Findings:
    """There is no default for it."""
    if not cluster.spec.history_server_options.collector_options.image:
        yield Finding(f"{_COLLECTOR}.image", "must be set")


@rule("raycluster.spec.14.3.2", "The collector's env leaves what the operator sets to the operator.")
def reserved(cluster: ClusterSubject) -> Findings:
    """They tell the collector what it belongs to."""
    options = cluster.spec.history_server_options.collector_options
    for index, variable in enumerate(environment(options.raw)):
        if variable.get("name") in env.COLLECTOR_RESERVED:
            text = f"{variable['name']} is set by the operator; remove it"
            yield Finding((*_ENV, index), text)


@rule("raycluster.spec.14.3.3", "The collector's env names STORAGE_BACKEND with a literal value.")
def storage_backend(cluster: ClusterSubject) -> Findings:
    """The operator must be able to read it."""
    if not _literal(_variables(cluster).get(env.STORAGE_BACKEND, {})):
        yield Finding(_ENV, f"{env.STORAGE_BACKEND} must be set to a literal value such as S3")


@rule("raycluster.spec.14.3.4", "The collector's env has what its storage backend needs.")
def storage_settings(cluster: ClusterSubject) -> Findings:
    """Unknown backends are taken as they are."""
    variables = _variables(cluster)
    backend = _literal(variables.get(env.STORAGE_BACKEND, {})).upper()
    for name in _NEEDED.get(backend, ()):
        if not _given(variables, name):
            yield Finding(_ENV, f"{name} must be set for the storage backend {backend}")
    if backend == "AZUREBLOB":
        mode = _literal(variables.get(env.AZURE_STORAGE_AUTH_MODE, {})).strip().lower()
        wanted = _AZURE.get(mode, _AZURE_EITHER)
        if not any(_given(variables, name) for name in wanted):
            yield Finding(_ENV, f"{one_of(wanted)} must be set for the storage backend {backend}")


@rule(
    "raycluster.spec.14.4", f"No container is called {names.COLLECTOR_CONTAINER} beside historyServerOptions."
)
def container_name(cluster: ClusterSubject) -> Findings:
    """The operator adds one of that name."""
    at: list[tuple[Mapping[str, Any], Path]] = [(cluster.head.template, ("headGroupSpec",))]
    at += [(group.template, ("workerGroupSpecs", index)) for index, group in enumerate(cluster.groups)]
    for template, path in at:
        for index, container in enumerate(containers(template)):
            if container.get("name") == names.COLLECTOR_CONTAINER:
                text = f"{names.COLLECTOR_CONTAINER} is the name of the operator's container; choose another"
                where = (*path, "template", "spec", "containers", index, "name")
                yield Finding(where, text, names.COLLECTOR_CONTAINER)


_OPTION_RULES: Final[tuple[Check[ClusterSubject], ...]] = (image, reserved, storage_backend, storage_settings)


def check(cluster: ClusterSubject) -> Iterator[Problem]:
    """All of rule 14."""
    options = cluster.spec.history_server_options
    if options:
        yield from run((gate, options_given), cluster)
        if options.collector_options:
            yield from run(_OPTION_RULES, cluster)
        yield from container_name(cluster)
