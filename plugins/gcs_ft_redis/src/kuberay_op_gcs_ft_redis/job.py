"""The Job that removes a cluster's keys from Redis once the cluster is gone."""

from __future__ import annotations

from typing import Final

from kuberay_op.api import env as names_of
from kuberay_op.api import labels, names
from kuberay_op.api.podtemplate import has_env
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.view import Json
from kuberay_op.build import env
from kuberay_op.build.draft import shell
from kuberay_op.build.metadata import child_metadata
from kuberay_op.build.pod import plain_head_pod
from kuberay_op.build.tls import WAIT_FOR_CERTIFICATE
from kuberay_op.config import Config
from kuberay_op.frozen import thaw
from kuberay_op.hooks import Options

_DEADLINE: Final = 300
_HELP: Final = "https://docs.ray.io/en/master/cluster/kubernetes/user-guides/kuberay-gcs-ft.html"
_HINT: Final = f"Removing the keys of this Ray cluster from Redis. If this fails, see {_HELP}"

#: How Ray itself connects to Redis: for up to a minute.
_RETRIES: Final = {
    "RAY_redis_db_connect_retries": "120",
    "RAY_redis_db_connect_wait_milliseconds": "500",
}

#: Runs between double quotes of the shell, so it has none itself, and no dollar or backslash.
_SCRIPT: Final = """\
import os, sys
from urllib.parse import urlparse
from ray._private.gcs_utils import cleanup_redis_storage
address = os.environ['RAY_REDIS_ADDRESS'].split(',')[0]
url = urlparse(address if '://' in address else 'redis://' + address)
{username}done = cleanup_redis_storage(
    host=url.hostname,
    port=url.port,
    {use_username}password=os.environ.get('REDIS_PASSWORD', url.password or ''),
    use_ssl=url.scheme == 'rediss',
    storage_namespace=os.environ['RAY_external_storage_namespace'],
)
sys.exit(0 if done else 1)
"""
_USERNAME: Final = "username = os.environ.get('REDIS_USERNAME', url.username)\n"


def cleanup_job(cluster: RayCluster, config: Config, options: Options) -> Json:
    """The Job: the head Pod without its sidecars, running a clean-up in place of Ray."""
    pod = plain_head_pod(cluster, config)
    spec, meta = pod["spec"], pod["metadata"]
    ray = spec["containers"][names.RAY_CONTAINER]
    for probe in ("livenessProbe", "readinessProbe"):
        ray.pop(probe, None)
    ray["command"] = shell(config)
    ray["args"] = [f'echo "{_HINT}" && python -c "{_script(ray)}"']
    ray["resources"] = thaw(options["resources"])
    env.add(ray, *(env.variable(name, value) for name, value in _RETRIES.items()))
    spec["containers"] = [ray]
    spec["restartPolicy"] = "Never"
    if options["tolerations"]:
        spec["tolerations"] = [*(spec.get("tolerations") or ()), *thaw(options["tolerations"])]
    if options["podSecurityContext"] is not None:
        spec["securityContext"] = thaw(options["podSecurityContext"])
    if options["securityContext"] is not None:
        ray["securityContext"] = thaw(options["securityContext"])
    if "initContainers" in spec:
        kept = [c for c in spec["initContainers"] if c.get("name") != WAIT_FOR_CERTIFICATE]
        spec["initContainers"] = kept
    own = {**meta["labels"], labels.NODE_TYPE: labels.REDIS_CLEANUP}
    inner = {key: value for key, value in meta.items() if key in ("annotations", "finalizers")}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            # The user may have given his Pods another maker, but it is by this one that Jobs are found.
            **child_metadata(
                cluster, names.redis_cleanup_job(cluster.name), {**own, labels.CREATED_BY: labels.COMPONENT}
            ),
            "annotations": dict(meta["annotations"]),
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": _DEADLINE,
            "template": {"metadata": {**inner, "labels": own}, "spec": spec},
        },
    }


def _script(ray: Json) -> str:
    named = has_env(ray, names_of.REDIS_USERNAME)
    return _SCRIPT.format(
        username=_USERNAME if named else "", use_username="username=username,\n    " if named else ""
    )
