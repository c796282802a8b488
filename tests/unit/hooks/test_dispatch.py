"""The dispatcher: order, answers, and what a bad plugin can and cannot do."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pluggy
import pytest

from kuberay_op.hooks import Done, Group, Merge, Refuse, Scope, Wait, hookimpl, specs
from kuberay_op.hooks.dispatch import Dispatcher, PluginError
from kuberay_op.hooks.isolation import Workshop
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


@pytest.mark.parametrize("never", [sleeps, spins, waits], ids=lambda f: f.__name__)
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


async def test_a_plugin_with_too_many_stuck_calls_is_refused_at_once(hooks: Any) -> None:
    stuck = hooks(bad=plugin(kuberay_before_reconcile=sleeps))
    for _ in range(2):
        with pytest.raises(PluginError, match="no answer within"):
            await stuck.before_reconcile(SCOPE)
    with pytest.raises(PluginError, match="never came back"):
        await stuck.before_reconcile(SCOPE)


async def test_a_busy_loop_ends_with_its_thread(hooks: Any, workshop: Workshop) -> None:
    spinning = hooks(bad=plugin(kuberay_before_reconcile=spins))
    for _ in range(4):  # more often than stuck threads are allowed: each must have ended
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
    assert decide([Ruling("a", Done(True))]) is None
    assert decide([long, short]) == short
    assert decide([long, refused, short]) == refused


def test_every_hook_has_a_method_a_family_and_a_text() -> None:
    names = {name for name in vars(specs) if name.startswith("kuberay_")}
    assert names == set(specs.FAMILIES)
    assert {name.removeprefix("kuberay_") for name in names} <= set(dir(Hooks)) | {"schedule_child"}
    assert all(getattr(specs, name).__doc__ for name in names)
