"""Reading Pod templates, which stay plain dicts. Nothing here fails on a template of the wrong shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kuberay_op.api.names import RAY_CONTAINER

#: A Pod template, a container, a variable …: JSON whose shape nobody has checked.
Json = Mapping[str, Any]


def pod_spec(template: Json) -> Json:
    """The Pod spec; empty when there is none."""
    return _object(template.get("spec"))


def containers(template: Json) -> list[Json]:
    """The containers, without init containers."""
    return _objects(pod_spec(template), "containers")


def ray_container(template: Json) -> Json:
    """The first container, which runs Ray; empty when there is none."""
    found = containers(template)
    return found[RAY_CONTAINER] if len(found) > RAY_CONTAINER else {}


def volumes(template: Json) -> list[Json]:
    """The volumes of the Pod."""
    return _objects(pod_spec(template), "volumes")


def volume_mounts(container: Json) -> list[Json]:
    """The mounts of a container."""
    return _objects(container, "volumeMounts")


def environment(container: Json) -> list[Json]:
    """The variables of a container."""
    return _objects(container, "env")


def has_env(container: Json, name: str) -> bool:
    """Whether the variable is there, whatever its value."""
    return any(variable.get("name") == name for variable in environment(container))


def env_value(container: Json, name: str) -> str:
    """The literal value of the first variable of that name; empty when there is none."""
    for variable in environment(container):
        if variable.get("name") == name:
            value = variable.get("value")
            return value if isinstance(value, str) else ""
    return ""


def restart_policy(template: Json) -> str:
    """The restart policy as written; empty when unset."""
    policy = pod_spec(template).get("restartPolicy")
    return policy if isinstance(policy, str) else ""


def _object(value: Any) -> Json:
    return value if isinstance(value, Mapping) else {}


def _objects(parent: Json, key: str) -> list[Json]:
    """One entry per list item, so that positions stay true; what is no object becomes an empty one."""
    found = parent.get(key)
    return [_object(item) for item in found] if isinstance(found, list | tuple) else []
