"""Contract 02 §6.1–§6.4, §6.7, §6.13, §6.14: metadata, containers, volumes of head and worker Pods."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op import __version__
from kuberay_op.api.hashes import raycluster_spec_hash
from kuberay_op.api.view import Json
from kuberay_op.build.pod import head_pod, plain_head_pod
from kuberay_op.config import Config
from kuberay_op.features import Gates
from kuberay_op.testing import make
from tests.unit.build.shapes import (
    HOST,
    UID,
    cluster,
    gated,
    head,
    head_container,
    head_pod_spec,
    head_template,
    init_names,
    ray,
    variables,
    worker,
    worker_template,
)

LONG = "n" * 53

# --- §6.1 names


def test_names_of_head_and_worker() -> None:
    assert head()["metadata"]["generateName"] == "c-head-"
    assert "name" not in head()["metadata"]
    assert worker()["metadata"]["generateName"] == "c-w-worker-"


def test_long_names_lose_their_end() -> None:
    pod = head_pod(cluster(name=LONG), Config())
    assert pod["metadata"]["generateName"] == f"{'n' * 50}-head-"
    group = {"groupName": "Group-" + "g" * 60}
    assert worker(group=group)["metadata"]["generateName"] == f"c-group-{'g' * 42}-worker-"


def test_a_name_in_the_heads_template_is_kept_and_in_a_workers_is_not() -> None:
    metadata = head(head_template(name="mine"))["metadata"]
    assert (metadata["name"], metadata["generateName"]) == ("mine", "c-head-")
    template = worker_template(metadata={"name": "mine"})
    assert "name" not in worker(group={"template": template})["metadata"]


def test_a_fixed_name_for_the_head() -> None:
    config = Config(enable_deterministic_head_pod_name=True)
    metadata = head(head_template(name="mine"), config=config)["metadata"]
    assert metadata["name"] == "c-head"
    assert "generateName" not in metadata


def test_the_namespace_is_the_clusters_and_the_rest_of_the_metadata_is_kept() -> None:
    metadata = head(head_template(namespace="other", finalizers=["a/b"], annotations={"x": "y"}))["metadata"]
    assert metadata["namespace"] == "ns"
    assert metadata["finalizers"] == ["a/b"]
    assert metadata["annotations"]["x"] == "y"


def test_the_cluster_owns_its_pods() -> None:
    reference = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "name": "c",
        "uid": UID,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert head()["metadata"]["ownerReferences"] == [reference]
    assert worker()["metadata"]["ownerReferences"] == [reference]


# --- §6.2 labels

HEAD_LABELS = {
    "ray.io/is-ray-node": "yes",
    "ray.io/cluster": "c",
    "ray.io/node-type": "head",
    "ray.io/group": "headgroup",
    "ray.io/identifier": "c-head",
    "app.kubernetes.io/name": "kuberay",
    "app.kubernetes.io/created-by": "kuberay-operator",
}
WORKER_LABELS = {
    **HEAD_LABELS,
    "ray.io/node-type": "worker",
    "ray.io/group": "w",
    "ray.io/identifier": "c-worker",
    "ray.io/worker-group-replica-index": "0",
}


def test_labels() -> None:
    assert head()["metadata"]["labels"] == HEAD_LABELS
    assert worker()["metadata"]["labels"] == WORKER_LABELS


def test_labels_of_the_template_win_and_those_of_the_group_win_over_them() -> None:
    own = {"ray.io/is-ray-node": "no", "a": "template", "b": "template", "ray.io/cluster": "other"}
    group = {"b": "group", "ray.io/group": "other", "ray.io/node-type": "other"}
    found = head(head_template(labels=own), make.head(labels=group))["metadata"]["labels"]
    assert found == {**HEAD_LABELS, "ray.io/is-ray-node": "no", "a": "template", "b": "group"}


@pytest.mark.parametrize(
    ("gate", "hosts", "wanted"),
    [
        (True, 1, {"ray.io/worker-group-replica-index": "3"}),
        (
            True,
            2,
            {
                "ray.io/worker-group-replica-index": "3",
                "ray.io/worker-group-replica-name": "w-abcde",
                "ray.io/replica-host-index": "1",
            },
        ),
        (False, 2, {}),
    ],
)
def test_labels_of_a_workers_place(gate: bool, hosts: int, wanted: dict[str, str]) -> None:
    gates = Gates.default().with_overrides(f"RayMultiHostIndexing={str(gate).lower()}")
    pod = worker(
        config=Config(gates=gates, default_pod_labels={"ray.io/worker-group-replica-index": "default"}),
        group={"numOfHosts": hosts},
        replica_index=3,
        replica_name="w-abcde",
        host_index=1,
    )
    found = pod["metadata"]["labels"]
    keys = set(found) - {*HEAD_LABELS} if gate else set(wanted)
    assert {key: found[key] for key in keys} == wanted


def test_labels_and_annotations_of_the_operators_configuration_fill_gaps() -> None:
    config = Config(
        default_pod_labels={"team": "x", "ray.io/cluster": "no"},
        default_pod_annotations={"note": "default", "other": "default"},
    )
    metadata = head(head_template(annotations={"note": "mine"}), config=config)["metadata"]
    assert metadata["labels"] == {**HEAD_LABELS, "team": "x"}
    assert metadata["annotations"]["note"] == "mine"
    assert metadata["annotations"]["other"] == "default"
    assert worker(config=config)["metadata"]["annotations"] == {"note": "default", "other": "default"}


@pytest.mark.parametrize(
    ("kind", "on_head", "on_worker"),
    [("RayService", "false", "true"), ("RayJob", None, None), ("Other", None, None)],
)
def test_the_serve_label(kind: str, on_head: str | None, on_worker: str | None) -> None:
    origin = make.labels({"ray.io/originated-from-crd": kind})
    assert head(origin)["metadata"]["labels"].get("ray.io/serve") == on_head
    assert worker(origin)["metadata"]["labels"].get("ray.io/serve") == on_worker


# --- §6.3, §5.2 annotations


def test_annotations_of_the_head_say_who_made_it_from_what() -> None:
    found = cluster()
    pod = head_pod(found, Config())
    assert pod["metadata"]["annotations"] == {
        "ray.io/ft-enabled": "false",
        "ray.io/upgrade-strategy-recreate-hash": raycluster_spec_hash(found.spec.raw),
        "ray.io/kuberay-version": f"kuberay-op-{__version__}",
    }
    assert plain_head_pod(found, Config())["metadata"]["annotations"] == {"ray.io/ft-enabled": "false"}
    assert "annotations" not in worker()["metadata"]


# --- §6.4 the containers, in order


def test_the_order_of_containers() -> None:
    config = gated(
        "RayClusterMTLS",
        "RayClusterHistoryServer",
        head_sidecar_containers=({"name": "operators", "image": "x"},),
        worker_sidecar_containers=({"name": "operators-too", "image": "x"},),
    )
    everything = make.cluster(
        tlsOptions={"enabled": True}, historyServerOptions={"collectorOptions": {"image": "collect"}}
    )
    own: list[Json] = [{"name": "own-init", "image": "x"}]
    ray_and_own: list[Json] = [{"name": "ray", "image": "x"}, {"name": "own", "image": "x"}]
    pod = head(
        everything,
        make.autoscaling(),
        head_pod_spec(containers=ray_and_own, initContainers=own),
        config=config,
    )
    assert [c["name"] for c in pod["spec"]["containers"]] == [
        "ray", "own", "autoscaler", "ray-history-collector", "operators",
    ]  # fmt: skip
    assert init_names(pod) == ["wait-for-tls-ip-san", "own-init"]
    template: Json = {"spec": {"containers": ray_and_own, "initContainers": own}}
    pod = worker(everything, make.autoscaling(), config=config, group={"template": template})
    assert [c["name"] for c in pod["spec"]["containers"]] == [
        "ray", "own", "ray-history-collector", "operators-too",
    ]  # fmt: skip
    assert init_names(pod) == ["wait-for-tls-ip-san", "own-init", "wait-gcs-ready"]
    sidecar = pod["spec"]["containers"][-1]
    assert sidecar == {"name": "operators-too", "image": "x"}, "sidecars get nothing"


@pytest.mark.parametrize(
    ("declared", "wanted"),
    [
        (None, [{"name": "metrics", "containerPort": 8080}]),
        (
            [{"name": "serve", "containerPort": 8000}],
            [{"name": "serve", "containerPort": 8000}, {"name": "metrics", "containerPort": 8080}],
        ),
        ([{"name": "metrics", "containerPort": 9}], [{"name": "metrics", "containerPort": 9}]),
    ],
)
def test_the_metrics_port(declared: list[Json] | None, wanted: list[Json]) -> None:
    own = {"ports": declared} if declared else {}
    assert ray(head(head_container(**own)))["ports"] == wanted
    assert ray(worker(group={"template": worker_template(own)}))["ports"] == wanted


# --- §6.7 the wait for the head


def test_a_worker_waits_for_the_head() -> None:
    own: Json = {
        "imagePullPolicy": "Always",
        "securityContext": {"runAsUser": 1},
        "env": [{"name": "A", "value": "1"}],
        "volumeMounts": [{"name": "certs", "mountPath": "/certs"}],
    }
    pod = worker(
        make.head(rayStartParams={"port": "7000"}), make.redis(), group={"template": worker_template(own)}
    )
    [waiting] = pod["spec"]["initContainers"]
    assert waiting["name"] == "wait-gcs-ready"
    assert waiting["image"] == make.IMAGE
    assert waiting["imagePullPolicy"] == "Always"
    assert waiting["securityContext"] == {"runAsUser": 1}
    assert waiting["volumeMounts"] == own["volumeMounts"]
    assert variables(waiting) == [("A", "1"), ("FQ_RAY_IP", HOST), ("RAY_IP", "c-head-svc")]
    amounts = {"cpu": "200m", "memory": "256Mi"}
    assert waiting["resources"] == {"limits": amounts, "requests": amounts}
    assert waiting["command"] == ["/bin/bash", "-c", "--"]
    [script] = waiting["args"]
    assert f"ray health-check --address {HOST}:7000" in script
    assert "sleep 5" in script
    assert "docs.ray.io" in script


def test_no_wait_when_the_operator_is_told_so() -> None:
    assert init_names(worker(config=Config(enable_init_container_injection=False))) == []
    assert init_names(head()) == []


# --- §6.13 volumes


def shm(pod: Json) -> tuple[list[Any], list[Any]]:
    volumes = [v for v in pod["spec"].get("volumes", ()) if v["name"] == "shared-mem"]
    mounts = [m for m in ray(pod).get("volumeMounts", ()) if m["mountPath"] == "/dev/shm"]
    return volumes, mounts


MOUNT = {"name": "shared-mem", "mountPath": "/dev/shm"}


@pytest.mark.parametrize(
    ("resources", "size"),
    [
        ({"limits": {"memory": "2Gi"}, "requests": {"memory": "1Gi"}}, {"sizeLimit": "2Gi"}),
        ({"requests": {"memory": "1Gi"}}, {"sizeLimit": "1Gi"}),
        ({}, {}),
    ],
)
def test_shared_memory(resources: Json, size: Json) -> None:
    volume = {"name": "shared-mem", "emptyDir": {"medium": "Memory", **size}}
    assert shm(head(head_container(resources=resources))) == ([volume], [MOUNT])
    assert shm(worker(group={"template": worker_template({"resources": resources})})) == ([volume], [MOUNT])


def test_no_shared_memory_where_the_user_keeps_objects_elsewhere() -> None:
    assert shm(head(make.head(rayStartParams={"plasma-directory": ""}))) == ([], [])


def test_no_shared_memory_where_something_is_mounted() -> None:
    own = {"name": "mine", "mountPath": "/dev/shm"}
    assert shm(head(head_container(volumeMounts=[own]))) == ([], [own])
    near = {"name": "mine", "mountPath": "/dev/shm/"}  # only exactly that path counts
    assert shm(head(head_container(volumeMounts=[near])))[1] == [MOUNT]


def test_a_volume_of_that_name_is_used() -> None:
    own = {"name": "shared-mem", "emptyDir": {"sizeLimit": "9Gi"}}
    assert shm(head(head_pod_spec(volumes=[own]))) == ([own], [MOUNT])


def test_logs_are_shared_with_the_autoscaler() -> None:
    pod = head(make.autoscaling())
    mount = {"name": "ray-logs", "mountPath": "/tmp/ray"}
    assert {"name": "ray-logs", "emptyDir": {}} in pod["spec"]["volumes"]
    assert [mount in c["volumeMounts"] for c in pod["spec"]["containers"]] == [True, True]
    names = [v["name"] for v in worker(make.autoscaling())["spec"]["volumes"]]
    assert names == ["shared-mem"]


def test_logs_are_not_mounted_twice() -> None:
    own = {"name": "mine", "mountPath": "/tmp/ray"}
    pod = head(make.autoscaling(volumeMounts=[own]), head_container(volumeMounts=[own]))
    assert [v["name"] for v in pod["spec"]["volumes"]] == ["shared-mem"]


# --- §6.14 restart policy and account


@pytest.mark.parametrize(
    ("part", "wanted"),
    [
        (make.autoscaling("v2"), "Never"),
        (make.autoscaling("v1"), "OnFailure"),
        (make.autoscaling(), "OnFailure"),
        (make.cluster(autoscalerOptions={"version": "v2"}), "OnFailure"),  # autoscaling is off
    ],
)
def test_restart_policy(part: make.Part, wanted: str) -> None:
    assert head(part, head_pod_spec(restartPolicy="OnFailure"))["spec"]["restartPolicy"] == wanted
    template = worker_template(restartPolicy="OnFailure")
    assert worker(part, group={"template": template})["spec"]["restartPolicy"] == wanted
    assert ("restartPolicy" in head(part)["spec"]) is (wanted == "Never")


@pytest.mark.parametrize(
    ("own", "autoscaling", "wanted"),
    [
        (None, False, None),
        ("mine", False, "mine"),
        (None, True, "c"),
        ("mine", True, "mine"),
        ("m" * 60, True, "m" * 60),  # decided (§16.3 30): not clipped, it would name nobody
    ],
)
def test_service_account(own: str | None, autoscaling: bool, wanted: str | None) -> None:
    parts = [make.autoscaling()] if autoscaling else []
    if own:
        parts.append(head_pod_spec(serviceAccountName=own))
    assert head(*parts)["spec"].get("serviceAccountName") == wanted
    assert "serviceAccountName" not in worker(*parts)["spec"]


def test_the_account_of_a_long_name_is_clipped_as_it_is_made() -> None:
    pod = head_pod(cluster(make.autoscaling(), name="1" + "n" * 49 + "abc"), Config())
    assert pod["spec"]["serviceAccountName"] == "n" * 47 + "abc"
