"""Clearing a real Redis: only the namespace goes, and whatever Redis does, there is an end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kuberay_op.errors import OperatorError
from kuberay_op.testing.operator import eventually
from kuberay_op_gcs_ft_redis import clearing
from kuberay_op_gcs_ft_redis.clearing import Clearing, Order, Progress, Trust
from kuberay_op_gcs_ft_redis.connection import Literal, Place, SecretKey

#: A namespace that means something else as a pattern.
NAMESPACE = r"ml-[a-z]*?\1"

#: What looks like it and is not.
OTHERS = (rf"RAY{NAMESPACE}x@", "RAYml-a@", f"{NAMESPACE}@", f"XRAY{NAMESPACE}@", "RAY@", rf"RAY{NAMESPACE}")


async def password(name: str) -> Mapping[str, bytes]:
    if name != "redis":
        raise OperatorError(f"Secret {name} does not exist")
    return {"password": b"never-to-be-shown", "wrong": b"also-hidden"}


def place(server: Any, **changed: Any) -> Place:
    given = {"host": "localhost", "port": server.tls_port, "tls": True, "namespace": NAMESPACE}
    return Place(**{**given, "password": SecretKey("redis", "password"), **changed})


@asynccontextmanager
async def at_work(trust: Trust) -> AsyncIterator[Clearing]:
    found = Clearing(trust)
    found.start()
    try:
        yield found
    finally:
        await found.stop()


async def ended(work: Clearing, order: Order) -> Progress:
    async def end() -> Progress | None:
        said = work.progress("uid", order)
        return said if said.ended else None

    found: Progress = await eventually(end)
    return found


def fill(server: Any, own: int, others: int) -> None:
    with server.client() as client:
        client.flushall()
        for prefix, count in (
            (f"RAY{NAMESPACE}@", own),
            *((prefix, others // len(OTHERS)) for prefix in OTHERS),
        ):
            for start in range(0, count, 10_000):
                pipe = client.pipeline(transaction=False)
                for index in range(start, min(start + 10_000, count)):
                    pipe.hset(f"{prefix}{index}", "field", "value")
                pipe.execute()


async def test_of_100000_keys_only_those_of_the_namespace_go(redis_server: Any) -> None:
    await asyncio.to_thread(fill, redis_server, 40_000, 60_000)
    async with at_work(Trust(redis_server.ca_file)) as work:
        end = await ended(work, Order(place(redis_server), password, 60.0))
    assert end == Progress(True, True, f"removed 40000 keys from Redis at localhost:{redis_server.tls_port}")
    with redis_server.client() as client:
        assert client.dbsize() == 60_000
        assert next(client.scan_iter(match=f"RAY{clearing.escaped(NAMESPACE)}@*"), None) is None
        client.flushall()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            {"password": SecretKey("redis", "wrong")},
            "refuses: invalid username-password pair or user is disabled.",
        ),
        ({"username": Literal("nobody")}, "refuses: invalid username-password pair or user is disabled."),
        ({"password": None}, "refuses: Authentication required."),
    ],
)
async def test_wrong_credentials_end_it_and_are_not_shown(
    redis_server: Any, wrong: dict[str, Any], says: str
) -> None:
    async with at_work(Trust(redis_server.ca_file)) as work:
        end = await ended(work, Order(place(redis_server, **wrong), password, 60.0))
    assert end.ended
    assert not end.well
    assert says in end.text
    assert "hidden" not in end.text


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"password": SecretKey("gone", "password")}, "cannot be read: Secret gone does not exist"),
        ({"password": SecretKey("redis", "gone")}, "cannot be read: Secret redis has no key gone"),
        ({"host": "127.0.0.2"}, "does not answer"),
        ({"port": 1}, "does not answer"),
    ],
)
async def test_what_may_mend_itself_is_tried_until_the_deadline(
    redis_server: Any, wrong: dict[str, Any], says: str
) -> None:
    async with at_work(Trust(redis_server.ca_file)) as work:

        async def told() -> bool:
            order = Order(place(redis_server, **wrong), password, 60.0)
            return says in work.progress("uid", order).text

        await eventually(told)
        assert not work.known("uid").ended


async def test_a_certificate_of_somebody_else_is_refused(redis_server: Any, other_ca: str) -> None:
    async with at_work(Trust(other_ca)) as work:

        async def told() -> bool:
            said = work.progress("uid", Order(place(redis_server), password, 60.0))
            return "certificate verify failed" in said.text.lower()

        await eventually(told)
    async with at_work(Trust(other_ca, verify=False)) as work:
        assert (await ended(work, Order(place(redis_server), password, 60.0))).well


async def test_one_that_comes_up_later_is_cleared(start_redis: Any, free_port: Any) -> None:
    port, tls_port = free_port(), free_port()
    async with at_work(Trust()) as work:
        order = Order(
            Place("localhost", port, False, NAMESPACE, None, SecretKey("redis", "password")), password, 120
        )

        async def down() -> bool:
            return "does not answer" in work.progress("uid", order).text

        await eventually(down)
        server = await asyncio.to_thread(start_redis, port, tls_port)
        assert (await ended(work, order)).well
        del server


async def test_one_that_says_nothing_holds_nobody_beyond_the_deadline() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with at_work(Trust()) as work:
            order = Order(Place("127.0.0.1", port, False, NAMESPACE), password, 0.3)
            assert not work.progress("uid", order).ended
            await asyncio.sleep(0.1)
            assert "redis-clearing uid" in [task.get_name() for task in asyncio.all_tasks()]
            await asyncio.sleep(1.0)
            names = [task.get_name() for task in asyncio.all_tasks()]
            assert "redis-clearing uid" not in names, "the order's time is up"
            assert work.known("uid") == Progress(text=f"removing its keys from Redis at 127.0.0.1:{port}")


async def test_the_end_of_the_operator_ends_it(redis_server: Any) -> None:
    async with at_work(Trust(redis_server.ca_file)) as work:
        work.progress("uid", Order(place(redis_server, port=1), password, 60.0))
        await asyncio.sleep(0.1)
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []
