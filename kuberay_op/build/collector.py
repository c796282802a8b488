"""The container that collects logs and events for the history server."""

from __future__ import annotations

from typing import Final

from kuberay_op.api import env as names_of
from kuberay_op.api import labels, names
from kuberay_op.api.podtemplate import has_env
from kuberay_op.api.view import Json
from kuberay_op.build import auth, env
from kuberay_op.build.draft import Draft
from kuberay_op.build.volumes import has_collector
from kuberay_op.frozen import thaw

#: Where the collector takes Ray's events.
_EVENTS_PORT: Final = "8084"
_EVENT_TYPES: Final = ",".join(names_of.DEFAULT_EVENT_TYPES)
_DASHBOARD: Final = "http://localhost:8265"
_RESOURCES: Final = {
    "limits": {"cpu": "200m", "memory": "256Mi"},
    "requests": {"cpu": "50m", "memory": "64Mi"},
}

#: What makes Ray send its events to the collector.
_RAY_VARIABLES: Final = {
    names_of.RAY_ENABLE_RAY_EVENT: "true",
    names_of.RAY_ENABLE_CORE_WORKER_RAY_EVENT: "true",
    names_of.RAY_EVENTS_EXPORT_ADDR: f"http://localhost:{_EVENTS_PORT}/v1/events",
    names_of.RAY_EXPOSABLE_EVENT_TYPES: _EVENT_TYPES,
    names_of.RAY_HTTP_EXPOSABLE_EVENT_TYPES: _EVENT_TYPES,
}


def add_collector(draft: Draft) -> None:
    """Put the collector beside Ray, if the cluster asks for it and the gate is on."""
    options = draft.cluster.spec.history_server_options.collector_options
    if not options or not draft.gate("RayClusterHistoryServer"):
        return
    container: Json = {
        "name": names.COLLECTOR_CONTAINER,
        "image": options.image,
        "imagePullPolicy": options.image_pull_policy or "IfNotPresent",
        "resources": thaw(options.resources if options.is_set("resources") else _RESOURCES),
    }
    env.add(container, *_variables(draft))
    if draft.is_head and not has_env(options.raw, names_of.RAY_DASHBOARD_ADDRESS):
        env.add(container, env.variable(names_of.RAY_DASHBOARD_ADDRESS, _DASHBOARD))
    env.add(container, *options.env)
    auth.add_token(container, draft.cluster)
    draft.spec["containers"].append(container)


def add_event_export(draft: Draft) -> None:
    """Make Ray send its events to the collector, if there is one."""
    if has_collector(draft):
        env.add_absent(draft.ray, *(env.variable(name, value) for name, value in _RAY_VARIABLES.items()))


def _variables(draft: Draft) -> list[Json]:
    cluster = draft.cluster
    found = [
        env.field_variable(names_of.POD_IP, "status.podIP"),
        env.variable(names_of.RAY_CLUSTER_NAME, cluster.name),
        env.variable(names_of.RAY_CLUSTER_NAMESPACE, cluster.namespace),
        env.variable(names_of.RAY_ROLE, "Head" if draft.is_head else "Worker"),
        env.variable(names_of.EVENTS_PORT, _EVENTS_PORT),
        env.variable(names_of.FQ_RAY_IP, draft.head_host),
    ]
    owners = (
        (names_of.OWNER_KIND, labels.ORIGINATED_FROM_KIND),
        (names_of.OWNER_NAME, labels.ORIGINATED_FROM_NAME),
    )
    for name, label in owners:
        if value := cluster.metadata.labels.get(label):
            found.append(env.variable(name, value))
    return found
