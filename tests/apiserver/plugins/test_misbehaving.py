"""A plugin that misbehaves for some objects harms those alone, and its name is where people look."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kuberay_op.hooks import Merge, Scope, Watch, hookimpl
from kuberay_op.testing.operator import eventually

pytestmark = pytest.mark.apiserver

#: A system call that no exception reaches. The threads are daemons, so the test run does not wait for them.
LONG = 60


def raises(scope: Scope) -> Any:
    raise ZeroDivisionError("on purpose")


def rubbish(scope: Scope) -> Any:
    return {"not": "an answer"}


def ends_the_process(scope: Scope) -> Any:
    raise SystemExit(3)


def mutates(scope: Scope) -> Any:
    scope.owner["spec"]["headGroupSpec"]["template"]["spec"].clear()


def mutates_children(scope: Scope) -> Any:
    scope.children["Pod"] = ()  # type: ignore[index]  # that is the point


def yields_many(scope: Scope) -> Iterator[Any]:
    for number in itertools.count():
        if number >= 10_000:
            return
        yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"many-{number}"}}


def sleeps(scope: Scope) -> Any:
    time.sleep(LONG)


def waits_for_a_lock(scope: Scope) -> Any:
    threading.Event().wait(LONG)


def spins(scope: Scope) -> Any:
    while True:
        pass


async def awaits_for_ever(scope: Scope) -> Any:
    await asyncio.Event().wait()


async def ignores_cancellation(scope: Scope) -> Any:
    end = time.monotonic() + 5
    while time.monotonic() < end:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(end - time.monotonic())


async def leaks_a_task(scope: Scope) -> Any:
    scope_task = asyncio.create_task(asyncio.sleep(LONG))
    assert not scope_task.done()


def for_bad(misbehave: Any) -> Any:
    """The hook function that misbehaves for owners named bad-* and says nothing about others."""

    async def awaited(scope: Scope) -> Any:
        return await misbehave(scope) if scope.name.startswith("bad-") else None

    def plain(scope: Scope) -> Any:
        return misbehave(scope) if scope.name.startswith("bad-") else None

    return awaited if asyncio.iscoroutinefunction(misbehave) else plain


def plugin(hook: str, misbehave: Any) -> Any:
    """A plugin with that one hook, and one that shows on every Pod that it was asked."""

    class Plugin:
        @hookimpl
        def kuberay_watches(self) -> Any:
            return [Watch("v1", "ConfigMap", "configmaps")]

        @hookimpl
        def kuberay_patch_object(self, obj: Any) -> Any:
            return Merge({"metadata": {"labels": {"seen": "yes"}}})

    instance = Plugin()
    setattr(instance, hook, hookimpl(for_bad(misbehave)))
    return instance


BUILDING = [raises, rubbish, ends_the_process, mutates, mutates_children, sleeps, waits_for_a_lock, spins]
PHASE = [*BUILDING, awaits_for_ever, ignores_cancellation, leaks_a_task]

CASES = [
    *(pytest.param("kuberay_patch_pod", misbehave, id=f"pod-{misbehave.__name__}") for misbehave in BUILDING),
    pytest.param("kuberay_extra_objects", yields_many, id="objects-yields_many"),
    *(
        pytest.param("kuberay_before_reconcile", misbehave, id=f"phase-{misbehave.__name__}")
        for misbehave in PHASE
    ),
]


@pytest.mark.parametrize(("hook", "misbehave"), CASES)
async def test_it_harms_only_the_objects_it_was_asked_about(start: Any, hook: str, misbehave: Any) -> None:
    async with start({"culprit": plugin(hook, misbehave)}) as world:
        await world.create("bad-1")
        await world.create("bad-2")
        condition = await world.objects("bad-1", "PluginFailed")
        assert condition["message"].startswith("plugin 'culprit': kuberay_"), (
            "this hook, or one held back since"
        )
        await world.objects("bad-2", "PluginFailed")

        await world.create("good-1")
        await world.create("good-2")
        await world.has_head("good-1", "good-2")

        async def blamed() -> bool:
            notes = await world.said("bad-1", "PluginFailed")
            return any(note.startswith(f"plugin 'culprit': {hook}: ") for note in notes)

        assert await eventually(blamed)
        assert world.operator.calls("culprit", "error") + world.operator.calls("culprit", "late") >= 2
        assert await world.heads("bad-1") == []
        assert await world.heads("bad-2") == []
        assert await world.agreement("good-1") == {}
        assert await world.said("good-1", "PluginFailed") == []


async def test_many_bad_objects_at_once_do_not_hold_up_a_good_one(start: Any) -> None:
    """More than there are workers; each call hangs. See the benchmarks for the seconds."""
    hanging = plugin("kuberay_before_reconcile", awaits_for_ever)
    async with start({"culprit": hanging}, concurrency=4) as world:
        for number in range(16):
            await world.create(f"bad-{number}")
        await world.objects("bad-0")
        await world.create("good-1")
        await world.has_head("good-1")


async def test_the_condition_clears_when_the_plugin_comes_to_its_senses(start: Any) -> None:
    broken = threading.Event()
    broken.set()

    class Plugin:
        @hookimpl
        def kuberay_patch_pod(self) -> None:
            if broken.is_set():
                raise ValueError("broken")

    async with start({"culprit": Plugin()}) as world:
        await world.create("a")
        await world.objects("a", "PluginFailed")
        broken.clear()
        await world.has_head("a")
        await world.agrees("a")
