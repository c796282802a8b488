"""Clusters deleted on a real API server: whatever Redis and the Job do, they go within their deadline.

The nodes are kwok's: a Pod of a Job is "run" by marking it as ended well. What the command does is tested
in ``test_job.py``; what the operator does to a real Redis, here and in ``test_clearing.py``.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.kube.resource import PODS, SECRETS, Resource
from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.operator import eventually
from kuberay_op.testing.world import World, world_on

pytestmark = pytest.mark.apiserver

MANIFEST: Final = Path(__file__).parent.parent / "src" / "kuberay_op_gcs_ft_redis" / "plugin.yaml"
FINALIZER: Final = "ray.io/gcs-ft-redis-cleanup-finalizer"
JOBS: Final = Resource("batch", "v1", "jobs", "Job")
QUOTAS: Final = Resource("", "v1", "resourcequotas", "ResourceQuota")
NOWHERE: Final = {"kubernetes.io/hostname": "nowhere"}

Start = Callable[..., AbstractAsyncContextManager[World]]


@pytest.fixture
def start(kwok_cluster: ControlPlane, kwok_namespace: str) -> Start:
    """Starts an operator with the plugin and these options of it, or without the plugin."""

    def run(*, on: bool = True, **options: Any) -> AbstractAsyncContextManager[World]:
        plugins = {"gcs-ft-redis": yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))} if on else {}
        return world_on(kwok_cluster, kwok_namespace, plugins, options={"gcs-ft-redis": options})

    return run


async def up_and_deleted(world: World, *parts: make.Part) -> None:
    """A cluster with a head and a worker, which is then deleted."""
    await world.create("c", make.redis(), make.workers(1), *parts)
    await world.has_head("c")
    assert (await world.cluster("c"))["metadata"]["finalizers"] == [FINALIZER]
    await world.delete(RAY_CLUSTERS, "c")


async def told(world: World, reason: str) -> str:
    """The event with this reason."""
    notes: list[str] = await eventually(lambda: world.said("c", reason))
    return notes[0]


async def waits(world: World) -> dict[str, Any]:
    """The condition, once it is the Job that is waited for."""

    async def said() -> dict[str, Any] | None:
        found = await world.agreement("c")
        return found if "Job" in found.get("message", "") else None

    found: dict[str, Any] = await eventually(said)
    return found


def ends(world: World, outcome: str) -> float:
    return world.counted("kuberay_op_redis_cleanups_total", outcome=outcome)


def on_nodes(selector: dict[str, str]) -> make.Part:
    return lambda obj: obj["spec"]["headGroupSpec"]["template"]["spec"].update(nodeSelector=selector)


async def test_a_job_cleans_up_once_the_head_is_gone(start: Start) -> None:
    async with start() as world:
        await world.create("c", make.redis(), make.workers(1))
        await world.has_head("c")
        [head] = await world.heads("c")
        hold = {"metadata": {"finalizers": ["example.com/hold"]}}
        await world.operator.client.patch(
            PODS, head["metadata"]["name"], world.namespace, hold, reason="a test"
        )
        await world.delete(RAY_CLUSTERS, "c")
        condition = await world.objects("c", "PluginWaits")
        assert "waiting for the head Pod" in condition["message"]

        async def workers_gone() -> bool:
            pods = (await world.operator.client.list(PODS, world.namespace)).items
            return [pod["metadata"]["name"] for pod in pods] == [head["metadata"]["name"]]

        await eventually(workers_gone)
        assert await world.get(JOBS, "c-redis-cleanup") is None
        free = {"metadata": {"finalizers": None}}
        await world.operator.client.patch(
            PODS, head["metadata"]["name"], world.namespace, free, reason="a test"
        )
        await world.gone(RAY_CLUSTERS, "c")
        note = f"Created Redis cleanup Job {world.namespace}/c-redis-cleanup"
        assert await told(world, "CreatedRedisCleanupJob") == note
        released = f"{FINALIZER}: Job c-redis-cleanup has removed the keys from Redis"
        assert await told(world, "FinalizerReleased") == released
        assert ends(world, "cleared") == 1


async def test_a_job_that_never_runs_is_given_up(start: Start) -> None:
    async with start(deadlineSeconds=4) as world:
        await world.create("c", make.redis(), on_nodes(NOWHERE))
        await world.has_head("c")
        await world.delete(RAY_CLUSTERS, "c")
        await world.gone(RAY_CLUSTERS, "c")
        assert_in_time(await told(world, "ForceDeletedStuckCluster"), 4)
        assert await told(world, "CreatedRedisCleanupJob")
        assert ends(world, "gave-up") == 1


async def test_a_job_that_may_not_be_made_holds_nobody(start: Start) -> None:
    async with start(deadlineSeconds=4) as world:
        await world.create("c", make.redis())
        await world.has_head("c")
        quota = {"metadata": {"name": "none", "namespace": world.namespace}}
        spec = {"spec": {"hard": {"count/jobs.batch": "0"}}}
        await world.operator.client.create(QUOTAS, {**quota, **spec}, reason="a test")

        async def in_force() -> bool:
            found = await world.get(QUOTAS, "none")
            return found is not None and "hard" in found.get("status", {})

        await eventually(in_force)
        await world.delete(RAY_CLUSTERS, "c")
        await world.gone(RAY_CLUSTERS, "c")
        assert "exceeded quota" in await told(world, "FailedToCreateRedisCleanupJob")
        assert_in_time(await told(world, "ForceDeletedStuckCluster"), 4)


async def test_a_head_on_a_lost_node_holds_nobody(start: Start) -> None:
    async with start(deadlineSeconds=6) as world:
        await world.create("c", make.redis())
        await world.has_head("c")
        [head] = await world.heads("c")
        name = head["metadata"]["name"]
        hold: dict[str, Any] = {"metadata": {"finalizers": ["example.com/lost-node"]}}
        await world.operator.client.patch(PODS, name, world.namespace, hold, reason="a test")
        await world.delete(RAY_CLUSTERS, "c")
        await world.gone(RAY_CLUSTERS, "c")
        assert await told(world, "CreatedRedisCleanupJob"), "the clean-up was begun all the same"
        free = {"metadata": {"finalizers": None}}
        await world.operator.client.patch(PODS, name, world.namespace, free, reason="a test")


async def test_a_job_that_kuberay_has_begun_is_waited_for(start: Start) -> None:
    """An operator that takes over in the middle of a deletion finds a Job that is not quite ours."""
    async with start(on=False) as world:
        made = await world.create("c", make.redis())
        await world.has_head("c")
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "c", "uid": made["metadata"]["uid"]}
    job = {
        "metadata": {
            "name": "c-redis-cleanup",
            "namespace": world.namespace,
            "labels": {"app.kubernetes.io/created-by": "kuberay-operator"},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            "suspend": True,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "x", "image": "x"}]}},
        },
    }
    async with start() as world:

        async def claimed() -> bool:
            return FINALIZER in (await world.cluster("c"))["metadata"].get("finalizers", ())

        await world.edit("c", {"metadata": {"labels": {"look": "again"}}})
        await eventually(claimed)
        before = await world.operator.client.create(JOBS, job, reason="the other operator")
        await world.delete(RAY_CLUSTERS, "c")

        assert "waiting for Job" in (await waits(world))["message"]
        found = await world.get(JOBS, "c-redis-cleanup")
        assert found is not None
        assert found["metadata"]["uid"] == before["metadata"]["uid"]
        go_on = {"spec": {"suspend": False}}
        await world.operator.client.patch(JOBS, "c-redis-cleanup", world.namespace, go_on, reason="a test")
        await world.gone(RAY_CLUSTERS, "c")
        assert "has removed the keys" in await told(world, "FinalizerReleased")


async def test_nobody_is_stuck_when_the_plugin_is_gone(start: Start) -> None:
    async with start() as world:
        await world.create("c", make.redis())
        await world.has_head("c")
    async with start(on=False) as world:
        assert FINALIZER in (await world.cluster("c"))["metadata"]["finalizers"]
        await world.delete(RAY_CLUSTERS, "c")
        await world.gone(RAY_CLUSTERS, "c")
        assert await told(world, "FinalizerReleased") == f"{FINALIZER}: no enabled plugin claims it"


async def test_nobody_is_stuck_when_the_cluster_has_become_invalid(start: Start) -> None:
    async with start() as world:
        await world.create("c", make.redis())
        await world.has_head("c")
        await world.edit("c", {"spec": {"headGroupSpec": {"resources": {"CPU": "1"}}}})
        await world.edit("c", {"spec": {"gcsFaultToleranceOptions": None}})
        await world.delete(RAY_CLUSTERS, "c")
        await world.gone(RAY_CLUSTERS, "c")
        assert await told(world, "FinalizerReleased") == f"{FINALIZER}: the cluster is not fault-tolerant"
        assert ends(world, "not-needed") == 1


# --- the operator itself, and a real Redis


async def password(world: World, text: str) -> make.Part:
    """A Secret with a password, and the part of a cluster that uses it."""
    data = {"password": base64.b64encode(text.encode()).decode()}
    secret = {"metadata": {"name": "redis", "namespace": world.namespace}, "data": data}
    await world.operator.client.create(SECRETS, secret, reason="a test")
    key = {"valueFrom": {"secretKeyRef": {"name": "redis", "key": "password"}}}

    def part(obj: dict[str, Any]) -> None:
        obj["spec"]["gcsFaultToleranceOptions"]["redisPassword"] = key

    return part


def at(address: str) -> make.Part:
    def part(obj: dict[str, Any]) -> None:
        obj["spec"]["gcsFaultToleranceOptions"]["redisAddress"] = address

    return part


async def test_the_operator_clears_redis_itself(start: Start, redis_server: Any) -> None:
    async with start(mode="operator", caFile=redis_server.ca_file) as world:
        secret = await password(world, "never-to-be-shown")
        made = await world.create(
            "c", make.redis(), at(f"rediss://localhost:{redis_server.tls_port}"), secret
        )
        await world.has_head("c")
        own, other = f"RAY{made['metadata']['uid']}@KV", f"RAY{made['metadata']['uid']}-2@KV"
        with redis_server.client() as client:
            for key in (own, other):
                client.hset(key, "field", "value")
        await world.delete(RAY_CLUSTERS, "c")
        await world.gone(RAY_CLUSTERS, "c")
        with redis_server.client() as client:
            assert (client.exists(own), client.exists(other)) == (0, 1)
            client.delete(other)
        text = f"removed 1 keys from Redis at localhost:{redis_server.tls_port}"
        assert await told(world, "FinalizerReleased") == f"{FINALIZER}: {text}"
        assert ends(world, "cleared") == 1
        assert await world.get(JOBS, "c-redis-cleanup") is None


async def test_a_wrong_password_is_told_and_not_shown(start: Start, redis_server: Any) -> None:
    async with start(mode="operator") as world:
        secret = await password(world, "wrong-and-hidden")
        await up_and_deleted(world, at(f"localhost:{redis_server.port}"), secret)
        await world.gone(RAY_CLUSTERS, "c")
        note = await told(world, "RedisCleanupFailed")
        assert "refuses: invalid username-password pair" in note
        assert "keys may be left" in note
        assert "hidden" not in note
        assert ends(world, "failed") == 1


@pytest.mark.parametrize("how", ["down", "slow"])
async def test_one_that_does_not_answer_is_given_up(start: Start, free_port: Any, how: str) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1] if how == "slow" else free_port()
        async with start(mode="operator") as world:
            timeout = make.annotations({"ray.io/gcs-ft-deletion-timeout": "5"})
            await up_and_deleted(world, at(f"127.0.0.1:{port}"), timeout)
            await world.gone(RAY_CLUSTERS, "c")
            note = await told(world, "ForceDeletedStuckCluster")
            assert_in_time(note, 5)
            assert ("does not answer" if how == "down" else "removing its keys") in note
            assert ends(world, "gave-up") == 1


async def test_what_the_operator_cannot_reach_is_left_to_the_job(start: Start) -> None:
    async with start(mode="operator") as world:
        variable = {"name": "RAY_REDIS_CLIENT_KEY", "value": "/certs/key"}

        def certificate(obj: dict[str, Any]) -> None:
            obj["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["env"] = [variable]

        await up_and_deleted(world, at("rediss://localhost:1"), certificate)
        await world.gone(RAY_CLUSTERS, "c")
        assert await told(world, "CreatedRedisCleanupJob")
        assert ends(world, "cleared") == 1


def assert_in_time(note: str, deadline: int) -> None:
    """Whether the cluster was let go at its deadline, and not much later (this machine may be busy)."""
    found = re.search(r"gave up after (\d+) s", note)
    assert found, note
    assert deadline <= int(found[1]) <= deadline + 20
