"""From an object to its problems: which rules belong to which kind, and what a failure is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from kuberay_op.api import reasons
from kuberay_op.api.meta import CustomResource
from kuberay_op.api.predicates import GateQuery
from kuberay_op.api.problems import Problem
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.raycronjob import RayCronJob
from kuberay_op.api.rayjob import RayJob
from kuberay_op.api.rayservice import RayService
from kuberay_op.api.validation import (
    metadata,
    raycluster,
    raycronjob,
    rayjob,
    rayservice,
    warn_common,
    warn_raycluster,
    warn_raycronjob,
    warn_rayjob,
    warn_rayservice,
)
from kuberay_op.api.validation.rules import Finding, Findings, rule, run
from kuberay_op.api.validation.subjects import ClusterSubject, JobSubject, ObjectSubject, ServiceSubject
from kuberay_op.features import Gates

#: The view of each kind.
KINDS: Final[Mapping[str, type[CustomResource]]] = {
    "RayCluster": RayCluster,
    "RayJob": RayJob,
    "RayService": RayService,
    "RayCronJob": RayCronJob,
}

#: How many mistakes one message names.
_NAMED: Final = 5
#: Bytes of a message, and of an event. The API server refuses an event of more than 1024.
_MESSAGE: Final = 800
_NOTE: Final = 1000

PartName = Literal["metadata", "spec", "status"]


@dataclass(frozen=True, slots=True)
class _Context:
    """An object and what it takes to judge it."""

    obj: CustomResource
    gates: GateQuery
    cert_manager: bool | None


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of an object that is judged at once; the first that is wrong decides what is reported."""

    name: PartName
    reason: str
    check: Callable[[_Context], Iterator[Problem]]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a controller does not go on with an object."""

    kind: str
    part: PartName
    #: Reason of the event.
    reason: str
    problems: tuple[Problem, ...]

    @property
    def message(self) -> str:
        """For a status: ``The RayJob spec is invalid: spec.backoffLimit: is -1; must be 0 or more``."""
        return f"The {self.kind} {self.part} is invalid: {self._text}"

    def note(self, namespace: str, name: str) -> str:
        """For an event, which also says which object."""
        if self.kind == "RayCluster":
            return _cut(f"The RayCluster {self.part} is invalid {namespace}/{name}: {self._text}", _NOTE)
        return _cut(f"{namespace}/{name}: {self.message}", _NOTE)

    @property
    def _text(self) -> str:
        text = "; ".join(map(str, self.problems[:_NAMED]))
        if self.problems[0].path[:2] == ("spec", "jobTemplate"):
            text = f"invalid RayJob template: {text}"
        more = len(self.problems) - _NAMED
        text = _cut(text, _MESSAGE)
        return f"{text} (and {more} more)" if more > 0 else text


def _cut(text: str, limit: int) -> str:
    """At most so many bytes of a text, and a sign that it went on."""
    data = text.encode()
    return text if len(data) <= limit else f"{data[:limit].decode(errors='ignore')}…"


# --- the parts of each kind


def _names(rules: Any) -> Callable[[_Context], Iterator[Problem]]:
    def check(context: _Context) -> Iterator[Problem]:
        return run(rules, ObjectSubject(context.obj))

    return check


def _raycluster(
    check: Callable[[raycluster.RayClusterSubject], Iterator[Problem]],
) -> Callable[[_Context], Iterator[Problem]]:
    def checked(context: _Context) -> Iterator[Problem]:
        obj = RayCluster(context.obj.raw)
        return check(raycluster.RayClusterSubject(obj, context.gates, context.cert_manager))

    return checked


def _rayjob_spec(context: _Context) -> Iterator[Problem]:
    obj = RayJob(context.obj.raw)
    return rayjob.job_spec(JobSubject.of(obj.spec, obj.metadata.annotations, context.gates, ("spec",)))


def _rayjob_status(context: _Context) -> Iterator[Problem]:
    return rayjob.waiting(rayjob.RayJobStatusSubject(RayJob(context.obj.raw)))


def _rayservice_spec(context: _Context) -> Iterator[Problem]:
    obj = RayService(context.obj.raw)
    subject = ServiceSubject.of(obj.spec, obj.metadata.annotations, context.gates, ("spec",))
    return rayservice.service_spec(subject)


def _raycronjob(context: _Context) -> Iterator[Problem]:
    yield from run(metadata.RAYCRONJOB, ObjectSubject(context.obj))
    yield from raycronjob.cron_spec(raycronjob.CronSubject(RayCronJob(context.obj.raw).spec, context.gates))


_PARTS: Final[Mapping[str, tuple[_Part, ...]]] = {
    "RayCluster": (
        _Part("metadata", reasons.INVALID_RAYCLUSTER_METADATA, _names(metadata.RAYCLUSTER)),
        _Part("spec", reasons.INVALID_RAYCLUSTER_SPEC, _raycluster(raycluster.spec)),
        _Part("spec", reasons.INVALID_RAYCLUSTER_SPEC, _raycluster(raycluster.cert_manager)),
        _Part("spec", reasons.INVALID_RAYCLUSTER_SPEC, _raycluster(raycluster.upgrade)),
        _Part("status", reasons.INVALID_RAYCLUSTER_STATUS, _raycluster(raycluster.one_suspend_state)),
    ),
    "RayJob": (
        _Part("metadata", reasons.INVALID_RAYJOB_METADATA, _names(metadata.RAYJOB)),
        _Part("spec", reasons.INVALID_RAYJOB_SPEC, _rayjob_spec),
        _Part("status", reasons.INVALID_RAYJOB_STATUS, _rayjob_status),
    ),
    "RayService": (
        _Part(
            "metadata",
            reasons.INVALID_RAYSERVICE_METADATA,
            _names((*metadata.RAYSERVICE, rayservice.timeout_annotation)),
        ),
        _Part("spec", reasons.INVALID_RAYSERVICE_SPEC, _rayservice_spec),
    ),
    "RayCronJob": (_Part("spec", reasons.INVALID_RAYCRONJOB_SPEC, _raycronjob),),
}


# --- the public questions


def _view(obj: Mapping[str, Any] | CustomResource) -> CustomResource:
    if isinstance(obj, CustomResource):
        return obj
    kind = obj.get("kind")
    if not isinstance(kind, str) or kind not in KINDS or not isinstance(obj, dict):
        raise ValueError(f"there are no rules for the kind {kind!r}; there are for {', '.join(KINDS)}")
    return KINDS[kind](obj)


def _context(
    obj: Mapping[str, Any] | CustomResource, gates: GateQuery | None, cert_manager: bool | None = None
) -> _Context:
    return _Context(_view(obj), gates or Gates.default().enabled, cert_manager)


def validate(
    obj: Mapping[str, Any] | CustomResource,
    gates: GateQuery | None = None,
    *,
    cert_manager: bool | None = None,
) -> list[Problem]:
    """Every mistake in ``obj``; the first of them is the one the reference would name.

    ``gates`` says which feature gates are on (their defaults when None), ``cert_manager`` whether its API was
    found (nobody knows when None).
    """
    context = _context(obj, gates, cert_manager)
    return [problem for part in _PARTS[context.obj.KIND] for problem in part.check(context)]


def failure(
    obj: Mapping[str, Any] | CustomResource,
    gates: GateQuery | None = None,
    *,
    cert_manager: bool | None = None,
) -> Failure | None:
    """The first part of ``obj`` that has mistakes, with the words for its event; None when all is well."""
    context = _context(obj, gates, cert_manager)
    for part in _PARTS[context.obj.KIND]:
        problems = tuple(part.check(context))
        if problems:
            return Failure(context.obj.KIND, part.name, part.reason, problems)
    return None


def warnings(obj: Mapping[str, Any] | CustomResource, gates: GateQuery | None = None) -> list[Problem]:
    """What is allowed in ``obj`` but deprecated, without effect, or not what it seems."""
    context = _context(obj, gates)
    return list(_warnings(context))


def _warnings(context: _Context) -> Iterator[Problem]:
    obj, gates = context.obj, context.gates
    yield from warn_common.check(warn_common.CommonSubject(obj))
    notes = obj.metadata.annotations
    match obj.KIND:
        case "RayCluster":
            spec = RayCluster(obj.raw).spec
            yield from warn_raycluster.check(ClusterSubject.of(spec, notes, gates, ("spec",)))
        case "RayJob":
            yield from warn_rayjob.check(JobSubject.of(RayJob(obj.raw).spec, notes, gates, ("spec",)))
        case "RayService":
            service = ServiceSubject.of(RayService(obj.raw).spec, notes, gates, ("spec",))
            yield from warn_rayservice.check(service)
        case _:
            yield from warn_raycronjob.check(warn_raycronjob.WholeCron(RayCronJob(obj.raw), gates))


# --- the webhook


@rule("webhook.1", "Worker group names are unique; looked at by the optional webhook only.")
def unique_groups(subject: ObjectSubject) -> Findings:
    """Two groups of one name share their Pods. Only the first doubled name is reported."""
    seen: set[str] = set()
    for index, group in enumerate(RayCluster(subject.obj.raw).spec.worker_group_specs):
        if group.group_name in seen:
            text = f"worker group names must be unique; {group.group_name!r} is there twice"
            yield Finding(("spec", "workerGroupSpecs", index), text, group.group_name)
            return
        seen.add(group.group_name)


def admission_problems(obj: Mapping[str, Any] | CustomResource) -> list[Problem]:
    """What the optional webhook refuses on create and update: names, and doubled worker groups.

    Everything else is accepted and reported by the controllers, as in the reference. There is no webhook for
    RayCronJobs, so nothing is refused there.
    """
    context = _context(obj, None)
    if context.obj.KIND == "RayCronJob":
        return []
    found = list(_PARTS[context.obj.KIND][0].check(context))
    if context.obj.KIND == "RayCluster":
        found.extend(unique_groups(ObjectSubject(context.obj)))
    return found
