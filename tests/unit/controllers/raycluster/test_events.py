"""Events: what happened, once, with the reasons that clients know."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.controllers.raycluster.events import notes, restart_policy_notes
from kuberay_op.controllers.raycluster.failures import failures_of, without_random_name
from kuberay_op.features import Gates
from kuberay_op.kube.errors import Forbidden
from kuberay_op.plan.actions import Create, Delete, Outcome, Update
from kuberay_op.testing import make, pods

OWNER = make.raycluster("a", make.stored())
Json = dict[str, Any]


def created(pod: Json) -> Outcome:
    nameless = {**pod, "metadata": {**pod["metadata"], "name": None, "generateName": "a-"}}
    return Outcome(Create(nameless, "x", lane="l"), pod)


def deleted(pod: Json, reason: str, lane: str = "deleted Pods", **more: Any) -> Outcome:
    return Outcome(Delete(pod, reason, lane=lane), **more)


def said(*outcomes: Outcome) -> list[tuple[str, str, str, str]]:
    return [(note.type, note.reason, note.action, note.text) for note in notes(OWNER, outcomes)]


def test_a_head_and_a_worker_are_told_by_name() -> None:
    assert said(created(pods.head(OWNER, "h")), created(pods.worker(OWNER, "w"))) == [
        ("Normal", "CreatedHeadPod", "Create", "Created head Pod default/h"),
        ("Normal", "CreatedWorkerPod", "Create", "Created worker Pod default/w"),
    ]


def test_many_workers_of_a_group_are_one_event() -> None:
    made = [created(pods.worker(OWNER, f"w{number}")) for number in range(12)]
    more = [created(pods.worker(OWNER, "g0", "gpu"))]
    names = ", ".join(f"w{number}" for number in range(10))
    text = f"Created 12 worker Pods of group workers in default: {names} and 2 more"
    assert said(*made, *more) == [
        ("Normal", "CreatedWorkerPod", "Create", text),
        ("Normal", "CreatedWorkerPod", "Create", "Created worker Pod default/g0"),
    ]


def test_deletions_say_why() -> None:
    assert said(
        deleted(pods.head(OWNER, "h"), "phase Failed, restart policy Never"),
        deleted(pods.worker(OWNER, "w0"), "phase Failed, restart policy Never"),
        deleted(pods.worker(OWNER, "w1"), "too many"),
        deleted(pods.worker(OWNER, "w2"), "too many"),
    ) == [
        (
            "Normal",
            "DeletedHeadPod",
            "Delete",
            "Deleted head Pod default/h; phase Failed, restart policy Never",
        ),
        (
            "Normal",
            "DeletedWorkerPod",
            "Delete",
            "Deleted worker Pod default/w0; phase Failed, restart policy Never",
        ),
        (
            "Normal",
            "DeletedWorkerPod",
            "Delete",
            "Deleted 2 worker Pods of group workers in default: w1, w2; too many",
        ),
    ]


def test_all_pods_going_is_one_event() -> None:
    assert said(
        deleted(pods.worker(OWNER, "w0"), "suspended", "all workers"),
        deleted(pods.head(OWNER, "h"), "suspended", "all heads"),
    ) == [("Normal", "DeletedPod", "Delete", "Deleted 2 Pods in default: w0, h; suspended")]


def test_what_was_gone_already_is_not_told() -> None:
    assert said(deleted(pods.worker(OWNER, "w0"), "x", changed=False)) == []


def test_objects_have_reasons_of_their_own() -> None:
    def thing(kind: str) -> Json:
        return {"kind": kind, "metadata": {"name": "x", "namespace": "ns"}}

    assert said(Outcome(Create(thing("Service"), "x"))) == [
        ("Normal", "CreatedService", "Create", "Created service ns/x")
    ]
    update = Update(thing("Ingress"), {}, {}, "x")
    assert said(Outcome(update)) == [("Normal", "UpdatedIngress", "Update", "Updated ingress ns/x")]
    assert said(Outcome(Create(thing("Secret"), "x"))) == []
    assert said(Outcome(Create(thing("PodGroup"), "x"), error=Forbidden("no"))) == [
        (
            "Warning",
            "FailedToCreatePodGroup",
            "Create",
            "Failed to create PodGroup ns/x for the cluster default/a, no",
        )
    ]


def refused(pod: Json, text: str) -> Outcome:
    nameless = {**pod, "metadata": {"generateName": "a-w-", "labels": pod["metadata"]["labels"]}}
    return Outcome(Create(nameless, "x", lane="l"), error=Forbidden(text))


def test_the_same_failure_of_many_pods_is_told_once() -> None:
    outcomes = [
        refused(pods.worker(OWNER), f'pods "a-w-{suffix}" is forbidden: exceeded quota')
        for suffix in ("bcdfg", "24567", "xzxzx")
    ]
    cause = 'pods "a-w-*" is forbidden: exceeded quota'
    text = f"Failed to create worker Pod for the cluster default/a, {cause}"
    assert said(*outcomes) == [("Warning", "FailedToCreateWorkerPod", "Create", text)]


def test_every_operation_on_pods_has_its_failure() -> None:
    head, worker = pods.head(OWNER), pods.worker(OWNER)
    no = Forbidden("no")
    outcomes = [
        refused(head, "no"),
        deleted(head, "x", error=no),
        deleted(worker, "x", error=no),
        deleted(worker, "x", "all workers", error=no),
        Outcome(Update(head, head, {}, "x", lane="stamped head"), error=no),
    ]
    found = [said(outcome)[0][1:3] for outcome in outcomes]
    assert found == [
        ("FailedToCreateHeadPod", "Create"),
        ("FailedToDeleteHeadPod", "Delete"),
        ("FailedToDeleteWorkerPod", "Delete"),
        ("FailedToDeletePodCollection", "Delete"),
        ("FailedToUpdatePod", "Update"),
    ]
    assert [failures_of([outcome])[0].mark for outcome in outcomes][-1] == ""


def test_only_names_that_the_server_made_up_are_cut_out() -> None:
    obj = {"metadata": {"generateName": "a-w-"}}
    assert without_random_name('pods "a-w-bcdfg" and a-w-other', obj) == 'pods "a-w-*" and a-w-other'
    assert without_random_name("a-w-bcdfg", {"metadata": {"name": "a"}}) == "a-w-bcdfg"


@pytest.mark.parametrize(
    ("text", "reason", "look"),
    [
        ("exceeded quota: q.1, requested: pods=1", "QuotaExceeded", "describe resourcequota q.1 -n default"),
        ('admission webhook "x" denied the request: no', "DeniedByAdmission", "get validatingwebhook"),
        ('violates PodSecurity "restricted:latest"', "DeniedByAdmission", "describe raycluster a -n default"),
        (
            'User "b c" cannot create resource "pods" in API group',
            "OperatorForbidden",
            "auth can-i create pods -n default --as='b c'",
        ),
        (
            'error looking up service account ns/x: serviceaccount "x" not found',
            "ServiceAccountMissing",
            "get serviceaccounts -n default",
        ),
        (
            "services default/a-head-svc exists and is not ours: its controller is nobody",
            "NameTaken",
            "get services a-head-svc -n default -o yaml",
        ),
        ('failed calling webhook "x": dial tcp', "WebhookUnreachable", "get validatingwebhook"),
        ("anything else", "WriteRefused", "describe raycluster a -n default"),
    ],
)
def test_refusals_are_told_apart(text: str, reason: str, look: str) -> None:
    found = failures_of([refused(pods.worker(OWNER), text)])[0].obstacle(RayCluster(OWNER))
    assert found.reason == reason
    assert found.text == f"a worker Pod of group workers cannot be made: {text}"
    assert found.look.startswith(f"kubectl {look}")


def test_the_first_autoscaler_is_warned_of_pods_that_restart() -> None:
    template = make.pod_template("ray", restartPolicy="Always")
    gates = Gates.default().enabled
    risky = make.raycluster("a", make.stored(), make.workers(1, template=template), make.autoscaling("v1"))
    found = list(restart_policy_notes(risky, gates))
    assert [(note.type, note.reason, note.action) for note in found] == [
        ("Warning", "InvalidRayClusterSpec", "Validate")
    ]
    assert "workerGroupSpecs[0]" in found[0].text
    fine = make.raycluster("a", make.stored(), make.workers(1, template=template), make.autoscaling("v2"))
    assert list(restart_policy_notes(fine, gates)) == []
