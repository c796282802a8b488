"""The hooks of the plugin: what there is to decide is in ``decide.py``, what there is to do in ``job.py`` and
``clearing.py``; here it is put together, and what ended is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Counter

from kuberay_op.api import finalizers, names
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.view import Json
from kuberay_op.errors import Misconfigured
from kuberay_op.hooks import Options, Scope, Verdict, Wait, hookimpl
from kuberay_op_gcs_ft_redis import decide
from kuberay_op_gcs_ft_redis.clearing import Clearing, Order, Progress, Trust
from kuberay_op_gcs_ft_redis.connection import NotDirect, Place, place_of
from kuberay_op_gcs_ft_redis.decide import End, Outcome
from kuberay_op_gcs_ft_redis.job import cleanup_job

#: What the plain functions here do takes microseconds whatever the cluster is like: they need no thread.
kuberay_bounded: Final = True

#: Seconds between two looks: at Pods and Jobs (their changes are noticed anyway), and at the operator's work.
HEAD_LOOK: Final = 10.0
JOB_LOOK: Final = 30.0
OWN_LOOK: Final = 1.0

#: Clusters whose end was counted, remembered so that none is counted twice.
REMEMBERED: Final = 1000


class _Process:
    """What the plugin keeps for as long as the operator runs."""

    def __init__(self) -> None:
        self.clearing: Clearing | None = None
        self.ends: Counter | None = None
        self._counted: dict[str, None] = {}

    def count(self, uid: str, outcome: Outcome) -> None:
        """Count the end of a clean-up: a finalizer that could not be taken off is asked about again."""
        if self.ends is None or uid in self._counted:
            return
        self.ends.labels(outcome.value).inc()
        self._counted[uid] = None
        if len(self._counted) > REMEMBERED:
            del self._counted[next(iter(self._counted))]


_process = _Process()


@hookimpl
def kuberay_register_metrics(registry: CollectorRegistry) -> None:
    """One counter: how clean-ups ended."""
    _process.ends = Counter(
        "kuberay_op_redis_cleanups", "Clean-ups of Redis, by how they ended.", ["outcome"], registry=registry
    )
    for outcome in Outcome:
        _process.ends.labels(outcome.value)


@hookimpl
async def kuberay_started(options: Options) -> None:
    """Check the options, and get ready if it is for the operator to clear."""
    if options["deadlineSeconds"] < 1:
        raise Misconfigured(f"deadlineSeconds must be at least 1, not {options['deadlineSeconds']}")
    if options["mode"] != "operator":
        return
    ca_file = options["caFile"]
    if ca_file and not Path(ca_file).is_file():  # noqa: ASYNC240 (once, at the start)
        raise Misconfigured(f"caFile {ca_file}: there is no such file")
    _process.clearing = Clearing(Trust(ca_file, verify=options["verifyTls"]))
    _process.clearing.start()


@hookimpl
async def kuberay_stopping() -> None:
    """End what is under way; the next operator begins it anew."""
    clearing, _process.clearing = _process.clearing, None
    if clearing is not None:
        await clearing.stop()


@hookimpl
def kuberay_finalizers(scope: Scope) -> list[str]:
    """The finalizer, while the cluster has something in Redis."""
    if scope.kind != "RayCluster" or decide.spared(RayCluster(dict(scope.owner)), scope.config):
        return []
    return [finalizers.REDIS_CLEANUP]


@hookimpl
async def kuberay_finalize(scope: Scope, finalizer: str, options: Options) -> Verdict | None:
    """The next step on the way to a cluster that has left nothing behind."""
    if finalizer != finalizers.REDIS_CLEANUP or scope.kind != "RayCluster":
        return None
    step = _step(scope, options)
    if isinstance(step, Wait):
        return step
    _process.count(scope.uid, step.outcome)
    return step.verdict()


def _step(scope: Scope, options: Options) -> End | Wait:
    """How it ended, or what to wait for."""
    cluster = RayCluster(dict(scope.owner))
    if why := decide.spared(cluster, scope.config):
        return End(Outcome.NOT_NEEDED, why)
    job = decide.job_of(scope)
    if job is not None and (ended := decide.end_of_job(job)):
        return ended
    try:
        wanted = cleanup_job(cluster, scope.config, options)
    except Exception as error:  # noqa: BLE001 (a spec may be broken in any way, and must go all the same)
        return End(Outcome.FAILED, f"no Job can be made from this spec: {error!r}; keys may be left in Redis")
    said = _process.clearing.known(scope.uid) if _process.clearing else Progress()
    if said.ended:
        return End(Outcome.CLEARED if said.well else Outcome.FAILED, said.text)
    time = decide.Time(
        decide.seconds_since_deletion(scope), decide.deadline_of(cluster, options["deadlineSeconds"])
    )
    if time.left <= 0:
        return decide.gave_up(wanted, time.waited, said.text)
    return _wait(scope, options, wanted, time, begun=job is not None)


def _wait(scope: Scope, options: Options, job: Json, time: decide.Time, *, begun: bool) -> Wait:
    """What to wait for, until the deadline at the longest: the head, then the operator or the Job."""
    heads = decide.heads(scope)
    if heads and time.for_head > 0:
        text = f"waiting for the head Pod {', '.join(heads)} to go before Redis is cleaned up"
        return Wait(text, min(HEAD_LOOK, time.for_head), stop_pods=True)
    clearing, why = _process.clearing, ""
    if clearing is not None and not begun:  # a Job that was begun, by whomever, is left to end
        place, why = _own_way(job, options)
        if place is not None:
            said = clearing.progress(scope.uid, Order(place, scope.secret, time.left))
            return Wait(said.text, min(OWN_LOOK, time.left), stop_pods=True)
    text = f"waiting for Job {job['metadata']['name']} to remove the keys from Redis{why}"
    return Wait(text, min(JOB_LOOK, time.left), (job,), called="Redis cleanup Job", stop_pods=True)


def _own_way(job: Json, options: Options) -> tuple[Place | None, str]:
    """The Redis that the operator can clear itself, or why it needs the Job."""
    ray = job["spec"]["template"]["spec"]["containers"][names.RAY_CONTAINER]
    try:
        return place_of(ray, trusted=bool(options["caFile"])), ""
    except NotDirect as error:
        return None, f" (the operator cannot: {error})"
