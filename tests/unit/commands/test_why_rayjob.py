"""``kuberay-op why rayjob``: the first line names the cause, whatever state the job is in."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.commands.why.answer import Answer
from kuberay_op.commands.why.look import Look
from kuberay_op.commands.why.rayjob import examine
from kuberay_op.errors import OperatorError
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import Forbidden, NotFound
from kuberay_op.kube.resource import Object, Resource
from kuberay_op.testing import make


class Stub(Look):
    """A look at objects that the test has made."""

    def __init__(self, *objects: Object, log: str = "", log_error: str = "") -> None:
        super().__init__(cast(Client, None), "default")
        self._objects = objects
        self._log = log
        self._log_error = log_error

    async def get(self, resource: Resource, name: str) -> Object:
        for obj in self._objects:
            if (obj["kind"], obj["metadata"]["name"]) == (resource.kind, name):
                return obj
        raise NotFound(f'{resource} "{name}" not found')

    async def find(self, resource: Resource, name: str, namespace: str | None = None) -> Object | None:
        try:
            return await self.get(resource, name)
        except NotFound:
            return None

    async def all(self, resource: Resource, namespace: str | None = None, **_: Any) -> list[Object] | None:
        return [obj for obj in self._objects if obj["kind"] == resource.kind]

    async def pod_log(self, pod: str, container: str, lines: int) -> str:
        return self._read()

    async def ray_log(self, cluster: RayCluster, job_id: str) -> str:
        return self._read()

    def _read(self) -> str:
        if self._log_error:
            raise Forbidden(self._log_error)
        return self._log


def job(state: str, *parts: make.Part, mode: str = "HTTPMode", **status: Any) -> Object:
    """A RayJob that an operator has seen."""
    known: dict[str, Any] = {}
    if state:
        known = {"jobId": "j-x", "rayClusterName": "c", "dashboardURL": "x:8265"}
    known |= {"jobDeploymentStatus": state, "observedGeneration": 1}
    spec = make.spec(submissionMode=mode)
    return make.rayjob("j", make.stored(), spec, make.status(**{**known, **status}), *parts)


CLUSTER = make.raycluster("c", make.stored(uid="uid-c"), make.status(state="ready"))


async def told(*objects: Object, **options: Any) -> Answer:
    """The answer."""
    return await examine(Stub(*objects, **options), "j")


@pytest.mark.parametrize(
    ("of", "line"),
    [
        (job("Failed", reason="AppFailed", message="ValueError: no data"),
         "not complete: it failed: AppFailed: ValueError: no data"),
        (job("ValidationFailed", message="spec.x: is bad"), "not complete: spec.x: is bad"),
        (job("Retrying", reason="AppFailed", message="boom", failed=1, retryTime="T"),
         "not complete: attempt 1 failed (AppFailed: boom); the next begins at T "
         "(this may need time only)"),
        (job("Suspended"), "not complete: spec.suspend is true"),
        (job("Waiting", mode="InteractiveMode"),
         "not complete: it waits for spec.jobId: submit a job to the cluster and name it there"),
        (job("Running", jobStatusCheckFailureStartTime="T", message="no connection"),
         "not running (not yet seen by Ray): Ray's dashboard has not answered since T: "
         "no connection"),
        (job("Running", message="Ray does not know the job j-x yet"),
         "not running (not yet seen by Ray): Ray does not know the job j-x yet "
         "(this may need time only)"),
        (job("Running", jobStatus="RUNNING"), "running (RUNNING)"),
        (job("Complete", jobStatus="SUCCEEDED"), "complete"),
        (job("", make.spec(managedBy="kueue.x-k8s.io/multikueue")),
         "not complete: another controller takes care of it: spec.managedBy is "
         "kueue.x-k8s.io/multikueue"),
        (job("Running", make.deleted("2026-01-01T01:00:00Z", "ray.io/rayjob-finalizer")),
         "not running (not yet seen by Ray): it is being deleted, and held by "
         "ray.io/rayjob-finalizer"),
        (job("", observedGeneration=None),
         "not complete: no operator has looked at it, and there is no Lease "
         "ray-operator-leader of one"),
    ],
)  # fmt: skip
async def test_the_first_line_names_the_cause(of: Object, line: str) -> None:
    assert (await told(of, CLUSTER)).as_text().splitlines()[0] == f"RayJob default/j is {line}"


async def test_while_the_cluster_comes_up_its_own_obstacles_are_told() -> None:
    answer = await told(job("Initializing"))
    assert "there is no RayCluster c" in answer.as_text().splitlines()[0]


async def test_a_plugin_that_objects_comes_first() -> None:
    objection = make.condition("PluginsAgree", holds=False, reason="PluginRefuses", message="plugin kai: no")
    answer = await told(job("Initializing", objection), CLUSTER)
    assert answer.obstacles[0].text == "plugin kai: no"


@pytest.mark.parametrize("mode", ["HTTPMode", "K8sJobMode", "SidecarMode"])
async def test_the_end_of_the_log_is_shown(mode: str) -> None:
    pod = {"kind": "Pod", "metadata": {"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    lines = [f"line {number}" for number in range(30)]
    answer = await told(job("Failed", mode=mode), CLUSTER, pod, log="\n".join(lines))
    shown = answer.as_text().splitlines()
    assert shown[-1] == "    line 29"
    assert "    line 10" in shown
    assert "    line 9" not in shown
    whose = "Ray's job j-x" if mode == "HTTPMode" else "Pod p"
    assert f"the log of {whose} ends:" in shown
    assert '"line 29"' in answer.as_json()


async def test_a_log_that_may_not_be_seen_is_named() -> None:
    answer = await told(job("Failed"), CLUSTER, log_error="403 Forbidden: no services/proxy")
    assert answer.as_text().splitlines()[-1] == "- the log of Ray's job j-x: 403 Forbidden: no services/proxy"


async def test_no_such_job() -> None:
    with pytest.raises(OperatorError, match="there is no RayJob j"):
        await told()
