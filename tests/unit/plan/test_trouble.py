"""One sentence about what is the matter with a Pod."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.plan.trouble import QUOTED, Trouble, quote, trouble
from kuberay_op.testing import make, pods

CLUSTER = make.raycluster("a", make.stored())


def unready(**status: Any) -> dict[str, Any]:
    return pods.worker(CLUSTER, phase="Pending", status=status)


def scheduled(reason: str, message: str) -> dict[str, Any]:
    entry = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return unready(conditions=[entry])


def container(state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "ray", "image": "ray:9", "state": state, **more}


CRASH = {"terminated": {"exitCode": 1, "reason": "Error"}}
OOM = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}


@pytest.mark.parametrize(
    ("pod", "reason", "words", "serious"),
    [
        (
            scheduled("Unschedulable", "0/3 nodes: 3 Insufficient cpu."),
            "Unschedulable",
            "Insufficient cpu",
            True,
        ),
        (scheduled("SchedulingGated", "gated"), "SchedulingGated", "scheduling gates", False),
        (unready(**pods.waiting("ErrImagePull", "x")), "ImagePullFailed", "cannot get the image", True),
        (unready(**pods.waiting("ImagePullBackOff")), "ImagePullFailed", "cannot get the image", True),
        (
            unready(**pods.waiting("CreateContainerConfigError", 'secret "s" not found')),
            "CreateContainerConfigError",
            'cannot start container ray: secret "s" not found',
            True,
        ),
        (unready(**pods.waiting("ContainerCreating")), "PodStarting", "is starting", False),
        (unready(**pods.waiting("")), "PodStarting", "is starting", False),
        (
            unready(
                containerStatuses=[container({"waiting": {"reason": "CrashLoopBackOff"}}, lastState=CRASH)]
            ),
            "ContainerCrashes",
            "has container ray, which ends with exit code 1 again and again",
            True,
        ),
        (
            unready(
                containerStatuses=[container({"waiting": {"reason": "CrashLoopBackOff"}}, lastState=OOM)]
            ),
            "OutOfMemory",
            "needs more memory than its limit",
            True,
        ),
        (
            unready(containerStatuses=[container({"waiting": {"reason": "CrashLoopBackOff"}})]),
            "ContainerCrashes",
            "ends again and again",
            True,
        ),
        (
            unready(initContainerStatuses=[container(CRASH)], containerStatuses=[container({"waiting": {}})]),
            "ContainerCrashes",
            "exit code 1",
            True,
        ),
        (
            unready(initContainerStatuses=[container({"terminated": {"exitCode": 0}})]),
            "PodStarting",
            "is starting",
            False,
        ),
        (unready(), "PodStarting", "is starting", False),
        (pods.worker(CLUSTER, ready=False), "ContainersNotReady", "runs and is not ready", False),
        (
            pods.worker(CLUSTER, phase="Failed", status={"reason": "Evicted", "message": "disk is full"}),
            "PodEnded",
            "has ended (phase Failed (Evicted), restart policy Always): disk is full",
            True,
        ),
        (pods.worker(CLUSTER, terminating=True), "PodTerminating", "is being deleted", False),
        ({}, "PodStarting", "is starting", False),
    ],
)
def test_the_matter_is_named(pod: dict[str, Any], reason: str, words: str, serious: bool) -> None:
    found = trouble(pod)
    assert found is not None
    assert found.reason == reason
    assert words in found.text
    assert found.serious == serious


def test_a_pod_that_runs_and_is_ready_has_none() -> None:
    assert trouble(pods.worker(CLUSTER)) is None


def test_a_finalizer_that_holds_a_pod_is_named() -> None:
    pod = pods.worker(CLUSTER, terminating=True)
    pod["metadata"]["finalizers"] = ["example.com/hold"]
    assert trouble(pod) == Trouble(
        "PodTerminating", "should be gone since 2026-01-01T00:00:00Z; finalizers hold it: example.com/hold"
    )


def test_a_silent_node_is_named() -> None:
    pod = pods.worker(CLUSTER, ready=False)
    pod["status"]["conditions"][0]["reason"] = "NodeNotReady"
    pod["spec"]["nodeName"] = "n1"
    assert trouble(pod) == Trouble("NodeLost", "is on node n1, which does not answer")


def test_trying_to_pull_an_image_reads_the_same_all_the_time() -> None:
    one, two = (trouble(unready(**pods.waiting(word, word))) for word in ("ErrImagePull", "ImagePullBackOff"))
    assert one == two


def test_texts_of_others_are_put_on_one_line_and_cut() -> None:
    assert quote("a\n  b\tc") == "a b c"
    assert len(quote("x" * 1000)) == QUOTED + 1
