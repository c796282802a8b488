"""``/debug``: what the runtime is doing, for people. Off unless asked for.

It shows names, numbers and the summaries of passes; never the content of objects.
"""

from __future__ import annotations

import asyncio
import resource as os_resource
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any, Final

import orjson
from aiohttp import web

from kuberay_op.clock import Clock
from kuberay_op.kube.cache import Store
from kuberay_op.runtime.controller import Pass
from kuberay_op.runtime.manager import Manager

#: Objects of a cache that are measured; the rest is taken to be like them.
SAMPLE: Final = 100

#: Frames shown of each task.
FRAMES: Final = 4

View = Callable[[web.Request], Awaitable[Any]]


class Debug:
    """The views, each a method that gives what is printed as JSON."""

    def __init__(self, manager: Manager, *, clock: Clock) -> None:
        self._manager = manager
        self._clock = clock

    def routes(self) -> list[web.RouteDef]:
        """All views and, under ``/debug``, a list of them."""
        views: dict[str, View] = {
            "queues": self.queues,
            "passes": self.passes,
            "tasks": self.tasks,
            "memory": self.memory,
            "state": self.state,
        }
        paths = {f"/debug/{name}": (view.__doc__ or "").strip() for name, view in views.items()}

        async def index(_: web.Request) -> Any:
            return paths

        return [
            web.get("/debug", _json(index)),
            *(web.get(f"/debug/{name}", _json(view)) for name, view in views.items()),
        ]

    async def queues(self, _: web.Request) -> Any:
        """Every key in every queue: state, priority, seconds in it (or to go) and failures in a row."""
        return {
            name: [asdict(entry) | {"key": str(entry.key)} for entry in wiring.controller.queue.entries()]
            for name, wiring in self._manager.wirings.items()
        }

    async def passes(self, request: web.Request) -> Any:
        """The last pass over each object; ``?key=namespace/name`` for one."""
        wanted = request.query.get("key")
        return {
            name: [
                _shown(done)
                for key, done in list(wiring.controller.last.items())
                if wanted in (None, str(key))
            ]
            for name, wiring in self._manager.wirings.items()
        }

    async def tasks(self, _: web.Request) -> Any:
        """Every asyncio task and where it waits."""
        return sorted(
            ({"task": task.get_name(), "at": _frames(task)} for task in asyncio.all_tasks()),
            key=lambda shown: str(shown["task"]),
        )

    async def memory(self, _: web.Request) -> Any:
        """Objects and estimated bytes (as JSON) by kind, and the largest the process has been."""
        largest = os_resource.getrusage(os_resource.RUSAGE_SELF).ru_maxrss * 1024
        kinds = {}
        for name, reflector in self._manager.reflectors.items():
            kinds[name] = _measured(reflector.store)
            await asyncio.sleep(0)  # measuring is work; others get their turn
        return {"largest_resident_bytes": largest, "caches": kinds}

    async def state(self, _: web.Request) -> Any:
        """Leader, watches, background tasks and the loop's lag."""
        manager, now = self._manager, self._clock.monotonic()
        leader = manager.leader
        return {
            "leader": None
            if leader is None
            else {
                "identity": leader.identity,
                "holder": leader.holder,
                "leading": leader.leading,
                "seconds_since_renewal": _seconds(leader.since_renewal() if leader.leading else None),
            },
            "watches": {
                name: {
                    "objects": len(reflector.store),
                    "synced": reflector.synced.is_set(),
                    "errors": reflector.errors,
                    "silent_seconds": _since(now, reflector.last_contact),
                    "failing_seconds": _since(now, reflector.failing_since),
                }
                for name, reflector in manager.reflectors.items()
            },
            "behind": {
                name: [str(owner) for owner in wiring.expectations.owners()]
                for name, wiring in manager.wirings.items()
            },
            "restarts": manager.supervisor.restarts,
            "loop": {"lag_seconds": manager.heartbeat.lag, "worst_lag_seconds": manager.heartbeat.worst},
        }


def _json(view: View) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        body = orjson.dumps(await view(request), default=str, option=orjson.OPT_INDENT_2)
        return web.Response(body=body + b"\n", content_type="application/json")

    return answer


def _shown(done: Pass) -> dict[str, Any]:
    return asdict(done) | {"key": str(done.key)}


def _frames(task: asyncio.Task[Any]) -> list[str]:
    return [
        f"{frame.f_code.co_qualname} ({frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno})"
        for frame in task.get_stack(limit=FRAMES)
    ]


def _measured(store: Store) -> dict[str, int]:
    objects = store.list()
    step = max(1, len(objects) // SAMPLE)
    sample = [len(orjson.dumps(obj)) for obj in objects[::step]]
    mean = sum(sample) / len(sample) if sample else 0
    return {"objects": len(objects), "bytes": round(mean * len(objects))}


def _since(now: float, moment: float | None) -> float | None:
    return _seconds(None if moment is None else now - moment)


def _seconds(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
