"""One pass over one object, the same for every kind: observe, ask, desire, plan, act, report.

::

    observed ──► finalize (when it is being deleted; always first)
        │
        ├─► check      our own rules and plugins' checks
        ├─► ask        plugins may hold or refuse the pass
        ├─► desire     pure; builders and plugins' patches
        ├─► plan       pure; actions with reasons
        ├─► act        the only writes to children
        └─► report     one status patch, if something changed

A kind brings what is its own (:class:`Kind`); the hooks are called here and nowhere else.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol

from kuberay_op.api import conditions, reasons
from kuberay_op.api.problems import Problem
from kuberay_op.api.validation import Failure, failure
from kuberay_op.clock import Clock
from kuberay_op.config import Config
from kuberay_op.controllers.act import Actor, named
from kuberay_op.controllers.finalize import Finalization
from kuberay_op.controllers.hold import Hold, with_agreement
from kuberay_op.controllers.notes import Note
from kuberay_op.controllers.pauses import Circumstances, Pauses
from kuberay_op.controllers.wishes import with_plugins
from kuberay_op.errors import Invalid, Retry
from kuberay_op.features import Gates
from kuberay_op.frozen import freeze, thaw
from kuberay_op.hooks.dispatch import PluginError
from kuberay_op.hooks.isolation import about
from kuberay_op.hooks.scope import Gang, Scope, Watch
from kuberay_op.hooks.typed import Hooks
from kuberay_op.hooks.verdicts import Ruling, Verdict, decide
from kuberay_op.kube.apply import NotOurs
from kuberay_op.kube.errors import BadRequest, Forbidden, InvalidObject
from kuberay_op.kube.events import Recorder
from kuberay_op.kube.resource import PODS, Key
from kuberay_op.plan.actions import Action, Create, Manifest, Outcome, Wanted
from kuberay_op.plan.diff import diff, identity
from kuberay_op.runtime.result import Result

#: The hook that gives the objects of a batch scheduler.
GANG_OBJECTS: Final = "kuberay_gang_objects"

#: Answers of the API server that say that the object itself is wrong.
THEIRS: Final = (BadRequest, Forbidden, InvalidObject, NotOurs)


@dataclass(frozen=True, slots=True)
class Observed:
    """An object and the children it has, as read at the beginning of a pass."""

    owner: Manifest
    children: Sequence[Manifest] = ()
    #: What Ray itself has said, in the form that the kind gives it; None where nobody asks Ray.
    ray: Any = None

    @property
    def uid(self) -> str:
        """UID of the owner."""
        return str(self.owner["metadata"]["uid"])

    @property
    def deleting(self) -> bool:
        """Whether the owner is on its way out."""
        return "deletionTimestamp" in self.owner["metadata"]

    def by_kind(self) -> Mapping[str, tuple[Manifest, ...]]:
        """The children by their kind, as plugins see them."""
        found: dict[str, list[Manifest]] = {}
        for child in self.children:
            found.setdefault(str(child.get("kind", "")), []).append(child)
        return MappingProxyType({kind: tuple(objects) for kind, objects in found.items()})


@dataclass(frozen=True, slots=True)
class Report:
    """How a pass went, for the status."""

    #: What was done, and what would have been had it not failed so often that it rests.
    outcomes: Sequence[Outcome] = ()
    #: Why it went no further, or not all the way.
    hold: Hold | None = None
    #: What only a person can mend.
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Acted:
    """What was done of what was wanted."""

    plan: Sequence[Action]
    outcomes: Sequence[Outcome]
    #: Refused lately and not tried this time, with the error of that time; and how long that lasts.
    resting: Sequence[Outcome]
    seconds: float
    #: Why there are no new Pods yet.
    held: Hold | None


class Kind(Protocol):
    """What a kind of custom resource brings to the pipeline."""

    def skips(self, owner: Manifest) -> bool:
        """Whether the object is none of our business (managed by somebody else)."""
        ...

    def gang(self, scope: Scope) -> Gang:
        """The Pods that should be scheduled together."""
        ...

    def wanted(self, scope: Scope, hooks: Hooks) -> Wanted:
        """What should become of the children. Pure; runs where plugins' code may run."""
        ...

    def notes(self, scope: Scope, outcomes: Sequence[Outcome]) -> Iterable[Note]:
        """What users should be told of what was done. Pure."""
        ...

    def status(self, scope: Scope, standing: Sequence[Manifest], report: Report) -> dict[str, Any]:
        """The fields of the status, from the owner and its children after acting. Pure; never fails."""
        ...

    def invalid(self, scope: Scope, broken: Failure) -> dict[str, Any]:
        """The fields of the status that say that the owner breaks a rule; none if nothing says so. Pure."""
        ...

    def written(self, scope: Scope, status: Mapping[str, Any]) -> bool:
        """Told that this status was written; answers whether there is something to be done at once."""
        ...

    # What a kind may leave out when it is derived from this class.

    def finalizers(self) -> Sequence[str]:
        """Finalizers of our own that every object of the kind carries while it lives."""
        return ()

    def finalize(self, scope: Scope, finalizer: str) -> Verdict | None:
        """Whether what a finalizer of our own stands for is done; None when it is not our own. Pure."""
        return None

    def lets_go(self, scope: Scope) -> Literal["", "first", "also"]:
        """Whether the batch scheduler is to free the gang although its owner stays. Pure.

        ``first``: nothing else is done before it has; ``also``: its failure is only told.
        """
        return ""

    def due(self, scope: Scope) -> float | None:
        """Seconds until the object must be looked at although nothing happens; None for never. Pure."""
        return None

    def news(self, scope: Scope, status: Mapping[str, Any]) -> Iterable[Note]:
        """What users should be told of a status that was just written. Pure."""
        return ()


class Pipeline:
    """Makes passes. One per controller; between passes it only remembers what was refused lately.

    ``before_pods`` says why no Pod can be made yet, and is asked when one should be; ``cert_manager`` is
    whether its API is there, None when nobody asked.
    ``missing`` are the kinds that plugins watch and the cluster does not serve; ``pauses`` is that memory,
    for kinds that want to look into it; ``config`` is what plugins get to see of the configuration.
    """

    def __init__(
        self,
        kind: Kind,
        *,
        hooks: Hooks,
        actor: Actor,
        recorder: Recorder,
        gates: Gates,
        clock: Clock,
        requeue: float = 0.0,
        missing: Mapping[tuple[str, str], Watch] = MappingProxyType({}),
        rng: Random,
        before_pods: Callable[[Scope], Awaitable[Hold | None]] | None = None,
        cert_manager: bool | None = None,
        pauses: Pauses | None = None,
        config: Config | None = None,
    ) -> None:
        self._kind = kind
        self._config = config or Config()
        self._hooks = hooks
        self._actor = actor
        self._recorder = recorder
        self._gates = gates
        self._clock = clock
        self._requeue = requeue
        self._missing = missing
        self._before_pods = before_pods
        self._cert_manager = cert_manager
        self._finalization = Finalization(hooks=hooks, actor=actor, recorder=recorder, own=kind.finalize)
        self._pauses = Pauses(clock=clock, rng=rng) if pauses is None else pauses

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._pauses.forget(key)

    async def run(self, key: Key, observed: Observed) -> Result:
        """One pass; plugins are told how it ended."""
        scope = Scope(
            owner=observed.owner,
            now=self._clock.now(),
            gate=self._gates.enabled,
            children=observed.by_kind(),
            ray=observed.ray,
            config=self._config,
            secret=partial(self._actor.secret, key),
        )
        began, outcome = time.monotonic(), "error"
        with about(observed.uid):
            try:
                result = await self._pass(key, scope, observed)
                outcome = "success"
                return result
            except PluginError as error:
                await self._hooks.on_reconcile_error(scope, error)
                if not Hold.again(error, scope.owner):
                    await self._hold(key, scope, observed, Hold.failed(error))
                raise
            except Retry:
                outcome = "waiting"
                raise
            except Invalid:
                outcome = "refused"
                raise
            except Exception as error:
                await self._hooks.on_reconcile_error(scope, error)
                raise
            finally:
                await self._hooks.after_reconcile(scope, outcome, time.monotonic() - began)

    async def _pass(self, key: Key, scope: Scope, observed: Observed) -> Result:
        if observed.deleting:
            return await self._clean_up(key, scope, observed)
        if self._kind.skips(scope.owner):
            return Result.done()
        scope = await self._checked(key, scope, observed)
        rulings = await self._hooks.before_reconcile(scope)
        scope = replace(scope, rulings=tuple(rulings))
        await self._obey(key, scope, observed, rulings)
        claimed = await self._hooks.dispatcher.build(lambda: self._hooks.finalizers(scope))
        if await self._actor.add_finalizers(key, scope.owner, sorted({*claimed, *self._kind.finalizers()})):
            return Result.after(0.0).saying(finalizers="added")  # no child may exist before they do

        gang = self._kind.gang(scope) if self._hooks.scheduler else Gang(scope.name, ())
        scope = replace(scope, gang=gang)
        if self._hooks.scheduler:
            await self._let_go(key, scope, observed, gang)
        wanted, lacking = await self._hooks.dispatcher.build(lambda: self._wanted(scope))
        acted = await self._act(key, scope, observed, gang, wanted)
        if any(map(self._of_gang, acted.outcomes)) and self._kind.lets_go(scope) == "also":
            self._has_let_go(scope)
        everything = (*acted.outcomes, *acted.resting)
        stopped = self._blamed(everything) or acted.held
        hold = stopped or lacking
        if hold is not None and hold.by_plugin and not hold.known(scope.owner):
            self._recorder.warning(scope.owner, hold.reason, reasons.ACTION_RECONCILE, hold.message)
        report = Report(everything, stopped, wanted.problem)
        status = self._kind.status(scope, standing_after(observed.children, acted.outcomes), report)
        written = await self._report(key, scope, status, hold)
        again = written and self._told(scope, status)
        self._raise(acted, wanted)
        return self._result(acted.plan, written=written, after=0.0 if again else self._kind.due(scope))

    async def _act(self, key: Key, scope: Scope, observed: Observed, gang: Gang, wanted: Wanted) -> Acted:
        """Plan, and carry out what may be carried out now."""
        plan = [*diff(wanted.objects, observed.children), *wanted.actions]
        held = await self._held_back(scope, gang, plan)
        if held is not None:
            plan = [action for action in plan if not _makes_pod(action)]
        now = circumstances(observed)
        split = self._pauses.split(key, plan, now)
        if split.plan:
            await self._obey(key, scope, observed, await self._hooks.before_act(scope, tuple(split.plan)))
        outcomes = await self._actor.act(key, split.plan)
        self._pauses.learn(key, split.plan, outcomes, now)
        if split.plan:
            await self._hooks.after_act(scope, tuple(split.plan), tuple(outcomes))
        for note in self._kind.notes(scope, outcomes):
            self._recorder.event(scope.owner, note.type, note.reason, note.action, note.text)
        return Acted(split.plan, outcomes, split.resting, split.seconds, held)

    def _raise(self, acted: Acted, wanted: Wanted) -> None:
        """End the pass with what went wrong, if something did."""
        for done in acted.outcomes:
            if done.error is not None:
                raise done.error
        if acted.held is not None:
            raise acted.held.error()
        if acted.resting:
            raise Retry(f"was refused: {acted.resting[0].error}", after=acted.seconds)
        if wanted.problem:
            raise Retry(wanted.problem)

    async def _let_go(self, key: Key, scope: Scope, observed: Observed, gang: Gang) -> None:
        """Have the batch scheduler free what the gang of an owner that stays holds, if it is time."""
        match self._kind.lets_go(scope):
            case "first":
                await self._obey(key, scope, observed, await self._hooks.release_gang(scope, gang))
                self._has_let_go(scope)
            case "also":
                try:
                    await self._hooks.release_gang(scope, gang)
                except PluginError as error:
                    reason = reasons.FAILED_TO_CLEANUP_BATCH_SCHEDULER
                    self._recorder.warning(scope.owner, reason, reasons.ACTION_CLEANUP, str(error))

    def _has_let_go(self, scope: Scope) -> None:
        note = f"the batch scheduler {self._hooks.scheduler} has let go of {scope.gang.name}"
        self._recorder.normal(scope.owner, reasons.BATCH_SCHEDULER_CLEANED_UP, reasons.ACTION_CLEANUP, note)

    def _of_gang(self, done: Outcome) -> bool:
        """Whether an object of the batch scheduler was written."""
        made = done.error is None and done.changed
        return made and any(cause.hook == GANG_OBJECTS for cause in done.action.causes)

    def _told(self, scope: Scope, status: Mapping[str, Any]) -> bool:
        """A status was written: say so, and whether there is something to be done at once."""
        for note in self._kind.news(scope, status):
            self._recorder.event(scope.owner, note.type, note.reason, note.action, note.text)
        return self._kind.written(scope, status)

    def _result(self, plan: Sequence[Action], *, written: bool, after: float | None) -> Result:
        times = [after, self._requeue if self._requeue > 0 else None]
        seconds = min((each for each in times if each is not None), default=None)
        result = Result.done() if seconds is None else Result.after(seconds)
        if plan:
            counts = Counter(f"{type(action).__name__} {action.obj.get('kind')}" for action in plan)
            result = result.saying(actions=[f"{what} ×{times}" for what, times in counts.items()])
        return result.saying(status="written") if written else result

    async def _clean_up(self, key: Key, scope: Scope, observed: Observed) -> Result:
        progress = await self._finalization.run(key, scope, lambda: self._kind.gang(scope))
        if progress.released:
            return Result.after(0.0).saying(released=progress.released)
        waits = [wait.seconds for wait in progress.waits]
        if progress.holds:
            await self._hold(key, scope, observed, *progress.holds)
            waits += [hold.seconds for hold in progress.holds if hold.seconds is not None]
            raise Retry("waiting for finalizers", after=min(waits, default=None))
        if progress.waits:
            raise Retry(progress.waits[0].reason, after=min(waits))
        return Result.done()

    async def _checked(self, key: Key, scope: Scope, observed: Observed) -> Scope:
        """The scope with plugins' defaults filled in; raises Invalid when a rule is broken."""

        def check() -> tuple[Manifest, list[tuple[str, Problem]]]:
            built = self._hooks.default(scope.owner)
            return built.obj, self._hooks.validate(built.obj)

        owner, problems = await self._hooks.dispatcher.build(check)
        broken = failure(thaw(owner), self._gates.enabled, cert_manager=self._cert_manager)
        if broken is not None:
            note = broken.note(scope.namespace, scope.name)
            self._recorder.warning(scope.owner, broken.reason, reasons.ACTION_VALIDATE, note)
            status = self._kind.invalid(scope, broken)
            if status and await self._actor.publish(key, scope.owner, status):
                self._told(scope, status)
            raise Invalid(broken.message)
        errors = [f"plugin {plugin}: {found}" for plugin, found in problems if found.severity == "error"]
        if errors:
            hold = Hold(conditions.PLUGIN_REFUSES, "; ".join(errors))
            await self._hold(key, scope, observed, hold)
            raise hold.error()
        if (scope.owner.get("status") or {}).get("observedGeneration") != _generation(scope.owner):
            for plugin, found in problems:  # once per edit
                note = f"plugin {plugin}: {found}"
                self._recorder.warning(scope.owner, reasons.PLUGIN_WARNS, reasons.ACTION_VALIDATE, note)
        return scope if owner is scope.owner else replace(scope, owner=freeze(owner))

    def _wanted(self, scope: Scope) -> tuple[Wanted, Hold | None]:
        """What should become of the children, and what plugins want that cannot be."""
        wanted, lacking = with_plugins(
            self._kind.wanted(scope, self._hooks),
            self._hooks,
            scope,
            missing=self._missing,
            refuses=self._actor.refuses,
        )
        return wanted, (Hold.lacking(lacking) if lacking else None)

    async def _held_back(self, scope: Scope, gang: Gang, plan: Sequence[Action]) -> Hold | None:
        """What the Pods of the plan must wait for: something of ours, or the batch scheduler."""
        if not any(_makes_pod(action) for action in plan):
            return None
        own = await self._before_pods(scope) if self._before_pods else None
        if own is not None:
            return own
        ruling = decide(await self._hooks.admit_gang(scope, gang))
        return None if ruling is None else Hold.of(ruling)

    async def _obey(self, key: Key, scope: Scope, observed: Observed, rulings: Sequence[Ruling]) -> None:
        """Go on, or say why not and stop the pass. What plugins wait for is made first."""
        ruling = decide(rulings)
        if ruling is None:
            return
        hold = Hold.of(ruling)
        for each in rulings:
            failed = await self._actor.make_for(key, scope, each)
            if failed is not None:
                hold = replace(hold, reason=conditions.PLUGIN_FAILED, message=str(failed))
        await self._hold(key, scope, observed, hold)
        raise hold.error()

    def _blamed(self, outcomes: Sequence[Outcome]) -> Hold | None:
        """The server refuses an object that plugins made or changed: most likely it is theirs to mend."""
        errors: list[PluginError] = []
        for done in outcomes:
            if isinstance(done.error, THEIRS):
                problem = f"{named(done.action.obj)}: {done.error}"
                errors += [
                    self._hooks.dispatcher.blame(cause.plugin, cause.hook, problem)
                    for cause in done.action.causes
                ]
        return Hold(conditions.PLUGIN_FAILED, "; ".join(map(str, errors))) if errors else None

    async def _hold(self, key: Key, scope: Scope, observed: Observed, *holds: Hold) -> None:
        """Nothing is written for the object but why: an event and a condition."""
        for hold in holds:
            usual = observed.deleting and hold.reason == conditions.PLUGIN_WAITS  # to clean up takes time
            say = self._recorder.normal if usual else self._recorder.warning
            say(scope.owner, hold.reason, reasons.ACTION_RECONCILE, hold.message)
        first = replace(holds[0], message="; ".join(hold.message for hold in holds))
        status = self._kind.status(scope, observed.children, Report(hold=first))
        if await self._report(key, scope, status, first):
            self._told(scope, status)

    async def _report(self, key: Key, scope: Scope, status: dict[str, Any], hold: Hold | None) -> bool:
        if scope.gate("RayClusterStatusConditions"):
            status["conditions"] = with_agreement(scope.owner, status, hold, scope.now)
        return await self._actor.publish(key, scope.owner, status)


def standing_after(children: Sequence[Manifest], outcomes: Sequence[Outcome]) -> list[Manifest]:
    """The children as far as we know them after acting; what is being deleted is still there."""
    there = {identity(child): child for child in children}
    made = (outcome.obj for outcome in outcomes if outcome.error is None and outcome.obj)
    return list((there | {identity(obj): obj for obj in made}).values())


def circumstances(observed: Observed) -> Circumstances:
    """What a refusal depended on."""
    pods = sum(child.get("kind") == PODS.kind for child in observed.children)
    return Circumstances(_generation(observed.owner) or 0, pods)


def _makes_pod(action: Action) -> bool:
    """Whether an action makes a Pod, or a cluster, which is many."""
    return isinstance(action, Create) and action.obj.get("kind") in (PODS.kind, "RayCluster")


def _generation(owner: Manifest) -> Any:
    return owner["metadata"].get("generation")
