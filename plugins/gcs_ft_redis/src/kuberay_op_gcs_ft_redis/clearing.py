"""Clears Redis in the background, for a hook has a second and a large Redis takes longer.

Hooks only ask (:meth:`Clearing.progress`): the first question about a cluster begins the work, later ones say
how far it has come. Nothing here outlives its order's deadline, and nothing is tried again that was refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass, field
from typing import Final

from redis import asyncio as aioredis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, RedisError, ResponseError
from redis.exceptions import ConnectionError as Unreachable
from redis.exceptions import TimeoutError as Slow

from kuberay_op.errors import OperatorError
from kuberay_op_gcs_ft_redis.connection import Place, ReadSecret, resolve

#: Seconds for a connection, and for one answer.
CONNECT: Final = 5.0
ANSWER: Final = 10.0

#: Seconds until a server that does not answer is tried again.
AGAIN: Final = 1.0

#: Clusters that are cleared at the same time: one Redis that hangs holds one of these until its deadline.
AT_ONCE: Final = 32

#: Keys that Redis looks at in one step. It serves nobody else meanwhile.
SCANNED: Final = 1000

#: Clusters of which the end is remembered.
REMEMBERED: Final = 1000


@dataclass(frozen=True, slots=True)
class Trust:
    """How the certificate of a server is checked."""

    ca_file: str | None = None
    verify: bool = True


@dataclass(frozen=True, slots=True)
class Order:
    """Clear this, and take no longer than so many seconds."""

    place: Place
    read_secret: ReadSecret = field(repr=False)
    seconds: float


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it has come: ``ended`` and well, ended and not, or not yet; in a sentence."""

    ended: bool = False
    well: bool = False
    text: str = ""


class Clearing:
    """The orders of one operator. Belongs to one event loop."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._orders: asyncio.Queue[tuple[str, Order]] = asyncio.Queue()
        self._progress: dict[str, Progress] = {}
        self._runner: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to work."""
        self._runner = asyncio.create_task(self._run(), name="redis-clearing")

    async def stop(self) -> None:
        """End all work; connections are closed."""
        if self._runner is not None:
            self._runner.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._runner

    def progress(self, uid: str, order: Order) -> Progress:
        """How far the clearing for a cluster has come; the first time, it begins."""
        if uid not in self._progress:
            self._say(uid, Progress(text=f"removing its keys from Redis at {order.place}"))
            self._orders.put_nowait((uid, order))
        return self._progress[uid]

    def known(self, uid: str) -> Progress:
        """How far it has come, without beginning it."""
        return self._progress.get(uid, Progress())

    async def _run(self) -> None:
        free = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as group:
            while True:
                uid, order = await self._orders.get()
                group.create_task(self._one(uid, order, free), name=f"redis-clearing {uid}")

    async def _one(self, uid: str, order: Order, free: asyncio.Semaphore) -> None:
        # Who is late has said why, and whoever asked knows the deadline, too.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(order.seconds), free:
                self._say(uid, await self._until_it_answers(uid, order))

    async def _until_it_answers(self, uid: str, order: Order) -> Progress:
        place = order.place
        while True:
            password: str | None = None
            try:
                username = await resolve(place.username, order.read_secret)
                password = await resolve(place.password, order.read_secret)
                removed = await clear(place, username, password, self._trust)
            except (AuthenticationError, ResponseError) as error:
                text = f"Redis at {place} refuses: {_said(error, password)}; keys may be left in it"
                return Progress(True, False, text)
            except (Unreachable, Slow, RedisError, OSError) as error:
                trouble = f"Redis at {place} does not answer: {_said(error, password)}"
                self._say(uid, Progress(text=trouble))
            except OperatorError as error:  # about the Secret, without what is in it
                self._say(uid, Progress(text=f"the credentials for Redis at {place} cannot be read: {error}"))
            else:
                return Progress(True, True, f"removed {removed} keys from Redis at {place}")
            await asyncio.sleep(AGAIN)

    def _say(self, uid: str, progress: Progress) -> None:
        self._progress[uid] = progress
        if len(self._progress) > REMEMBERED:
            del self._progress[next(iter(self._progress))]


async def clear(place: Place, username: str | None, password: str | None, trust: Trust) -> int:
    """Remove all keys of the namespace; gives their number."""
    client = aioredis.Redis(
        host=place.host,
        port=place.port,
        username=username,
        password=password,
        socket_connect_timeout=CONNECT,
        socket_timeout=ANSWER,
        single_connection_client=True,
        protocol=2,  # which every Redis speaks
        retry=Retry(NoBackoff(), 0),  # we try again ourselves, and say so
        ssl=place.tls,
        ssl_ca_certs=trust.ca_file,
        ssl_cert_reqs="required" if trust.verify else "none",
        ssl_check_hostname=trust.verify,
    )
    removed, cursor, pattern = 0, 0, f"{escaped(prefix_of(place.namespace))}*"
    async with client:
        while True:
            cursor, keys = await client.scan(cursor, match=pattern, count=SCANNED)
            if keys:
                removed += await client.unlink(*keys)
            if not cursor:
                return removed


def prefix_of(namespace: str) -> str:
    """What the keys of a namespace begin with. Ray allows no ``@`` in a namespace, so no other's do."""
    return f"RAY{namespace}@"


def escaped(text: str) -> str:
    """The text as a pattern that matches it alone."""
    return re.sub(r"([\\*?\[\]^])", r"\\\1", text)


def _said(error: Exception, password: str | None) -> str:
    text = str(error) or type(error).__name__
    return text.replace(password, "…") if password else text
