"""From the plan for Pods to actions: built by the builders, patched by plugins, in the right lanes."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

from kuberay_op.api.raycluster import RayCluster
from kuberay_op.build.metadata import OPERATOR_VERSION
from kuberay_op.build.pod import head_pod, worker_pod
from kuberay_op.config import Config
from kuberay_op.controllers.raycluster.pods import PodActions, settings_of
from kuberay_op.features import Gates
from kuberay_op.frozen import freeze, thaw
from kuberay_op.hooks import Merge, hookimpl
from kuberay_op.hooks.scope import Group, Scope
from kuberay_op.plan.actions import Action, Create, Delete, Update
from kuberay_op.plan.pods import plan_pods
from kuberay_op.plan.upgrade import stamps
from kuberay_op.testing import make, pods
from kuberay_op.testing.operator import make_hooks

Json = dict[str, Any]
CONFIG = Config()


def actions(cluster: Json, *existing: Json, config: Config = CONFIG, plugins: Any = None) -> list[Action]:
    view = RayCluster(cluster)
    plan = plan_pods(view, existing, settings_of(config), Random(1))  # noqa: S311 (for names)
    scope = Scope(owner=freeze(cluster), now=datetime.now(UTC), gate=config.gates.enabled)
    return list(PodActions(view, config, scope, make_hooks(plugins or {})).of(plan))


def lanes(found: list[Action]) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(type(action).__name__, action.lane, action.after) for action in found]


def test_workers_need_the_head_and_all_need_the_objects() -> None:
    cluster = make.raycluster("a", make.stored(), make.workers(1), make.workers(1, group="gpu"))
    assert lanes(actions(cluster)) == [
        ("Create", "head", ("objects",)),
        ("Create", "workers of workers", ("objects", "head")),
        ("Create", "workers of gpu", ("objects", "head")),
    ]


def test_pods_are_those_of_the_builders() -> None:
    cluster = make.raycluster("a", make.stored(), make.workers(2))
    view = RayCluster(cluster)
    head, first, second = actions(cluster)
    assert head.obj == head_pod(view, CONFIG)
    group = view.spec.worker_group_specs[0]
    assert first.obj == worker_pod(view, group, CONFIG, replica_index=0)
    assert second.obj == worker_pod(view, group, CONFIG, replica_index=1)


def test_hosts_have_their_place_in_their_replica() -> None:
    cluster = make.raycluster("a", make.stored(), make.workers(1, numOfHosts=2))
    view = RayCluster(cluster)
    _, first, second = actions(cluster)
    name = first.obj["metadata"]["labels"]["ray.io/worker-group-replica-name"]
    for host, action in enumerate((first, second)):
        group = view.spec.worker_group_specs[0]
        assert action.obj == worker_pod(view, group, CONFIG, replica_name=name, host_index=host)


def test_without_indexing_there_are_no_such_labels() -> None:
    config = Config(gates=Gates.default().with_overrides("RayMultiHostIndexing=false"))
    cluster = make.raycluster("a", make.stored(), make.workers(1))
    _, worker = actions(cluster, config=config)
    assert not [name for name in worker.obj["metadata"]["labels"] if "replica" in name]


def test_plugins_see_every_pod_with_its_group() -> None:
    class Plugin:
        @hookimpl
        def kuberay_patch_pod(self, pod: Any, group: Group) -> Merge:
            index = pod["metadata"]["labels"].get("ray.io/worker-group-replica-index", "none")
            return Merge({"metadata": {"labels": {"seen": f"{group.name}-{group.role}-{index}"}}})

    cluster = make.raycluster("a", make.stored(), make.workers(2))
    found = actions(cluster, plugins={"mine": Plugin()})
    assert [action.obj["metadata"]["labels"]["seen"] for action in found] == [
        "headgroup-head-none",
        "workers-worker-0",
        "workers-worker-1",
    ]
    assert [cause.plugin for action in found for cause in action.causes] == ["mine"] * 3


def test_deletions_come_first() -> None:
    cluster = make.raycluster("a", make.stored(), make.workers(1), make.workers(1, group="gpu"))
    found = actions(cluster, pods.head(cluster), pods.worker(cluster, "w0", phase="Failed"))
    assert lanes(found) == [
        ("Delete", "deleted Pods", ()),
        ("Create", "workers of gpu", ("objects", "head")),
    ]


def test_when_all_go_the_head_goes_last() -> None:
    cluster = make.raycluster("a", make.stored(), make.suspended(), make.condition("RayClusterSuspending"))
    found = actions(cluster, pods.head(cluster, age=100), pods.worker(cluster, "w0"))
    assert lanes(found) == [
        ("Delete", "all workers", ()),
        ("Delete", "all heads", ("all workers",)),
    ]


def test_a_head_of_another_version_gets_new_annotations_only() -> None:
    cluster = make.raycluster("a", make.stored(), make.spec(upgradeStrategy={"type": "Recreate"}))
    head = pods.head(cluster, notes={"ray.io/kuberay-version": "v1", "other": "stays"})
    (action,) = actions(cluster, head)
    assert isinstance(action, Update)
    assert action.obj["metadata"]["annotations"] == stamps(RayCluster(cluster), OPERATOR_VERSION)
    assert set(action.obj) == {"apiVersion", "kind", "metadata"}


def test_our_own_heads_are_never_taken_for_outdated() -> None:
    cluster = make.raycluster("a", make.stored(), make.spec(upgradeStrategy={"type": "Recreate"}))
    (made,) = actions(cluster)
    assert isinstance(made, Create)
    head = thaw(made.obj) | {"status": {"phase": "Running"}}
    assert actions(cluster, head) == []


def test_the_actions_of_a_deletion_name_the_pod_that_was_seen() -> None:
    cluster = make.raycluster("a", make.stored())
    head = pods.head(cluster, phase="Failed")
    (action,) = actions(cluster, head)
    assert isinstance(action, Delete)
    assert action.obj == head
