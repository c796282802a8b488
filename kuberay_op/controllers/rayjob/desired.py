"""The RayJob's part in the pipeline: what there should be, and what to say about it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any, Final, Literal

from kuberay_op.api import conditions, finalizers, labels, names, reasons
from kuberay_op.api.predicates import externally_managed
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.rayjob import RayJob
from kuberay_op.api.validation import Failure
from kuberay_op.api.validation.rayjob import K8S_JOB_MODE
from kuberay_op.build.metadata import head_service_name
from kuberay_op.build.rayjob import job_cluster, job_head_service
from kuberay_op.build.submitter import submitter_job, submitter_template
from kuberay_op.config import Config
from kuberay_op.controllers.notes import Note
from kuberay_op.controllers.pipeline import Kind, Report
from kuberay_op.controllers.rayjob import machine, running
from kuberay_op.controllers.rayjob.events import child_notes, state_notes
from kuberay_op.controllers.rayjob.following import must_stop
from kuberay_op.controllers.rayjob.metrics import JobMetrics
from kuberay_op.controllers.rayjob.situation import RaySays, Settings, Situation, Step, left, mine, moment
from kuberay_op.controllers.rayjob.status import status_of
from kuberay_op.controllers.wishes import causes_of
from kuberay_op.frozen import thaw
from kuberay_op.hooks.gangs import job_gang
from kuberay_op.hooks.scope import Gang, Group, Scope
from kuberay_op.hooks.typed import Hooks
from kuberay_op.hooks.verdicts import Done, Verdict, Wait
from kuberay_op.plan.actions import Action, Delete, Desired, Manifest, Outcome, Update, Wanted

#: How long a deletion waits for Ray to take note that the job is over.
STOP_LIMIT: Final = timedelta(seconds=30)

#: Fields of a spec that count only as long as the whole of it is valid.
_SHAKY: Final = ("activeDeadlineSeconds", "preRunningDeadlineSeconds", "suspend", "backoffLimit")

#: States that an edit that is not valid does not touch: what was begun is finished.
_BEGUN: Final = frozenset(
    {
        conditions.DEPLOYMENT_COMPLETE,
        conditions.DEPLOYMENT_FAILED,
        conditions.DEPLOYMENT_SUSPENDING,
        conditions.DEPLOYMENT_RETRYING,
    }
)


class RayJobKind(Kind):
    """The RayJob's part in the pipeline; ``rng`` gives names and ids."""

    def __init__(self, config: Config, *, rng: Random, metrics: JobMetrics | None = None) -> None:
        self._config = config
        self._settings = Settings.of(config, config.gates.enabled)
        self._rng = rng
        self._metrics = metrics

    # --- what there is

    def situation(self, scope: Scope) -> Situation:
        """All that decisions rest on."""
        return situation_of(scope, self._settings)

    def skips(self, owner: Manifest) -> bool:
        """Somebody else manages it."""
        return externally_managed(RayJob(dict(owner)).spec)

    def gang(self, scope: Scope) -> Gang:
        """The Pods of the cluster, and the submitter."""
        return job_gang(RayJob(dict(scope.owner)), self.situation(scope).cluster)

    def lets_go(self, scope: Scope) -> Literal["", "first", "also"]:
        """Once an attempt has nothing left, and after the end."""
        at = self.situation(scope)
        if at.state in conditions.TERMINAL_DEPLOYMENT_STATUSES:
            return "also"
        return "first" if machine.nothing_left(at) else ""

    # --- what there should be

    def wanted(self, scope: Scope, hooks: Hooks) -> Wanted:
        """The cluster, the Service to its head and the submitter, as far as the step asks for them."""
        at = self.situation(scope)
        step = machine.next_step(at, self._rng)
        objects = [*self._objects(at, step, scope, hooks)]
        return Wanted(objects, tuple(self._actions(at, step)), step.problem)

    def _objects(self, at: Situation, step: Step, scope: Scope, hooks: Hooks) -> Iterator[Desired]:
        if step.cluster:
            yield self._cluster(at, scope, hooks)
        if step.service and at.cluster is not None and not _leads_to(scope, at):
            service = hooks.patch_object(scope, job_head_service(at.job, at.cluster, self._config))
            yield Desired(service.obj, "the job has an address of its own", causes_of(service.changes))
        if step.submitter and at.submitter is None and at.cluster is not None:
            # Where the dashboard is may have been found out just now.
            known = {name: value for name, value in step.fields.items() if name == "dashboardURL"}
            job = RayJob({**at.job.raw, "status": {**at.job.status.raw, **known}})
            yield self._submitter(job, at.cluster, scope, hooks)

    def _cluster(self, at: Situation, scope: Scope, hooks: Hooks) -> Desired:
        built = hooks.patch_object(scope, job_cluster(at.job, self._config))
        if at.mode == K8S_JOB_MODE:
            scheduled = hooks.schedule_child(scope, Group("", "cluster"), built.obj)
            built = replace(scheduled, changes=built.changes + scheduled.changes)
        return Desired(built.obj, "the job needs a cluster", causes_of(built.changes), once=True)

    def _submitter(self, job: RayJob, cluster: RayCluster, scope: Scope, hooks: Hooks) -> Desired:
        template = submitter_template(job, cluster, self._config)
        kind = {"apiVersion": "v1", "kind": "PodTemplate"}
        group = Group(labels.SUBMITTER_GROUP, "submitter", {"template": template})
        pod = hooks.patch_pod(scope, group, {**kind, **template})
        own = {name: value for name, value in pod.obj.items() if name not in kind}
        made = hooks.patch_object(scope, submitter_job(job, thaw(own)))
        causes = causes_of((*pod.changes, *made.changes))
        return Desired(made.obj, "somebody must submit the job", causes, once=True)

    def _actions(self, at: Situation, step: Step) -> Iterator[Action]:
        for obj, why in step.deletes:
            yield Delete(_with_kind(obj), why)
        if step.suspend_workers and at.cluster is not None:
            yield _suspend_workers(at.cluster)

    # --- what to say

    def notes(self, scope: Scope, outcomes: Sequence[Outcome]) -> Iterator[Note]:
        """What was done to children; and what keeps the job from going on."""
        yield from child_notes(outcomes)
        step = machine.next_step(self.situation(scope), self._rng)
        if step.state == conditions.DEPLOYMENT_VALIDATION_FAILED:
            text = str(step.fields["message"])
            yield Note("Warning", reasons.INVALID_RAYJOB_SPEC, reasons.ACTION_VALIDATE, text)
        if step.problem:
            yield Note("Warning", reasons.RAYCLUSTER_NOT_FOUND, reasons.ACTION_VALIDATE, step.problem)

    def status(self, scope: Scope, standing: Sequence[Manifest], report: Report) -> dict[str, Any]:
        """The fields of the status: the step, unless it could not be taken."""
        at = self.situation(scope)
        step = machine.next_step(at, self._rng)
        failed = any(outcome.error is not None for outcome in report.outcomes)
        if report.hold is not None and step.state != conditions.DEPLOYMENT_FAILED:
            step = Step(at.state)
        elif failed and step.after_acting:
            step = Step(at.state, {name: step.fields[name] for name in _SEEN if name in step.fields})
        return status_of(at.job, step, scope.now)

    def invalid(self, scope: Scope, broken: Failure) -> dict[str, Any]:
        """A job that runs goes on to its end by what Ray says; one that has not begun waits for an edit."""
        at = self.situation(scope)
        if at.state in _BEGUN:
            return {}
        if at.state == conditions.DEPLOYMENT_RUNNING:
            spec = {name: value for name, value in at.job.spec.raw.items() if name not in _SHAKY}
            on = replace(at, job=RayJob({**at.job.raw, "spec": spec}))
            return status_of(on.job, running.step(on), scope.now)
        return status_of(at.job, machine.not_valid(broken.message), scope.now)

    def written(self, scope: Scope, status: Mapping[str, Any]) -> bool:
        """Whether the next state has something to do."""
        if self._metrics is not None:
            self._metrics.written(scope.owner, status, scope.now)
        before = (scope.owner.get("status") or {}).get("jobDeploymentStatus") or ""
        return before != (status.get("jobDeploymentStatus") or "")

    def news(self, scope: Scope, status: Mapping[str, Any]) -> Iterator[Note]:
        """That the job has come to another state."""
        yield from state_notes(scope.owner, status)

    def due(self, scope: Scope) -> float | None:
        """Until the next deadline."""
        return machine.next_step(self.situation(scope), self._rng).seconds

    # --- the end

    def finalizers(self) -> Sequence[str]:
        """Ours, which holds a job until Ray knows that it is over."""
        return (finalizers.RAYJOB,)

    def finalize(self, scope: Scope, finalizer: str) -> Verdict | None:
        """Wait until Ray has taken note, but not for long."""
        if finalizer != finalizers.RAYJOB:
            return None
        at = self.situation(scope)
        status = at.job.status
        if not (status.job_id and status.dashboard_url) or not must_stop(at.job, at.cluster, scope.now):
            return Done("there is no Ray job to stop")
        if at.ray.stopped:
            return Done(f"Ray was told to stop the job {status.job_id}")
        began = moment(at.job.metadata.deletion_timestamp) or scope.now
        over = began + STOP_LIMIT
        if scope.now >= over:
            why = at.ray.stop_error or "there was no answer"
            text = f"Ray could not be told to stop the job {status.job_id}: {why}"
            return Done(text, warning=True)
        return Wait("Ray is told to stop the job", left(over, scope.now))


#: Fields that are worth writing although a step could not be taken.
_SEEN: Final = ("rayClusterStatus",)


def situation_of(scope: Scope, settings: Settings) -> Situation:
    """From what a pass has read to what decisions rest on."""
    job = RayJob(dict(scope.owner))
    cluster = _one(scope, "RayCluster", job.status.ray_cluster_name)
    usable = cluster is not None and (mine(job, cluster) or bool(job.spec.cluster_selector))
    submitter = _one(scope, "Job", job.name)
    found = RayCluster(dict(cluster)) if cluster is not None and usable else None
    service = None
    if found is not None:
        name = found.status.head.service_name or head_service_name(found)
        service = _one(scope, "Service", name)
    heads = sorted(
        (pod for pod in scope.children.get("Pod", ()) if _is_head(pod)),
        key=lambda pod: "deletionTimestamp" in pod["metadata"],
    )
    return Situation(
        job,
        scope.now,
        settings,
        cluster=found,
        cluster_taken=cluster is not None and not usable,
        submitter=submitter if submitter is not None and mine(job, submitter) else None,
        heads=heads if found is not None else (),
        head_service=service,
        ray=scope.ray or RaySays(),
    )


def _one(scope: Scope, kind: str, name: str) -> Manifest | None:
    found = (obj for obj in scope.children.get(kind, ()) if obj["metadata"]["name"] == name)
    return next(found, None)


def _is_head(pod: Manifest) -> bool:
    return (pod["metadata"].get("labels") or {}).get(labels.NODE_TYPE) == labels.HEAD


def _leads_to(scope: Scope, at: Situation) -> bool:
    """Whether the job's own Service leads to its cluster already; then it stays as it is."""
    service = _one(scope, "Service", names.head_service(at.job.name))
    if service is None or at.cluster is None:
        return False
    selector = (service.get("spec") or {}).get("selector") or {}
    return bool(selector.get(labels.CLUSTER) == at.cluster.name)


def _with_kind(obj: Manifest) -> Manifest:
    """Objects of a cache have a kind, but for the owner, whose kind everybody knows."""
    return obj if obj.get("kind") else {**obj, "apiVersion": "ray.io/v1", "kind": RayJob.KIND}


def _suspend_workers(cluster: RayCluster) -> Update:
    groups = [{**thaw(group.raw), "suspend": True} for group in cluster.spec.worker_group_specs]
    metadata = {"name": cluster.name, "namespace": cluster.namespace}
    spec = {"workerGroupSpecs": groups}
    wanted = {"apiVersion": "ray.io/v1", "kind": RayCluster.KIND, "metadata": metadata, "spec": spec}
    return Update(wanted, cluster.raw, {"spec": spec}, "the job has finished, so its workers go")
