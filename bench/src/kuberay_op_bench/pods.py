"""Ray worker Pods as an API server returns them: about 5 KB each, managedFields included."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random
from typing import Any, Final
from uuid import UUID

NAMESPACE: Final = "bench"
WORKERS_PER_CLUSTER: Final = 20
IMAGE: Final = "rayproject/ray:2.52.0"
CREATED: Final = "2026-01-01T00:00:00Z"

#: Conditions of a running Pod, in the order the kubelet writes them.
_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")

_WAIT_FOR_HEAD: Final = (
    'while ! ray health-check --address "$FQ_RAY_IP:6379" > /dev/null 2>&1; do '
    'echo "the head at $FQ_RAY_IP does not answer yet"; sleep 5; done'
)
_START: Final = (
    "ulimit -n 65536; ray start --address={head}:6379 --block --dashboard-agent-listen-port=52365 "
    "--memory=4294967296 --metrics-export-port=8080 --num-cpus=2"
)


def cluster_of(number: int) -> str:
    """The RayCluster that owns the Pod with this number."""
    return f"raycluster-{number // WORKERS_PER_CLUSTER:05}"


def name_of(number: int) -> str:
    """The name of the Pod with this number."""
    return f"{cluster_of(number)}-workers-worker-{number % WORKERS_PER_CLUSTER:05}"


def manifest(number: int, namespace: str = NAMESPACE) -> dict[str, Any]:
    """The Pod as an operator creates it."""
    cluster = cluster_of(number)
    head = f"{cluster}-head-svc.{namespace}.svc.cluster.local"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name_of(number),
            "namespace": namespace,
            "labels": {
                "app.kubernetes.io/created-by": "kuberay-operator",
                "app.kubernetes.io/name": "kuberay",
                "ray.io/cluster": cluster,
                "ray.io/group": "workers",
                "ray.io/identifier": f"{cluster}-worker",
                "ray.io/is-ray-node": "yes",
                "ray.io/node-type": "worker",
            },
            "annotations": {"ray.io/ft-enabled": "false"},
            "ownerReferences": [
                {
                    "apiVersion": "ray.io/v1",
                    "kind": "RayCluster",
                    "name": cluster,
                    "uid": _uid("cluster", number // WORKERS_PER_CLUSTER),
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": _spec(cluster, head),
    }


def _spec(cluster: str, head: str) -> dict[str, Any]:
    env = {
        "FQ_RAY_IP": head,
        "RAY_IP": head.split(".", maxsplit=1)[0],
        "RAY_CLUSTER_NAME": cluster,
        "RAY_PORT": "6379",
        "RAY_ADDRESS": f"{head}:6379",
        "RAY_USAGE_STATS_KUBERAY_IN_USE": "1",
        "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE": "1",
        "REDIS_PASSWORD": "",
    }
    probe = {
        "exec": {
            "command": ["bash", "-c", "wget -T 2 -q -O- http://localhost:52365/api/local_raylet_healthz"]
        },
        "initialDelaySeconds": 10,
        "timeoutSeconds": 2,
        "periodSeconds": 5,
        "successThreshold": 1,
    }
    container = {
        "name": "ray-worker",
        "image": IMAGE,
        "command": ["/bin/bash", "-c", "--"],
        "args": [_START.format(head=head)],
        "env": [{"name": name, "value": value} for name, value in env.items()]
        + [
            {
                "name": "POD_NAME",
                "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}},
            }
        ],
        "ports": [{"name": "metrics", "containerPort": 8080, "protocol": "TCP"}],
        "resources": {"limits": {"cpu": "2", "memory": "4Gi"}, "requests": {"cpu": "2", "memory": "4Gi"}},
        "volumeMounts": [{"name": "shared-mem", "mountPath": "/dev/shm"}],  # noqa: S108 - in the container
        "livenessProbe": {**probe, "failureThreshold": 120},
        "readinessProbe": {**probe, "failureThreshold": 10},
        "imagePullPolicy": "IfNotPresent",
    }
    wait = {
        "name": "wait-for-head",
        "image": IMAGE,
        "command": ["/bin/bash", "-c"],
        "args": [_WAIT_FOR_HEAD],
        "env": [{"name": "FQ_RAY_IP", "value": head}],
        "resources": {"limits": {"cpu": "200m", "memory": "256Mi"}, "requests": {"cpu": "200m"}},
        "imagePullPolicy": "IfNotPresent",
    }
    return {
        "volumes": [{"name": "shared-mem", "emptyDir": {"medium": "Memory", "sizeLimit": "4Gi"}}],
        "initContainers": [wait],
        "containers": [container],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "automountServiceAccountToken": False,
        "schedulerName": "nobody",  # the Pods are there to be read; no scheduler shall touch them
    }


def status(number: int) -> dict[str, Any]:
    """The status a kubelet reports for the running Pod."""
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    image_id = f"docker.io/{IMAGE.partition(':')[0]}@sha256:{'0123456789abcdef' * 4}"
    running = {
        "state": {"running": {"startedAt": CREATED}},
        "lastState": {},
        "ready": True,
        "restartCount": 0,
    }
    finished = {
        "state": {
            "terminated": {
                "exitCode": 0,
                "reason": "Completed",
                "startedAt": CREATED,
                "finishedAt": CREATED,
                "containerID": f"containerd://{_uid('init', number)}",
            }
        },
        "lastState": {},
        "ready": True,
        "restartCount": 0,
    }
    identity = {"image": IMAGE, "imageID": image_id}
    return {
        "phase": "Running",
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": CREATED}
            for kind in _CONDITIONS
        ],
        "hostIP": "192.168.0.7",
        "hostIPs": [{"ip": "192.168.0.7"}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": CREATED,
        "initContainerStatuses": [{"name": "wait-for-head", **finished, **identity, "started": False}],
        "containerStatuses": [
            {
                "name": "ray-worker",
                **running,
                **identity,
                "containerID": f"containerd://{_uid('container', number)}",
                "started": True,
            }
        ],
    }


def stored(number: int, namespace: str = NAMESPACE) -> dict[str, Any]:
    """The Pod as the API server returns it: with defaults, status and managedFields."""
    pod = manifest(number, namespace)
    pod["metadata"] |= {
        "uid": _uid("pod", number),
        "resourceVersion": "0",  # whoever serves the Pod sets it
        "creationTimestamp": CREATED,
        "generation": 1,
        "managedFields": _managed_fields(pod),  # last, as an API server writes it
    }
    pod["spec"] |= {
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "nodeName": f"node-{number % 100:03}",
        "securityContext": {},
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{key}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for key in ("not-ready", "unreachable")
        ],
    }
    pod["status"] = {**status(number), "qosClass": "Guaranteed"}
    return pod


def _managed_fields(pod: dict[str, Any]) -> list[dict[str, Any]]:
    def entry(manager: str, fields: dict[str, Any], **more: str) -> dict[str, Any]:
        return {
            "manager": manager,
            "operation": "Update",
            "apiVersion": "v1",
            "time": CREATED,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
            **more,
        }

    created = {"f:metadata": _fields(pod["metadata"]), "f:spec": _fields(pod["spec"])}
    reported = {"f:status": _fields(status(0))}
    return [entry("kuberay-operator", created), entry("kubelet", reported, subresource="status")]


def _fields(value: Any) -> dict[str, Any]:
    """The names of the fields of a value, as managedFields lists them."""
    if isinstance(value, dict):
        return {f"f:{name}": _fields(inner) for name, inner in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        key = next(
            name for name in ("name", "type", "uid", "ip", "containerPort", *value[0]) if name in value[0]
        )
        return {f'k:{{"{key}":"{item.get(key)}"}}': {".": {}, **_fields(item)} for item in value}
    return {}


def _uid(kind: str, number: int) -> str:
    # Spread like real ones: a counter would share prefixes and flatter the memory figures.
    return str(UUID(int=Random(f"{kind}/{number}").getrandbits(128), version=4))  # noqa: S311 - no secret


def changes(pods: int, events: int, seed: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    """Watch events as a busy cluster makes them: mostly status changes, sometimes a Pod replaced."""
    rng = Random(seed)  # noqa: S311 - reproducible load, no secret
    restarts = count(1)
    replaced: list[int] = []
    for _ in range(events):
        if replaced:
            yield "ADDED", stored(replaced.pop())
            continue
        number = rng.randrange(pods)
        pod = stored(number)
        if rng.random() < 0.02:
            replaced.append(number)
            yield "DELETED", pod
            continue
        pod["status"]["containerStatuses"][0]["restartCount"] = next(restarts)
        ready = rng.random() < 0.9
        for condition in pod["status"]["conditions"]:
            condition["status"] = str(ready)
        yield "MODIFIED", pod
