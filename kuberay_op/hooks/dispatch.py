"""Calls the implementations of a hook: in order, each with its time limit, each on its own.

pluggy keeps the registrations and the order; we make the calls ourselves, because pluggy knows no coroutines
and stops at the first exception. Each call is timed and counted under the plugin's name, arguments are
read-only, and a failure is a :class:`PluginError` that says whose it was. What follows from a failure is the
caller's business; the typed facade (``typed.py``) knows the rule for each family.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar
from weakref import WeakSet

import pluggy

from kuberay_op.errors import OperatorError
from kuberay_op.hooks.answers import Rubbish
from kuberay_op.hooks.isolation import Doing, Late, Quarantined, Stop, Workshop, current
from kuberay_op.hooks.specs import BUILDING, FAMILIES, Options

#: Longest description of a plugin's failure, in characters.
MOST_TEXT: Final = 500

T = TypeVar("T")

#: Checks an answer and makes of it what the caller needs.
Take = Callable[[Any], Any]

_NO_OPTIONS: Final[Options] = MappingProxyType({})

#: Tasks that the plugin's coroutine we are in has started, directly or not.
_started: contextvars.ContextVar[WeakSet[asyncio.Future[Any]] | None] = contextvars.ContextVar(
    "started", default=None
)


class PluginError(OperatorError):
    """A plugin raised, answered rubbish, or was late."""

    def __init__(self, plugin: str, hook: str, cause: BaseException) -> None:
        super().__init__(f"plugin {plugin!r}: {hook}: {_described(cause)}")
        self.plugin = plugin
        self.hook = hook
        self.cause = cause


class LeakedTasks(OperatorError):
    """A plugin started tasks and left them running."""


class Meter(Protocol):
    """Where calls are counted; the operator's metrics, or nothing."""

    def called(self, plugin: str, hook: str, outcome: str, seconds: float) -> None:
        """One call ended: ``ok``, ``error`` or ``late``."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What one plugin answered."""

    plugin: str
    value: Any


@dataclass(frozen=True, slots=True)
class Implementation:
    """One plugin's function for one hook."""

    plugin: str
    hook: str
    function: Callable[..., Any]
    argnames: tuple[str, ...]
    options: Options
    awaited: bool
    #: Cannot run long by construction (a YAML plugin), so it needs no thread.
    bounded: bool

    def call(self, arguments: Mapping[str, Any]) -> Any:
        """Call it with those of the arguments that it names."""
        return self.function(
            *(self.options if name == "options" else arguments[name] for name in self.argnames)
        )


class Dispatcher:
    """All implementations of all hooks, ready to be called."""

    def __init__(
        self,
        manager: pluggy.PluginManager,
        *,
        options: Mapping[str, Options] = MappingProxyType({}),
        workshop: Workshop | None = None,
        meter: Meter | None = None,
    ) -> None:
        self.workshop = workshop or Workshop()
        self._meter = meter
        self._implementations = {name: tuple(_implementations(manager, name, options)) for name in FAMILIES}
        #: Whether some sync hook runs code that could hang, so that building must happen in a thread.
        self.building_needs_thread = any(
            not implementation.bounded for name in BUILDING for implementation in self._implementations[name]
        )

    def implementations(self, hook: str) -> tuple[Implementation, ...]:
        """Who implements a hook, in the order in which they are asked."""
        return self._implementations[hook]

    async def build(self, function: Callable[[], T]) -> T:
        """Run pure code that calls sync hooks: here, or in a thread if a plugin's code could hang."""
        return await self.in_thread(function) if self.building_needs_thread else function()

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Run code that calls sync hooks in a thread; raises :class:`PluginError` when one is late."""
        try:
            return await self.workshop.run(function)
        except Late as late:
            self._count(late.plugin, late.hook, "late", late.seconds)
            raise PluginError(late.plugin, late.hook, late) from late

    def call(
        self, implementation: Implementation, arguments: Mapping[str, Any], *, take: Take | None = None
    ) -> Any:
        """One sync call, now, on this thread; raises :class:`PluginError`.

        ``take`` checks the answer and makes of it what the caller needs; what it raises counts as the
        plugin's mistake. None stays None.
        """
        plugin, hook, began = implementation.plugin, implementation.hook, time.monotonic()
        note = current.get()
        if note is not None:
            note.doing = Doing(plugin, hook, began, self.workshop.limit_of(plugin))
        try:
            self.workshop.check(plugin, hook)
            value = implementation.call(arguments)
            if inspect.isawaitable(value):
                _close(value)
                raise Rubbish(f"{hook} is a sync hook; it cannot be async")
            if take is not None and value is not None:
                value = take(value)
        except Stop:
            raise
        except BaseException as error:  # also SystemExit: a plugin does not end the process
            self._count(plugin, hook, "error", time.monotonic() - began)
            raise PluginError(plugin, hook, error) from error
        finally:
            if note is not None:
                note.doing = None
        self.workshop.answered(plugin, hook)
        self._count(plugin, hook, "ok", time.monotonic() - began)
        return value

    async def ask(
        self,
        implementation: Implementation,
        arguments: Mapping[str, Any],
        *,
        take: Take | None = None,
        may_leave_tasks: bool = False,
    ) -> Any:
        """One awaited call; raises :class:`PluginError`, also when it is late or leaves tasks behind."""
        if not implementation.awaited:
            if implementation.bounded:
                return self.call(implementation, arguments, take=take)
            return await self.in_thread(lambda: self.call(implementation, arguments, take=take))
        plugin, hook, began = implementation.plugin, implementation.hook, time.monotonic()
        tasks: WeakSet[asyncio.Future[Any]] = WeakSet()
        outcome: str | None = "error"
        try:
            self.workshop.check(plugin, hook)
            task = _start(implementation.call(arguments), tasks)
            value = await self.workshop.wait_for(task, plugin, hook)
            if not may_leave_tasks and (leaked := _end_leaked(tasks)):
                raise LeakedTasks(
                    f"left {leaked} task(s) running; await them, or start them in kuberay_started"
                )
            if take is not None and value is not None:
                value = take(value)
            self.workshop.answered(plugin, hook)
            outcome = "ok"
        except asyncio.CancelledError as error:
            _end_leaked(tasks)
            caller = asyncio.current_task()
            if caller is not None and caller.cancelling():
                outcome = None
                raise
            raise PluginError(plugin, hook, error) from error  # it cancelled itself
        except BaseException as error:
            _end_leaked(tasks)
            outcome = "late" if isinstance(error, Late) else "error"
            raise PluginError(plugin, hook, error) from error
        finally:
            if outcome is not None:
                self._count(plugin, hook, outcome, time.monotonic() - began)
        return value

    def blame(self, plugin: str, hook: str, problem: str) -> PluginError:
        """The error for an answer that turned out wrong only later; counted like any other."""
        self._count(plugin, hook, "error", 0.0)
        return PluginError(plugin, hook, Rubbish(problem))

    def _count(self, plugin: str, hook: str, outcome: str, seconds: float) -> None:
        if self._meter is not None:
            self._meter.called(plugin, hook, outcome, seconds)


def _described(cause: BaseException) -> str:
    """What went wrong, in a line; a plugin's exception may be odd in any way."""
    try:
        text = str(cause) if isinstance(cause, OperatorError | Late | Quarantined) else repr(cause)
    except Exception:  # noqa: BLE001 (its own repr failed)
        text = type(cause).__name__
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"


def _implementations(
    manager: pluggy.PluginManager, hook: str, options: Mapping[str, Options]
) -> Iterator[Implementation]:
    # pluggy calls the last of this list first; we register in reverse, so the list reversed is our order.
    for implementation in reversed(getattr(manager.hook, hook).get_hookimpls()):
        name = implementation.plugin_name.partition(":")[0]  # YAML and Python of one plugin are one
        if hook not in getattr(implementation.plugin, "kuberay_hooks", FAMILIES):
            continue  # a YAML plugin has a method for every hook, and says which ones it uses
        yield Implementation(
            plugin=name,
            hook=hook,
            function=implementation.function,
            argnames=tuple(implementation.argnames),
            options=options.get(name, _NO_OPTIONS),
            awaited=inspect.iscoroutinefunction(implementation.function),
            bounded=bool(getattr(implementation.plugin, "kuberay_bounded", False)),
        )


def _start(coroutine: Coroutine[Any, Any, T], tasks: WeakSet[asyncio.Future[Any]]) -> asyncio.Task[T]:
    """Run a plugin's coroutine as a task; those that it starts in turn are noted in ``tasks``."""
    loop = asyncio.get_running_loop()
    _have_noted(loop)
    context = contextvars.copy_context()
    context.run(_started.set, tasks)
    return loop.create_task(_kept_in(coroutine), context=context)


async def _kept_in(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        return await coroutine
    except (SystemExit, KeyboardInterrupt) as error:  # asyncio would end the loop
        raise Rubbish(f"tried to end the process: {error!r}") from error


def _have_noted(loop: asyncio.AbstractEventLoop) -> None:
    """Have the loop note which tasks a plugin's coroutine starts. Once per loop."""
    inner = loop.get_task_factory()
    if getattr(inner, "notes_plugins", False):
        return

    def factory(loop: asyncio.AbstractEventLoop, coroutine: Any, **kwargs: Any) -> Any:
        task = inner(loop, coroutine, **kwargs) if inner else asyncio.Task(coroutine, loop=loop, **kwargs)
        started = _started.get()
        if started is not None:
            started.add(task)
        return task

    factory.notes_plugins = True  # type: ignore[attr-defined]  # our own mark, read above
    loop.set_task_factory(factory)


def _end_leaked(tasks: WeakSet[asyncio.Future[Any]]) -> int:
    """Cancel those that still run; returns how many."""
    leaked = [task for task in tasks if not task.done()]
    for task in leaked:
        task.cancel()
    return len(leaked)


def _close(awaitable: Any) -> None:
    """Drop a coroutine that will not be awaited, without Python's complaint."""
    close = getattr(awaitable, "close", None)
    if close is not None:
        close()
