"""What the hooks answer, step by step, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from prometheus_client import CollectorRegistry

from kuberay_op.config import Config
from kuberay_op.declarative.lint import lint
from kuberay_op.declarative.manifest import read_manifest
from kuberay_op.declarative.options import checked_options
from kuberay_op.errors import Misconfigured
from kuberay_op.frozen import freeze
from kuberay_op.hooks import Done, Scope, Wait
from kuberay_op.testing import make
from kuberay_op_gcs_ft_redis import hooks

MANIFEST: Final = Path(__file__).parent.parent / "src" / "kuberay_op_gcs_ft_redis" / "plugin.yaml"
FINALIZER: Final = "ray.io/gcs-ft-redis-cleanup-finalizer"
DELETED: Final = "2026-01-01T01:00:00Z"
ROCKSDB: Final = make.cluster(gcsFaultToleranceOptions={"backend": "rocksdb"})

HEAD: Final = {"kind": "Pod", "metadata": {"name": "c-head-x", "labels": {"ray.io/node-type": "head"}}}
WORKER: Final = {"kind": "Pod", "metadata": {"name": "c-w", "labels": {"ray.io/node-type": "worker"}}}


def job(*conditions: dict[str, str]) -> dict[str, Any]:
    return {
        "kind": "Job",
        "metadata": {"name": "c-redis-cleanup"},
        "status": {"conditions": list(conditions)},
    }


COMPLETE: Final = job({"type": "Complete", "status": "True"})
FAILED: Final = job({"type": "Failed", "status": "True", "message": "Job was active longer than allowed"})
FAILING: Final = job({"type": "FailureTarget", "status": "True"})


def options(**given: Any) -> Any:
    return checked_options(read_manifest(MANIFEST), given)


def scope(
    *parts: make.Part, after: float = 1.0, children: Any = (), config: Config | None = None, uid: str = "u"
) -> Scope:
    owner = make.raycluster("c", make.stored(uid=uid), make.redis(), make.deleted(DELETED, FINALIZER), *parts)
    by_kind: dict[str, list[Any]] = {}
    for child in children:
        by_kind.setdefault(child["kind"], []).append(child)
    return Scope(
        owner=freeze(owner),
        now=datetime.fromisoformat(DELETED) + timedelta(seconds=after),
        gate=lambda _: True,
        children=freeze(by_kind),
        config=config or Config(),
    )


async def answer(*arguments: Any, deadline: int = 300, **given: Any) -> Any:
    return await hooks.kuberay_finalize(
        scope(*arguments, **given), FINALIZER, options(deadlineSeconds=deadline)
    )


@pytest.fixture(autouse=True)
def registry() -> Iterator[CollectorRegistry]:
    found = CollectorRegistry()
    hooks.kuberay_register_metrics(found)
    yield found
    hooks._process.__init__()  # type: ignore[misc]  # as a new process would find it


def counted(registry: CollectorRegistry, outcome: str) -> float:
    return registry.get_sample_value("kuberay_op_redis_cleanups_total", {"outcome": outcome}) or 0.0


def test_the_manifest_has_no_mistakes() -> None:
    assert lint(yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("parts", "config", "claimed"),
    [
        ((make.redis(),), Config(), True),
        ((make.annotations({"ray.io/ft-enabled": "TRUE"}),), Config(), True),
        ((make.annotations({"ray.io/ft-enabled": "false"}),), Config(), False),
        ((), Config(), False),
        ((ROCKSDB,), Config(), False),
        ((make.redis(),), Config(enable_gcs_ft_redis_cleanup=False), False),
    ],
)
def test_who_gets_the_finalizer(parts: tuple[make.Part, ...], config: Config, claimed: bool) -> None:
    """Contract 02 §2.7 and §15."""
    owner = make.raycluster("c", make.stored(), *parts)
    found = Scope(
        owner=freeze(owner), now=datetime.fromisoformat(DELETED), gate=lambda _: True, config=config
    )
    assert hooks.kuberay_finalizers(found) == ([FINALIZER] if claimed else [])


async def test_others_finalizers_are_not_ours() -> None:
    assert await hooks.kuberay_finalize(scope(), "ray.io/other", options()) is None


async def test_first_the_pods_go() -> None:
    found = await answer(children=(HEAD, WORKER))
    assert found == Wait(
        "waiting for the head Pod c-head-x to go before Redis is cleaned up", 10.0, stop_pods=True
    )


@pytest.mark.parametrize("children", [(), (WORKER,), (job(),)])
async def test_then_the_job_is_made(children: Any) -> None:
    """Workers are not waited for (02 §3, 2)."""
    found = await answer(children=children)
    assert isinstance(found, Wait)
    assert found.stop_pods
    assert found.called == "Redis cleanup Job"
    [made] = found.objects
    assert (made["kind"], made["metadata"]["name"]) == ("Job", "c-redis-cleanup")


@pytest.mark.parametrize(
    ("deadline", "after", "begins"),
    [(300, 239, False), (300, 240, True), (100, 49, False), (100, 50, True), (4, 1.9, False), (4, 2, True)],
)
async def test_a_head_that_will_not_go_does_not_keep_the_job_from_starting(
    deadline: int, after: float, begins: bool
) -> None:
    """Fixed (02 §16.1, 3): a lost node neither holds the deletion nor skips the clean-up."""
    found = await answer(children=(HEAD,), deadline=deadline, after=after)
    assert bool(found.objects) is begins
    assert found.seconds <= deadline - after


@pytest.mark.parametrize(
    ("ended", "outcome", "event", "text"),
    [
        (COMPLETE, "cleared", "", "Job c-redis-cleanup has removed the keys from Redis"),
        (FAILED, "failed", "RedisCleanupFailed", "failed: Job was active longer than allowed; keys may be"),
        (FAILING, "failed", "RedisCleanupFailed", "Job c-redis-cleanup failed; keys may be left in Redis"),
    ],
)
async def test_the_end_of_the_job_is_the_end(
    registry: CollectorRegistry, ended: Any, outcome: str, event: str, text: str
) -> None:
    for _ in range(2):  # a finalizer that could not be taken off is asked about again
        found = await answer(children=(HEAD, ended), after=1000)
        assert isinstance(found, Done)
        assert text in found.reason
        assert (found.event, found.warning) == (event, bool(event))
    assert counted(registry, outcome) == 1


@pytest.mark.parametrize("children", [(), (HEAD,), (job(),)])
async def test_at_the_deadline_it_goes_whatever_there_is(registry: CollectorRegistry, children: Any) -> None:
    found = await answer(children=children, after=300)
    text = "gave up after 300 s; keys of storage namespace 'u' may be left in Redis"
    assert found == Done(text, event="ForceDeletedStuckCluster", warning=True)
    assert counted(registry, "gave-up") == 1


@pytest.mark.parametrize(
    ("text", "ended"),
    [("5", True), ("20", False), ("0", False), ("-3", False), ("soon", False), ("²", False)],
)
async def test_an_annotation_sets_the_deadline(text: str, ended: bool) -> None:
    found = await answer(make.annotations({"ray.io/gcs-ft-deletion-timeout": text}), after=10)
    assert isinstance(found, Done) is ended


@pytest.mark.parametrize(
    ("parts", "config", "reason"),
    [
        ((ROCKSDB,), Config(), "on a volume"),
        ((lambda obj: obj["spec"].pop("gcsFaultToleranceOptions"),), Config(), "not fault-tolerant"),
        ((), Config(enable_gcs_ft_redis_cleanup=False), "ENABLE_GCS_FT_REDIS_CLEANUP"),
    ],
)
async def test_what_does_not_apply_any_more_holds_nobody(
    registry: CollectorRegistry, parts: Any, config: Config, reason: str
) -> None:
    """Fixed (02 §16.1, 2)."""
    found = await answer(*parts, config=config, children=(HEAD,))
    assert isinstance(found, Done)
    assert reason in found.reason
    assert not found.warning
    assert counted(registry, "not-needed") == 1


async def test_a_spec_that_no_job_can_be_made_from_is_let_go(registry: CollectorRegistry) -> None:
    found = await answer(make.head(template={"spec": {"containers": []}}))
    assert isinstance(found, Done)
    assert found.warning
    assert "no Job can be made from this spec" in found.reason
    assert counted(registry, "failed") == 1


@pytest.mark.parametrize(
    ("given", "mistake"),
    [
        ({"deadlineSeconds": 0}, "deadlineSeconds must be at least 1, not 0"),
        ({"mode": "operator", "caFile": "/nowhere.pem"}, "caFile /nowhere.pem: there is no such file"),
    ],
)
async def test_options_are_checked_at_the_start(given: dict[str, Any], mistake: str) -> None:
    with pytest.raises(Misconfigured, match=mistake):
        await hooks.kuberay_started(options(**given))
