"""The dispatcher: order, answers, and what a bad plugin can and cannot do."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pluggy
import pytest

from kuberay_op.hooks import Done, Group, Merge, Refuse, Scope, Wait, hookimpl, specs
from kuberay_op.hooks.dispatch import Dispatcher, PluginError
from kuberay_op.hooks.isolation import Workshop, about
from kuberay_op.hooks.typed import Hooks
from kuberay_op.hooks.verdicts import Ruling, decide

SCOPE = Scope(
    owner={"kind": "RayCluster", "metadata": {"name": "a"}}, now=datetime.now(UTC), gate=lambda _: True
)
GROUP = Group("headgroup", "head")
POD: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}

#: Long enough for a loaded machine to answer, short enough to wait for one that never does.
LIMIT = 0.3


class Counts:
    """Counts calls by plugin, hook and outcome, as the operator's metrics do."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []

    def called(self, plugin: str, hook: str, outcome: str, seconds: float) -> None:
        self.seen.append((plugin, hook, outcome))


def plugin(**functions: Any) -> SimpleNamespace:
    """A plugin object with these hook implementations."""
    return SimpleNamespace(**{name: hookimpl(function) for name, function in functions.items()})


@pytest.fixture
def workshop() -> Iterator[Workshop]:
    workshop = Workshop(limit=LIMIT, stuck=2)
    yield workshop
    workshop.close()


@pytest.fixture
def counts() -> Counts:
    return Counts()


@pytest.fixture
def hooks(workshop: Workshop, counts: Counts) -> Any:
    def make(**plugins: Any) -> Hooks:
        manager = pluggy.PluginManager(specs.PROJECT)
        manager.add_hookspecs(specs)
        for name, instance in reversed(plugins.items()):
            manager.register(instance, name)
        manager.check_pending()
        return Hooks(Dispatcher(manager, workshop=workshop, meter=counts))

    return make


async def patch_pod(hooks: Hooks) -> Any:
    return await hooks.dispatcher.build(lambda: hooks.patch_pod(SCOPE, GROUP, POD))


async def test_plugins_are_asked_in_the_order_given_and_see_the_work_of_earlier_ones(hooks: Any) -> None:
    def first(pod: Any) -> Merge:
        return Merge({"metadata": {"labels": {"order": "1"}}})

    def second(pod: Any) -> Merge:
        return Merge(
            {"metadata": {"labels": {"order": pod["metadata"]["labels"]["order"] + "2"}}}, step="two"
        )

    built = await patch_pod(hooks(a=plugin(kuberay_patch_pod=first), b=plugin(kuberay_patch_pod=second)))

    assert built.obj["metadata"]["labels"] == {"order": "12"}
    assert [(change.plugin, change.patch.step) for change in built.changes] == [("a", ""), ("b", "two")]
    assert "labels" not in POD["metadata"]


async def test_a_plugin_gets_its_own_options(workshop: Workshop) -> None:
    manager = pluggy.PluginManager(specs.PROJECT)
    manager.add_hookspecs(specs)

    def patch(options: Any) -> Merge:
        return Merge({"metadata": {"labels": {"team": options["team"]}}})

    manager.register(plugin(kuberay_patch_pod=patch), "a")
    built = await patch_pod(Hooks(Dispatcher(manager, options={"a": {"team": "x"}}, workshop=workshop)))
    assert built.obj["metadata"]["labels"] == {"team": "x"}


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ("text", "list was expected"),
        (17, "list was expected"),
        ([{"metadata": {}}], "Merge or a JsonPatch was expected"),
        (Merge({"metadata": {"name": "other"}}), "may not change metadata.name"),
        (Merge({"metadata": {"ownerReferences": []}}), "may not change metadata.ownerReferences"),
        (Merge([]), "must be an object"),  # type: ignore[arg-type]
        (Merge({"spec": {"x": object()}}), "plain JSON was expected"),
        (Merge({"metadata": {"labels": {"kuberay-op/plugin": "x"}}}), "may not change metadata.labels"),
    ],
)
async def test_rubbish_is_named_with_the_plugin(
    hooks: Any, counts: Counts, answer: Any, complaint: str
) -> None:
    with pytest.raises(PluginError, match=complaint) as caught:
        await patch_pod(hooks(bad=plugin(kuberay_patch_pod=lambda pod: answer)))
    assert (caught.value.plugin, caught.value.hook) == ("bad", "kuberay_patch_pod")
    assert counts.seen == [("bad", "kuberay_patch_pod", "error")]


async def test_one_that_raises_is_named(hooks: Any) -> None:
    def fails(scope: Any) -> None:
        raise ZeroDivisionError("oh")

    with pytest.raises(PluginError, match=r"plugin 'bad': kuberay_before_reconcile: ZeroDivisionError"):
        await hooks(bad=plugin(kuberay_before_reconcile=fails)).before_reconcile(SCOPE)


async def test_changing_an_argument_raises_in_the_plugin(hooks: Any) -> None:
    def mutates(pod: Any) -> None:
        pod["metadata"]["labels"] = {"mine": "now"}

    with pytest.raises(PluginError, match="cannot be changed") as caught:
        await patch_pod(hooks(bad=plugin(kuberay_patch_pod=mutates)))
    assert caught.value.plugin == "bad"
    assert "labels" not in POD["metadata"]


async def test_too_many_objects_are_refused(hooks: Any) -> None:
    def endless() -> Iterator[Any]:
        return ({"apiVersion": "v1", "kind": "ConfigMap"} for _ in itertools.count())

    greedy = hooks(bad=plugin(kuberay_extra_objects=endless))
    with pytest.raises(PluginError, match="more than"):
        await greedy.dispatcher.build(lambda: greedy.extra_objects(SCOPE))


async def still_alive(seconds: float) -> int:
    """How often the loop came round while something else ran."""
    rounds, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        await asyncio.sleep(0.01)
        rounds += 1
    return rounds


def sleeps() -> None:
    threading.Event().wait(3)  # a system call that no exception reaches, ended so that the test run can end


def spins() -> None:
    while True:
        pass


async def waits() -> None:
    await asyncio.Event().wait()


async def ignores_cancellation() -> None:
    end = time.monotonic() + 3
    while time.monotonic() < end:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("never", [sleeps, spins, waits, ignores_cancellation], ids=lambda f: f.__name__)
async def test_one_that_never_returns_is_given_up_and_the_loop_goes_on(
    hooks: Any, counts: Counts, never: Any
) -> None:
    late = hooks(bad=plugin(kuberay_before_reconcile=never))
    asked = asyncio.create_task(late.before_reconcile(SCOPE))
    assert await still_alive(LIMIT) > 3
    with pytest.raises(PluginError, match="no answer within"):
        await asked
    assert counts.seen == [("bad", "kuberay_before_reconcile", "late")]


@pytest.mark.parametrize("never", [sleeps, spins], ids=lambda f: f.__name__)
async def test_building_with_one_that_never_returns_is_given_up(hooks: Any, never: Any) -> None:
    late = hooks(good=plugin(kuberay_patch_pod=lambda pod: Merge({})), bad=plugin(kuberay_patch_pod=never))
    with pytest.raises(PluginError) as caught:
        await patch_pod(late)
    assert (caught.value.plugin, caught.value.hook) == ("bad", "kuberay_patch_pod")


async def test_a_stuck_call_is_held_against_its_object_alone(hooks: Any) -> None:
    def sleeps_for_bad(scope: Any) -> Any:
        return sleeps() if scope.name == "bad" else Done()

    stuck = hooks(plugin=plugin(kuberay_before_reconcile=sleeps_for_bad))
    bad = replace(SCOPE, owner={"metadata": {"name": "bad"}})
    with about("bad"), pytest.raises(PluginError, match="no answer within"):
        await stuck.before_reconcile(bad)
    with about("bad"), pytest.raises(PluginError, match="earlier call for this object never came back"):
        await stuck.before_reconcile(bad)
    with about("good"):
        assert await stuck.before_reconcile(SCOPE) == [Ruling("plugin", Done())]


@pytest.mark.parametrize("never", [sleeps, ignores_cancellation], ids=lambda f: f.__name__)
async def test_a_plugin_with_very_many_stuck_calls_is_not_asked_at_all(hooks: Any, never: Any) -> None:
    stuck = hooks(bad=plugin(kuberay_before_reconcile=never))
    for name in ("a", "b"):
        with about(name), pytest.raises(PluginError, match="no answer within"):
            await stuck.before_reconcile(SCOPE)
    with about("c"), pytest.raises(PluginError, match="2 earlier calls never came back"):
        await stuck.before_reconcile(SCOPE)


async def test_a_plugin_that_is_late_too_often_gets_less_time(counts: Counts) -> None:
    manager = pluggy.PluginManager(specs.PROJECT)
    manager.add_hookspecs(specs)
    manager.register(plugin(kuberay_before_reconcile=waits), "slow")
    workshop = Workshop(limit=LIMIT, credit=2 * LIMIT)
    late = Hooks(Dispatcher(manager, workshop=workshop, meter=counts))
    assert workshop.limit_of("slow") == LIMIT
    for _ in range(2):
        with pytest.raises(PluginError, match="no answer within"):
            await late.before_reconcile(SCOPE)
        await asyncio.sleep(0)  # for the task to notice that it was cancelled
    assert workshop.limit_of("slow") < LIMIT
    assert workshop.limit_of("other") == LIMIT


async def test_once_its_credit_is_used_up_it_is_not_asked_about_objects_it_was_late_for(
    counts: Counts,
) -> None:
    async def waits_for_bad(scope: Scope) -> Any:
        return await waits() if scope.name == "bad" else Done()

    manager = pluggy.PluginManager(specs.PROJECT)
    manager.add_hookspecs(specs)
    both = {"kuberay_before_reconcile": waits_for_bad, "kuberay_finalizers": lambda: ()}
    manager.register(plugin(**both), "slow")
    asked = Hooks(Dispatcher(manager, workshop=Workshop(limit=LIMIT, credit=LIMIT), meter=counts))
    bad = replace(SCOPE, owner={"metadata": {"name": "bad"}})
    with about("bad"):
        with pytest.raises(PluginError, match="no answer within"):
            await asked.before_reconcile(bad)
        await asyncio.sleep(0)  # for the task to notice that it was cancelled
        assert asked.finalizers(bad) == {}  # another hook, for which it answers
        with pytest.raises(PluginError, match="was late for this object; not asked again for a while"):
            await asked.before_reconcile(bad)
    with about("good"):
        assert await asked.before_reconcile(SCOPE) == [Ruling("slow", Done())]


@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit])
async def test_a_plugin_cannot_end_the_process_or_the_pass(hooks: Any, end: type[BaseException]) -> None:
    def ends() -> None:
        raise end

    async def ends_later() -> None:
        await asyncio.sleep(0)
        raise end

    for function in (ends, ends_later):
        with pytest.raises(PluginError, match=end.__name__):
            await hooks(bad=plugin(kuberay_before_reconcile=function)).before_reconcile(SCOPE)
    with pytest.raises(PluginError, match=end.__name__):
        await patch_pod(hooks(bad=plugin(kuberay_patch_pod=ends)))


async def test_an_exception_may_be_odd_in_any_way(hooks: Any) -> None:
    class Odd(Exception):
        def __repr__(self) -> str:
            raise ValueError

    def odd() -> None:
        raise Odd

    def long() -> None:
        raise ValueError("x" * 10_000)

    with pytest.raises(PluginError, match="Odd"):
        await patch_pod(hooks(bad=plugin(kuberay_patch_pod=odd)))
    with pytest.raises(PluginError) as caught:
        await patch_pod(hooks(bad=plugin(kuberay_patch_pod=long)))
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize(
    ("verdict", "complaint"),
    [
        (True, "Done, Wait or Refuse was expected, not bool"),
        (Wait("x", float("nan")), "a number of seconds, not nan"),
        (Wait("x", "soon"), "a number of seconds, not 'soon'"),  # type: ignore[arg-type]
        (Wait("x", called="a/b"), "plain words, not 'a/b'"),
        (Done("x", event="not one word"), "one word, not 'not one word'"),
        (Wait(3), "must be a text, not int"),  # type: ignore[arg-type]
        (Wait("x", objects=({"kind": "Job"},)), "an object with apiVersion and kind"),
        (Wait("x", objects=({"apiVersion": "v1", "kind": "A", "x": {1, 2}},)), "plain JSON was expected"),
    ],
)
async def test_a_verdict_is_checked_part_by_part(hooks: Any, verdict: Any, complaint: str) -> None:
    with pytest.raises(PluginError, match=complaint):
        await hooks(bad=plugin(kuberay_before_reconcile=lambda: verdict)).before_reconcile(SCOPE)


@pytest.mark.parametrize(
    ("obj", "complaint"),
    [
        ("ConfigMap", "apiVersion and kind"),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, "without metadata.name"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": object()}}, "plain JSON"),
        ({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "x": "x" * 2_000_000}, "bytes"),
    ],
)
async def test_an_object_is_checked_before_it_is_made(hooks: Any, obj: Any, complaint: str) -> None:
    bad = hooks(bad=plugin(kuberay_extra_objects=lambda: [obj]))
    with pytest.raises(PluginError, match=complaint):
        await bad.dispatcher.build(lambda: bad.extra_objects(SCOPE))


async def test_what_a_plugin_gave_away_it_cannot_change_later(hooks: Any) -> None:
    mine: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    giving = hooks(a=plugin(kuberay_extra_objects=lambda: [mine]))
    (extra,) = await giving.dispatcher.build(lambda: giving.extra_objects(SCOPE))
    mine["metadata"]["name"] = "b"
    assert extra.obj["metadata"]["name"] == "a"


@pytest.mark.parametrize("name", ["foregroundDeletion", "example.com/x", "ray.io/", "ray.io/a/b", 3])
async def test_a_finalizer_is_of_our_domain(hooks: Any, name: Any) -> None:
    bad = hooks(bad=plugin(kuberay_finalizers=lambda: [name]))
    with pytest.raises(PluginError, match="a finalizer must be ray"):
        await bad.dispatcher.build(lambda: bad.finalizers(SCOPE))


async def test_defaults_are_for_the_spec(hooks: Any) -> None:
    owner = {"kind": "RayCluster", "metadata": {"name": "a"}, "spec": {"a": 1}}
    good = hooks(a=plugin(kuberay_default=lambda: Merge({"spec": {"b": 2}})))
    assert good.default(owner).obj["spec"] == {"a": 1, "b": 2}
    bad = hooks(bad=plugin(kuberay_default=lambda: Merge({"status": {"state": "ready"}})))
    with pytest.raises(PluginError, match="may change spec only, not status"):
        bad.default(owner)


async def test_one_that_fails_keeps_nobody_from_finalizing(hooks: Any) -> None:
    def fails() -> None:
        raise ValueError("oh")

    def mine(finalizer: str) -> Any:
        return Done() if finalizer == "ray.io/mine" else None

    asked = hooks(a=plugin(kuberay_finalize=fails), b=plugin(kuberay_finalize=mine))
    assert await asked.finalize(SCOPE, "ray.io/mine") == Ruling("b", Done())
    with pytest.raises(PluginError, match="plugin 'a'"):
        await asked.finalize(SCOPE, "ray.io/other")


async def test_a_busy_loop_ends_with_its_thread(hooks: Any, workshop: Workshop) -> None:
    spinning = hooks(bad=plugin(kuberay_before_reconcile=spins))
    for _ in range(4):  # each thread must have ended, or the object would not be asked about again
        with pytest.raises(PluginError, match="no answer within"):
            await spinning.before_reconcile(SCOPE)
        await asyncio.sleep(0.05)


async def test_leaked_tasks_are_found_and_ended(hooks: Any) -> None:
    tasks: list[asyncio.Task[Any]] = []

    async def leaks() -> Done:
        tasks.append(asyncio.create_task(waits()))
        return Done()

    with pytest.raises(PluginError, match=r"left 1 task"):
        await hooks(bad=plugin(kuberay_before_reconcile=leaks)).before_reconcile(SCOPE)
    await asyncio.sleep(0)
    assert tasks[0].cancelled()


async def test_tasks_may_stay_when_started_at_start_up(hooks: Any) -> None:
    tasks: list[asyncio.Task[Any]] = []

    async def starts() -> None:
        tasks.append(asyncio.create_task(waits()))

    await hooks(good=plugin(kuberay_started=starts)).started()
    await asyncio.sleep(0)
    assert not tasks[0].done()
    tasks[0].cancel()


async def test_watching_hooks_fail_alone(hooks: Any, counts: Counts) -> None:
    told: list[str] = []

    def record(outcome: str) -> None:
        told.append(outcome)

    def fails() -> None:
        raise ValueError

    watching = hooks(
        bad=plugin(kuberay_after_reconcile=fails),
        good=plugin(kuberay_after_reconcile=record),
    )
    await watching.after_reconcile(SCOPE, "success", 0.1)
    assert told == ["success"]
    assert ("bad", "kuberay_after_reconcile", "error") in counts.seen


async def test_cancelling_the_caller_is_not_the_plugins_failure(hooks: Any, counts: Counts) -> None:
    asked = asyncio.create_task(hooks(slow=plugin(kuberay_before_reconcile=waits)).before_reconcile(SCOPE))
    await asyncio.sleep(0.01)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked


def test_a_refusal_counts_before_a_wait_and_the_shortest_wait_counts() -> None:
    long, short = Ruling("a", Wait("x", 9)), Ruling("b", Wait("y", 3))
    refused = Ruling("c", Refuse("no"))
    assert decide([]) is None
    assert decide([Ruling("a", Done())]) is None
    assert decide([long, short]) == short
    assert decide([long, refused, short]) == refused


def test_every_hook_has_a_family_and_a_text() -> None:
    names = {name for name in vars(specs) if name.startswith("kuberay_")}
    assert names == set(specs.FAMILIES)
    assert all(getattr(specs, name).__doc__ for name in names)
