"""Yes-or-no questions, each at both sides of its border."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.api import predicates as ask
from kuberay_op.api.raycluster import RayClusterSpec, RayClusterStatus
from kuberay_op.api.rayjob import RayJobSpec
from kuberay_op.api.rayservice import RayServiceSpec, RayServiceStatus

Json = dict[str, Any]


def on(_: str) -> bool:
    return True


def off(_: str) -> bool:
    return False


def test_autoscaling() -> None:
    assert ask.autoscaling_enabled(RayClusterSpec({"enableInTreeAutoscaling": True}))
    assert not ask.autoscaling_enabled(RayClusterSpec({"enableInTreeAutoscaling": False}))
    assert not ask.autoscaling_enabled(RayClusterSpec({"autoscalerOptions": {"version": "v2"}}))
    v1, v2 = (RayClusterSpec({"autoscalerOptions": {"version": version}}) for version in ("v1", "v2"))
    assert (ask.autoscaler_v1(v1), ask.autoscaler_v2(v1)) == (True, False)
    assert (ask.autoscaler_v1(v2), ask.autoscaler_v2(v2)) == (False, True)
    assert not ask.autoscaler_v1(RayClusterSpec({}))


@pytest.mark.parametrize(("value", "chosen"), [("1", True), ("true", True), ("True", False), ("0", False)])
def test_autoscaler_by_environment(value: str, chosen: bool) -> None:
    env = [{"name": "RAY_enable_autoscaler_v2", "value": value}]
    spec = RayClusterSpec({"headGroupSpec": {"template": {"spec": {"containers": [{"env": env}]}}}})
    assert ask.autoscaler_v2_by_env(spec) is chosen


def test_fault_tolerance() -> None:
    plain, options = RayClusterSpec({}), RayClusterSpec({"gcsFaultToleranceOptions": {}})
    assert ask.gcs_ft_enabled(options, {})
    assert ask.gcs_ft_enabled(plain, {"ray.io/ft-enabled": "TRUE"})
    assert not ask.gcs_ft_enabled(plain, {"ray.io/ft-enabled": "false"})
    assert not ask.gcs_ft_enabled(plain, {})
    assert not ask.gcs_ft_embedded(options)
    assert ask.gcs_ft_embedded(RayClusterSpec({"gcsFaultToleranceOptions": {"backend": "rocksdb"}}))


def test_security() -> None:
    assert ask.auth_enabled(RayClusterSpec({"authOptions": {"mode": "token"}}))
    assert not ask.auth_enabled(RayClusterSpec({"authOptions": {}}))
    assert ask.k8s_auth_enabled(RayClusterSpec({"authOptions": {"enableK8sTokenAuth": True}}))
    secure = RayClusterSpec({"tlsOptions": {"enabled": True}})
    assert ask.tls_enabled(secure, on)
    assert not ask.tls_enabled(secure, off)
    assert not ask.tls_enabled(RayClusterSpec({"tlsOptions": {}}), on)


def test_management() -> None:
    for view in (RayClusterSpec, RayJobSpec, RayServiceSpec):
        assert not ask.externally_managed(view({}))
        assert not ask.externally_managed(view({"managedBy": "ray.io/kuberay-operator"}))
        assert ask.externally_managed(view({"managedBy": "kueue.x-k8s.io/multikueue"}))
        assert ask.externally_managed(view({"managedBy": ""}))


def test_suspend_state_is_the_first_that_holds() -> None:
    def status(*conditions: tuple[str, str]) -> RayClusterStatus:
        return RayClusterStatus({"conditions": [{"type": t, "status": s} for t, s in conditions]})

    assert ask.suspend_state(status(("RayClusterSuspending", "False"), ("RayClusterSuspended", "True"))) == (
        "RayClusterSuspended"
    )
    assert ask.suspend_state(status(("RayClusterSuspending", "True"), ("RayClusterSuspended", "True"))) == (
        "RayClusterSuspending"
    )
    assert ask.suspend_state(status(("HeadPodReady", "True"))) == ""


def test_upgrades() -> None:
    spec = RayServiceSpec({"upgradeStrategy": {"type": "NewClusterWithIncrementalUpgrade"}})
    assert ask.incremental_upgrade(spec, on)
    assert not ask.incremental_upgrade(spec, off)
    assert not ask.incremental_upgrade(RayServiceSpec({}), on)


@pytest.mark.parametrize(
    ("pending", "capacity", "traffic", "complete"),
    [
        ("b", 0, 100, True),
        ("", 0, 100, False),
        ("b", 1, 100, False),
        ("b", 0, 99, False),
        ("b", None, 100, False),
    ],
)
def test_upgrade_complete(pending: str, capacity: int | None, traffic: int, complete: bool) -> None:
    status = RayServiceStatus(
        {
            "activeServiceStatus": {"rayClusterName": "a", "targetCapacity": capacity},
            "pendingServiceStatus": {"rayClusterName": pending, "trafficRoutedPercent": traffic},
        }
    )
    assert ask.upgrade_complete(status) is complete


@pytest.mark.parametrize(
    ("conditions", "result"),
    [
        ([("Complete", "True")], "Complete"),
        ([("Failed", "True")], "Failed"),
        ([("FailureTarget", "True"), ("Complete", "True")], "Failed"),
        ([("Complete", "False"), ("Suspended", "True")], ""),
        ([], ""),
    ],
)
def test_job_result(conditions: list[tuple[str, str]], result: str) -> None:
    job = {"status": {"conditions": [{"type": t, "status": s} for t, s in conditions]}}
    assert ask.job_result(job) == result


def true(*types: str) -> list[Json]:
    return [{"type": t, "status": "True"} for t in types]


def test_gateways_and_routes() -> None:
    assert ask.gateway_ready({"status": {"conditions": true("Accepted", "Programmed")}})
    assert not ask.gateway_ready({"status": {"conditions": true("Accepted")}})
    assert not ask.gateway_ready({})

    def route(conditions: list[Json], **parent: str) -> Json:
        return {"status": {"parents": [{"parentRef": parent, "conditions": conditions}]}}

    good = true("Accepted", "ResolvedRefs")
    assert ask.httproute_ready(route(good, name="g"), "g", "ns")
    assert ask.httproute_ready(route(good, name="g", namespace="ns"), "g", "ns")
    assert not ask.httproute_ready(route(good, name="g", namespace="other"), "g", "ns")
    assert not ask.httproute_ready(route(good, name="h"), "g", "ns")
    assert not ask.httproute_ready(route(true("Accepted"), name="g"), "g", "ns")
    assert not ask.httproute_ready({}, "g", "ns")


def test_openshift() -> None:
    assert ask.on_openshift(["apps", "route.openshift.io"])
    assert not ask.on_openshift(["apps", "my.route.openshift.io"])


def head(ready: Json | None, *containers: Json) -> Json:
    return {"status": {"conditions": [ready] if ready else [], "containerStatuses": list(containers)}}


def test_head_pod_readiness() -> None:
    ready = {"type": "Ready", "status": "True"}
    assert ask.head_pod_readiness(head(ready)) == ask.Readiness("True", "HeadPodRunningAndReady", "")
    assert ask.head_pod_readiness(head(None)) == ask.Readiness("False", "Unknown", "")
    assert ask.head_pod_readiness({}) == ask.Readiness("False", "Unknown", "")
    waiting = {
        "type": "Ready",
        "status": "False",
        "reason": "ContainersNotReady",
        "message": "not ready: [ray]",
    }
    answer = ask.head_pod_readiness(
        head(
            waiting,
            {"name": "ok", "state": {"running": {}}},
            {"name": "ray", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}},
            {"name": "late", "state": {"waiting": {"reason": "Other"}}},
        )
    )
    assert answer == ask.Readiness("False", "ImagePullBackOff", "not ready: [ray]; ray: no such image")
    ended = ask.head_pod_readiness(
        head(waiting, {"name": "ray", "state": {"terminated": {"reason": "Error"}}})
    )
    assert ended == ask.Readiness("False", "Error", "not ready: [ray]; ray: ")
    silent = ask.head_pod_readiness(head({"type": "Ready", "status": "False"}))
    assert silent == ask.Readiness("False", "Unknown", "")
