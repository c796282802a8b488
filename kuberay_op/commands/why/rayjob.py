"""``kuberay-op why rayjob``: how a job stands, why it does not get on or has failed, and the end of its log.

The log is read with the caller's own rights: that of the submitter from its Pod, that of the program itself
from Ray, through the API server's proxy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kuberay_op.api import conditions, labels
from kuberay_op.api.names import SUBMITTER_CONTAINER
from kuberay_op.api.predicates import externally_managed
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.rayjob import RayJob
from kuberay_op.api.validation.rayjob import K8S_JOB_MODE, SIDECAR_MODE
from kuberay_op.commands.why import raycluster
from kuberay_op.commands.why.answer import Answer, Log
from kuberay_op.commands.why.look import Look
from kuberay_op.commands.why.operator import Operator, find_operator
from kuberay_op.controllers.raycluster.why import Obstacle
from kuberay_op.controllers.resources import RAY_CLUSTERS, RAY_JOBS
from kuberay_op.errors import OperatorError
from kuberay_op.kube.errors import Forbidden, NotFound
from kuberay_op.kube.resource import PODS, Object

#: Lines of a log that are shown.
LINES: Final = 20

#: States in which the cluster decides.
_ON_CLUSTER: Final = frozenset({"", conditions.DEPLOYMENT_INITIALIZING})


async def examine(look: Look, name: str) -> Answer:
    """What stands between a RayJob and its good end."""
    job = RayJob(await _owner(look, name))
    found = [*_objections(job), *_state(job)]
    if job.status.job_deployment_status in _ON_CLUSTER and job.status.ray_cluster_name:
        found += await _cluster(look, job)
    found = _around(job, await find_operator(look), found)
    logs = await _logs(look, job)
    return Answer(job.KIND, look.namespace, name, found, unseen=look.unseen, logs=logs, goal=_goal(job))


def _around(job: RayJob, operator: Operator, found: list[Obstacle]) -> list[Obstacle]:
    """What comes before all that the status says: whether anybody cares for the job at all."""
    if job.metadata.deletion_timestamp:
        held = ", ".join(job.metadata.finalizers) or "nothing"
        gone = operator.gone()
        text = f"it is being deleted, and held by {held}"
        return [*([gone] if gone else []), Obstacle("Deleting", text, _describe(job))]
    if externally_managed(job.spec):
        text = f"another controller takes care of it: spec.managedBy is {job.spec.managed_by}"
        return [Obstacle("ManagedElsewhere", text, _describe(job))]
    seen = job.status.observed_generation
    if seen != job.metadata.generation:
        return [operator.has_not_seen("it" if seen is None else "its last change"), *found]
    gone = None if _over(job) else operator.gone()
    return found if gone is None else [gone, *found]


def _goal(job: RayJob) -> str:
    """What a job is when nothing stands in its way."""
    state = job.status.job_deployment_status
    if state == conditions.DEPLOYMENT_RUNNING:
        return f"running ({job.status.job_status or 'not yet seen by Ray'})"
    return "complete"


def _over(job: RayJob) -> bool:
    return job.status.job_deployment_status in conditions.TERMINAL_DEPLOYMENT_STATUSES


def _objections(job: RayJob) -> Iterator[Obstacle]:
    """What plugins object to."""
    for condition in job.status.conditions:
        if condition.type == conditions.PLUGINS_AGREE and condition.status == conditions.FALSE:
            yield Obstacle(condition.reason, condition.message, _describe(job))


def _state(job: RayJob) -> Iterator[Obstacle]:
    """What the status itself says."""
    status = job.status
    state, said = status.job_deployment_status, status.message
    because = ": ".join(part for part in (status.reason, said) if part)
    match state:
        case conditions.DEPLOYMENT_COMPLETE:
            return
        case conditions.DEPLOYMENT_FAILED:
            yield Obstacle(status.reason or "Failed", f"it failed: {because}", _describe(job))
        case conditions.DEPLOYMENT_VALIDATION_FAILED:
            check = f"kubectl get rayjob {job.name} -n {job.namespace} -o yaml | kuberay-op validate -f -"
            yield Obstacle(conditions.VALIDATION_FAILED, said, check)
        case conditions.DEPLOYMENT_RETRYING:
            text = f"attempt {status.failed} failed ({because}); the next begins at {status.retry_time}"
            yield Obstacle("Retrying", text, _describe(job), serious=False)
        case conditions.DEPLOYMENT_SUSPENDED | conditions.DEPLOYMENT_SUSPENDING:
            resume = f"kubectl patch rayjob {job.name} -n {job.namespace} --type merge "
            yield Obstacle(state, "spec.suspend is true", resume + """-p '{"spec":{"suspend":false}}'""")
        case conditions.DEPLOYMENT_WAITING:
            text = "it waits for spec.jobId: submit a job to the cluster and name it there"
            yield Obstacle(state, text, f"kubectl port-forward service/{job.name}-head-svc 8265")
        case conditions.DEPLOYMENT_RUNNING if status.job_status_check_failure_start_time:
            since = status.job_status_check_failure_start_time
            yield Obstacle("RaySilent", f"Ray's dashboard has not answered since {since}: {said}", _head(job))
        case conditions.DEPLOYMENT_RUNNING if not status.job_status and said:
            yield Obstacle("NotSubmitted", said, _submitter(job), serious=False)
        case "" | conditions.DEPLOYMENT_INITIALIZING if said:
            yield Obstacle("Initializing", said, _describe(job))


async def _cluster(look: Look, job: RayJob) -> list[Obstacle]:
    """What stands in the way of the cluster of the job."""
    name = job.status.ray_cluster_name
    try:
        answer = await raycluster.examine(look, name)
    except OperatorError as error:
        return [Obstacle("Cluster", str(error), f"kubectl get rayclusters -n {job.namespace}")]
    if answer.ready:
        return []
    first = Obstacle("Cluster", f"its RayCluster {name} is not ready", serious=False)
    return [*answer.obstacles, first]


# --- logs


async def _logs(look: Look, job: RayJob) -> list[Log]:
    """The end of the log of whoever submits, or of the program itself."""
    mode = job.spec.submission_mode or K8S_JOB_MODE
    status = job.status
    if mode == K8S_JOB_MODE:
        return await _pod_log(look, f"batch.kubernetes.io/job-name={job.name}", "")
    if mode == SIDECAR_MODE:
        head = f"{labels.CLUSTER}={status.ray_cluster_name},{labels.NODE_TYPE}={labels.HEAD}"
        return await _pod_log(look, head, SUBMITTER_CONTAINER)
    if not (status.job_id and status.dashboard_url):
        return []
    try:
        text = await look.ray_log(await _cluster_of(look, job), status.job_id)
    except OperatorError as error:
        look.unseen.append(f"the log of Ray's job {status.job_id}: {error}")
        return []
    return _tail(f"Ray's job {status.job_id}", text)


async def _pod_log(look: Look, selector: str, container: str) -> list[Log]:
    """The log of the newest of these Pods."""
    pods = await look.all(PODS, label_selector=selector) or []
    if not pods:
        return []
    newest = max(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    name = str(newest["metadata"]["name"])
    try:
        text = await look.pod_log(name, container, LINES)
    except OperatorError as error:
        look.unseen.append(f"the log of Pod {name}: {error}")
        return []
    return _tail(f"Pod {name}", text)


def _tail(whose: str, text: str) -> list[Log]:
    lines = text.splitlines()[-LINES:]
    return [Log(whose, lines)] if lines else []


# --- reading


async def _owner(look: Look, name: str) -> Object:
    try:
        return await look.get(RAY_JOBS, name)
    except Forbidden as error:
        raise OperatorError(f"you may not get rayjobs in namespace {look.namespace}: {error}") from error
    except NotFound as error:
        text = f"there is no RayJob {name} in namespace {look.namespace}; see: kubectl get rayjobs -A"
        raise OperatorError(text) from error


async def _cluster_of(look: Look, job: RayJob) -> RayCluster:
    name = job.status.ray_cluster_name
    found = await look.find(RAY_CLUSTERS, name)
    if found is None:
        raise OperatorError(f"its RayCluster {name} is gone")
    return RayCluster(found)


# --- commands to look further


def _describe(job: RayJob) -> str:
    return f"kubectl describe rayjob {job.name} -n {job.namespace}"


def _head(job: RayJob) -> str:
    return f"kuberay-op why raycluster {job.status.ray_cluster_name} -n {job.namespace}"


def _submitter(job: RayJob) -> str:
    if (job.spec.submission_mode or K8S_JOB_MODE) == K8S_JOB_MODE:
        return f"kubectl logs job/{job.name} -n {job.namespace}"
    return _describe(job)
