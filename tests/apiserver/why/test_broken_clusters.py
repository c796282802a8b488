"""Clusters that are really broken, each in its own way: the first line of ``kuberay-op why`` names the cause.

What a kubelet reports (images, crashes) is played by the test on a node that nobody else takes care of;
everything else is what the API server, the scheduler and the operator say themselves.
"""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.api import labels
from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.hooks import Refuse, hookimpl
from kuberay_op.kube.resource import EVENTS, PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES, Resource
from kuberay_op.testing import make
from kuberay_op.testing.operator import eventually

pytestmark = [
    pytest.mark.apiserver,
    pytest.mark.loop_guard(milliseconds=10_000),  # the loop shares its thread's lock with the command
]

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
LIMITS = Resource("", "v1", "limitranges", "LimitRange")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
ADMISSION = "admissionregistration.k8s.io"
POLICIES = Resource(
    ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
BINDINGS = Resource(
    ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False
)
WEBHOOKS = Resource(
    ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
)


def template(**pod: Any) -> make.Part:
    return make.head(template=make.pod_template("ray-head", **pod))


def works(place: Any, lines: list[str]) -> str:
    """The command below the first line, tried out."""
    command = lines[1].strip()
    assert command.startswith("kubectl ")
    place.plane.kubectl(*command.split()[1:])
    return command


# --- what the API server refuses


async def test_quota(begin: Any) -> None:
    async with begin() as place:
        await place.put(QUOTAS, "small", spec={"hard": {"pods": "1"}})

        async def counted() -> bool:
            found = await place.client.get(QUOTAS, "small", place.namespace)
            return "used" in found.get("status", {})

        await eventually(counted)
        await place.create(make.workers(2))
        lines = await place.until("exceeded quota: small")
        assert "a worker Pod of group workers cannot be made" in lines[0]
        assert works(place, lines) == f"kubectl describe resourcequota small -n {place.namespace}"
        assert "- group workers has 0 of 2 workers (this may need time only)" in lines


async def test_limit_range(begin: Any) -> None:
    async with begin() as place:
        await place.put(LIMITS, "low", spec={"limits": [{"type": "Container", "max": {"memory": "1Gi"}}]})
        await place.create()
        lines = await place.until("maximum memory usage per Container is 1Gi")
        assert "the head Pod cannot be made" in lines[0]
        works(place, lines)


async def test_pod_security(begin: Any) -> None:
    async with begin() as place:
        strict = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
        await place.client.patch(NAMESPACES, place.namespace, None, strict, reason="a test")
        await place.create()
        lines = await place.until('violates PodSecurity "restricted:latest"')
        works(place, lines)


async def test_admission_policy(begin: Any) -> None:
    async with begin() as place:
        policy = f"no-ray-{place.namespace}"
        here = {"matchLabels": {"kubernetes.io/metadata.name": place.namespace}}
        pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
        await place.put(
            POLICIES,
            policy,
            spec={
                "matchConstraints": {"resourceRules": [pods], "namespaceSelector": here},
                "validations": [{"expression": "false", "message": "no Ray on Tuesdays"}],
            },
        )
        await place.put(BINDINGS, policy, spec={"policyName": policy, "validationActions": ["Deny"]})

        async def in_force() -> bool:
            try:
                await place.put(PODS, "probe", spec={"containers": [{"name": "x", "image": "x"}]})
            except Exception as error:  # noqa: BLE001 (whatever it says, it says no)
                return "Tuesdays" in str(error)
            await place.client.delete(PODS, "probe", place.namespace, grace=0, reason="a test")
            return False

        await eventually(in_force)
        await place.create()
        lines = await place.until("no Ray on Tuesdays")
        assert f"ValidatingAdmissionPolicy '{policy}'" in lines[0]
        works(place, lines)


async def test_webhook_that_does_not_answer(begin: Any) -> None:
    async with begin() as place:
        hook = f"guard.{place.namespace}.example.com"
        pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
        entry = {
            "name": hook,
            "clientConfig": {"url": "https://127.0.0.1:9/", "caBundle": ""},
            "rules": [pods],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": place.namespace}},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 2,
        }
        await place.put(WEBHOOKS, hook, webhooks=[entry])
        await place.create()
        lines = await place.until(f'failed calling webhook "{hook}"')
        works(place, lines)


async def test_service_account_that_is_missing(begin: Any) -> None:
    async with begin() as place:
        await place.create(template(serviceAccountName="nobody"))
        lines = await place.until('serviceaccount "nobody" not found')
        assert works(place, lines) == f"kubectl get serviceaccounts -n {place.namespace}"


async def test_name_that_somebody_else_has(begin: Any) -> None:
    async with begin() as place:
        theirs = await place.put(
            SERVICES, "a-head-svc", spec={"ports": [{"port": 1}], "selector": {"x": "y"}}
        )
        await place.create(make.workers(1))
        lines = await place.until("exists and is not ours")
        assert "Service a-head-svc cannot be made" in lines[0]
        assert works(place, lines) == f"kubectl get services a-head-svc -n {place.namespace} -o yaml"
        cluster = await place.client.get(RAY_CLUSTERS, "a", place.namespace)
        ready = next(each for each in cluster["status"]["conditions"] if each["type"] == "Ready")
        assert ready["reason"] == "NameTaken"
        now = await place.client.get(SERVICES, "a-head-svc", place.namespace)
        assert now["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"], "it is left alone"
        await place.client.delete(SERVICES, "a-head-svc", place.namespace, reason="the user gives way")

        async def ready_now() -> bool:
            return bool((await place.why()).exit_code == 0)

        await eventually(ready_now)


# --- what the scheduler says


async def test_no_node_that_fits(begin: Any) -> None:
    async with begin() as place:
        await place.create(template(nodeSelector={"no": "such-node"}))
        lines = await place.until("cannot be scheduled: 0/")
        assert "node affinity/selector" in lines[0]
        works(place, lines)


async def test_workers_that_want_too_much(begin: Any) -> None:
    async with begin() as place:
        await place.create(make.workers(2, template=make.pod_template("ray-worker", cpu="1000")))
        lines = await place.until("Insufficient cpu")
        assert "2 of 2 workers of group workers" in lines[0]
        works(place, lines)


async def test_volume_claim_that_is_missing(begin: Any) -> None:
    async with begin() as place:
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        await place.create(template(volumes=[volume]))
        lines = await place.until("volume claim data, which Pod a-head-")
        assert lines[0].endswith("mounts, does not exist; create it")
        works(place, lines)


async def test_volume_claim_without_a_volume(begin: Any) -> None:
    async with begin() as place:
        size = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]}
        await place.put(PERSISTENT_VOLUME_CLAIMS, "data", spec={**size, "storageClassName": "no-such-class"})
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        await place.create(template(volumes=[volume]))
        lines = await place.until("volume claim data, which Pod a-head-")
        assert "has no volume yet" in lines[0]
        assert works(place, lines) == f"kubectl describe persistentvolumeclaim data -n {place.namespace}"


# --- what kubelets report, played by the test


async def test_image(begin: Any) -> None:
    async with begin() as place:
        await place.create(await place.by_hand(), make.workers(1))
        waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
        name = await place.container(waiting, phase="Pending")
        lines = await place.until(f"head Pod {name} cannot get the image {make.IMAGE} of container ray-head")
        works(place, lines)


async def test_crash_loop(begin: Any) -> None:
    async with begin() as place:
        await place.create(await place.by_hand())
        ended = {"terminated": {"exitCode": 1, "message": "ModuleNotFoundError: No module named 'ray'"}}
        name = await place.container({"waiting": {"reason": "CrashLoopBackOff"}}, ended)
        lines = await place.until("ends with exit code 1 again and again: ModuleNotFoundError")
        assert lines[1].strip() == f"kubectl logs {name} -n {place.namespace} -c ray-head --previous"


async def test_out_of_memory(begin: Any) -> None:
    async with begin() as place:
        await place.create(await place.by_hand())
        ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
        await place.container({"waiting": {"reason": "CrashLoopBackOff"}}, ended)
        lines = await place.until("has container ray-head, which needs more memory than its limit")
        works(place, lines)


async def test_volume_that_cannot_be_mounted_is_told_by_an_event(begin: Any) -> None:
    async with begin() as place:
        await place.create(await place.by_hand())
        pod = await place.pod()
        await place.container({"waiting": {"reason": "ContainerCreating"}}, phase="Pending")
        regarding = {"kind": "Pod", "namespace": place.namespace, "name": pod["metadata"]["name"]}
        await place.put(
            EVENTS,
            "mount",
            type="Warning",
            reason="FailedMount",
            note='MountVolume.SetUp failed for volume "settings" : configmap "settings" not found',
            regarding={**regarding, "uid": pod["metadata"]["uid"]},
            eventTime="2026-01-01T00:00:00.000000Z",
            reportingController="kubelet",
            reportingInstance="by-hand",
            action="Mount",
        )
        lines = await place.until('FailedMount: MountVolume.SetUp failed for volume "settings"')
        works(place, lines)


async def test_node_that_does_not_answer(begin: Any) -> None:
    async with begin() as place:
        await place.create(await place.by_hand())
        lost = {"type": "Ready", "status": "False", "reason": "NodeNotReady"}
        await place.report(phase="Running", conditions=[lost])
        lines = await place.until("is on node by-hand-")
        assert "which does not answer" in lines[0]


async def test_worker_that_waits_for_the_head(begin: Any) -> None:
    async with begin() as place:
        await place.create(await place.by_hand())
        await place.report(phase="Pending", initContainerStatuses=[init("fetch-data")])
        lines = await place.until("has not got past its init container fetch-data (this may need time only)")
        assert lines[1].strip().endswith("-c fetch-data")


def init(name: str) -> dict[str, Any]:
    running = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    return {
        "name": name,
        "image": "x",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": running,
    }


# --- the cluster itself


async def test_invalid_spec(begin: Any) -> None:
    async with begin() as place:
        await place.create(make.head(rayStartParams={"num-cpus": "1"}, resources={"CPU": "1"}))
        lines = await place.until("The RayCluster spec is invalid: spec.headGroupSpec.resources")
        assert lines[1].strip().endswith("| kuberay-op validate -f -")


async def test_suspended(begin: Any) -> None:
    async with begin() as place:
        await place.create(make.suspended())
        await place.until("it is suspended; set spec.suspend to false to resume")


async def test_managed_by_somebody_else(begin: Any) -> None:
    async with begin() as place:
        await place.create(make.spec(managedBy="kueue.x-k8s.io/multikueue"))
        await place.until("spec.managedBy leaves it to kueue.x-k8s.io/multikueue")


async def test_two_groups_of_one_name(begin: Any) -> None:
    async with begin() as place:
        await place.create(make.workers(1), make.workers(1))
        await place.until("2 worker groups are called workers; only the first counts")


async def test_two_heads(begin: Any) -> None:
    async with begin() as place:
        await place.create()
        head = await place.pod()
        metadata = {key: head["metadata"][key] for key in ("labels", "ownerReferences")}
        spec = {"containers": [{"name": "ray-head", "image": "x"}]}
        await place.put(PODS, "second", metadata=metadata, spec=spec)
        lines = await place.until("there are 2 head Pods")
        assert lines[1].strip() == f"kubectl delete pod second -n {place.namespace}"


async def test_finalizer_of_somebody_else(begin: Any) -> None:
    async with begin() as place:
        held = {"metadata": {"finalizers": ["example.com/archive"]}}
        await place.create(lambda obj: obj["metadata"].update(held["metadata"]))
        await place.client.delete(RAY_CLUSTERS, "a", place.namespace, reason="a test")
        lines = await place.until("it is being deleted; finalizers hold it: example.com/archive")
        works(place, lines)
        await place.edit({"metadata": {"finalizers": None}})

        async def gone() -> bool:
            result = await place.why()
            return result.exit_code == 1 and "there is no RayCluster a" in str(result.exception)

        await eventually(gone)


async def test_deletion_that_waits_for_a_pod(begin: Any) -> None:
    async with begin() as place:
        await place.create(make.workers(1))
        name = (await place.pod(labels.WORKER))["metadata"]["name"]
        await place.edit({"metadata": {"finalizers": ["example.com/hold"]}}, PODS, name)
        await place.client.delete(
            RAY_CLUSTERS, "a", place.namespace, propagation="Foreground", reason="a test"
        )
        lines = await place.until(f"Pod {name} should be gone since")
        assert "finalizers hold it: example.com/hold" in lines[0]
        await place.edit({"metadata": {"finalizers": None}}, PODS, name)


class Particular:
    """A plugin that wants a label."""

    @hookimpl
    def kuberay_before_reconcile(self, scope: Any) -> Any:
        return Refuse("the label team is missing")


async def test_plugin_that_refuses(begin: Any) -> None:
    async with begin(plugins={"particular": Particular()}) as place:
        await place.create()
        lines = await place.until("plugin particular: the label team is missing")
        works(place, lines)
