"""Whatever happens in whatever order, planning ends where the spec says, and never does harm on the way."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kuberay_op.api import labels, replicas
from kuberay_op.api.annotations import RECREATE_HASH
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.plan.pods import PodPlan, PodSettings, plan_pods
from kuberay_op.plan.suspend import Suspend, next_step, step_of
from kuberay_op.plan.upgrade import stamps
from kuberay_op.testing import make, pods

#: More rounds than any of these clusters needs to come to rest.
ROUNDS = 20
GROUPS = ("a", "b")
#: Where the model notes from which spec a Pod was made.
MADE_FROM = "test/made-from"


class Planning(RuleBasedStateMachine):
    """A cluster, its Pods, a user who edits, kubelets that work or fail, an operator that may be killed."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = Random(7)  # noqa: S311 (for names of replicas)
        self.head_lost = False

    @initialize(
        counts=st.tuples(*[st.integers(0, 4)] * 2),
        hosts=st.integers(0, 3),
        recreate=st.booleans(),
        autoscaling=st.booleans(),
        indexing=st.booleans(),
    )
    def begin(
        self, counts: tuple[int, int], hosts: int, recreate: bool, autoscaling: bool, indexing: bool
    ) -> None:
        self.cluster = make.raycluster(
            "c",
            make.stored(),
            make.workers(counts[0], group="a", maxReplicas=6),
            make.workers(counts[1], group="b", maxReplicas=6, numOfHosts=hosts),
        )
        if recreate:
            self.cluster["spec"]["upgradeStrategy"] = {"type": "Recreate"}
        if autoscaling:
            self.cluster["spec"]["enableInTreeAutoscaling"] = True
        self.recreate, self.autoscaling = recreate, autoscaling
        self.settings = PodSettings("test", indexing=indexing)
        # Foreign Pods carry the cluster's labels; the operator is shown only what the cluster owns.
        self.world = pods.World(self.cluster)

    # --- the operator

    def plan(self) -> PodPlan:
        shown = self.world.seen()
        self.rng.shuffle(shown)  # a cache has no order
        before = copy.deepcopy(shown)
        plan = plan_pods(RayCluster(self.cluster), shown, self.settings, self.rng)
        assert shown == before, "planning changes nothing it is shown"
        return plan

    def check(self, plan: PodPlan) -> None:
        names = [removal.pod.name for removal in plan.remove]
        assert len(names) == len(set(names)), "no Pod is removed twice"
        for name in names:
            assert "deletionTimestamp" not in self.world.pods[name]["metadata"], "nor one that already goes"
        assert all(item.reason for item in plan.add)
        assert all(item.reason for item in plan.remove)
        for group in RayCluster(self.cluster).spec.worker_group_specs:
            there = len(self.of_group(group.group_name))
            new = sum(1 for addition in plan.add if addition.group == group.group_name)
            assert not new or there + new <= replicas.group_desired_pods(group) <= 6 * replicas.hosts(group)
        heads = len(self.of_group(labels.HEAD_GROUP))
        assert heads + sum(item.group == labels.HEAD_GROUP for item in plan.add) <= 1, "never two heads"

    @rule()
    def reconcile(self) -> None:
        plan = self.plan()
        self.check(plan)
        self.carry_out(plan)
        again = self.plan()
        assert (again.add, again.remove, again.stamp) == ((), (), None), "what is done is done"

    @rule(done=st.integers(0, 5))
    def reconcile_and_be_killed(self, done: int) -> None:
        """Only a part of the plan is carried out; all Pods going, the head is the last."""
        plan = self.plan()
        remove = sorted(plan.remove, key=lambda removal: plan.all_go and removal.pod.role == labels.HEAD)
        self.carry_out(PodPlan(add=plan.add[: max(0, done - len(remove))], remove=tuple(remove[:done])))

    @rule()
    def report(self) -> None:
        """The suspend conditions, as the status step writes them."""
        step = next_step(RayCluster(self.cluster), pods_left=bool(self.world.pods))
        conditions = [
            {"type": each.value, "status": str(each is step), "reason": "Test", "message": ""}
            for each in (Suspend.SUSPENDING, Suspend.SUSPENDED)
        ]
        self.cluster["status"] = {"conditions": conditions}

    def carry_out(self, plan: PodPlan) -> None:
        before = set(self.world.pods)
        self.world.carry_out(plan)
        for name in set(self.world.pods) - before:
            self.world.pods[name]["metadata"]["labels"][MADE_FROM] = self.hash()

    # --- kubelets and accidents

    def pick(self, number: int) -> str:
        return sorted(self.world.pods)[number % len(self.world.pods)]

    def of_group(self, group: str) -> list[dict[str, Any]]:
        marks = [pod["metadata"]["labels"][labels.GROUP] for pod in self.world.pods.values()]
        return [pod for pod, mark in zip(self.world.pods.values(), marks, strict=True) if mark == group]

    @precondition(lambda self: self.world.pods)
    @rule(number=st.integers(0, 99), ready=st.booleans())
    def pod_runs(self, number: int, ready: bool) -> None:
        self.world.run(self.pick(number), ready=ready)

    @precondition(lambda self: self.world.pods)
    @rule(number=st.integers(0, 99))
    def pod_fails(self, number: int) -> None:
        name = self.pick(number)
        self.world.fail(name)
        self.head_lost |= name.startswith(labels.HEAD_GROUP)

    @precondition(lambda self: self.world.pods)
    @rule(number=st.integers(0, 99))
    def somebody_deletes_a_pod(self, number: int) -> None:
        name = self.pick(number)
        self.world.mark(name)
        self.head_lost |= name.startswith(labels.HEAD_GROUP)

    @precondition(lambda self: self.world.pods)
    @rule(number=st.integers(0, 99))
    def pod_is_gone(self, number: int) -> None:
        name = self.pick(number)
        if "deletionTimestamp" in self.world.pods[name]["metadata"]:
            self.world.finish(name)

    # --- the user and the autoscaler

    @rule(group=st.integers(0, 1), count=st.integers(0, 8))
    def scale(self, group: int, count: int) -> None:
        self.cluster["spec"]["workerGroupSpecs"][group]["replicas"] = count

    @rule(wish=st.sampled_from([True, False, None]))
    def suspend(self, wish: bool | None) -> None:
        self.cluster["spec"].pop("suspend", None)
        if wish is not None:
            self.cluster["spec"]["suspend"] = wish

    @rule(group=st.integers(0, 1), wish=st.booleans())
    def suspend_group(self, group: int, wish: bool) -> None:
        self.cluster["spec"]["workerGroupSpecs"][group]["suspend"] = wish

    @precondition(lambda self: self.world.pods)
    @rule(group=st.integers(0, 1), number=st.integers(0, 99))
    def name_for_deletion(self, group: int, number: int) -> None:
        chosen = self.cluster["spec"]["workerGroupSpecs"][group]
        chosen["scaleStrategy"] = {"workersToDelete": [self.pick(number), "no-such-pod"]}

    @rule(hosts=st.integers(0, 3))
    def change_hosts(self, hosts: int) -> None:
        self.cluster["spec"]["workerGroupSpecs"][1]["numOfHosts"] = hosts

    @rule(version=st.sampled_from(["2.52.0", "2.53.0"]))
    def change_ray(self, version: str) -> None:
        self.cluster["spec"]["rayVersion"] = version

    # --- what always holds, and where it ends

    def hash(self) -> str:
        return stamps(RayCluster(self.cluster), "test")[RECREATE_HASH]

    @invariant()
    def there_is_never_a_second_head(self) -> None:
        if hasattr(self, "world"):
            assert len(self.of_group(labels.HEAD_GROUP)) <= 1

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        for _ in range(ROUNDS):
            self.report()
            self.reconcile()
            self.world.settle()
        self.report()
        at_rest = self.plan()
        assert (at_rest.add, at_rest.remove, at_rest.stamp, at_rest.problem) == ((), (), None, "")
        if step_of(RayCluster(self.cluster)) is Suspend.SUSPENDED:
            assert self.world.pods == {}
            assert self.cluster["spec"].get("suspend") is not False
            return
        assert not self.cluster["spec"].get("suspend")
        assert len(self.of_group(labels.HEAD_GROUP)) == 1
        for group in RayCluster(self.cluster).spec.worker_group_specs:
            wanted, found = replicas.group_desired_pods(group), len(self.of_group(group.group_name))
            assert found >= wanted if self.autoscaling else found == wanted
        assert all(pod["status"]["phase"] == "Running" for pod in self.world.pods.values())
        if self.recreate and not self.head_lost:
            made_from = {pod["metadata"]["labels"][MADE_FROM] for pod in self.world.pods.values()}
            assert made_from == {self.hash()}, "nothing of an old spec is left"


PATIENT = settings(
    stateful_step_count=30,
    deadline=None,
    phases=(Phase.generate,),  # making a failing story shorter takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def test_planning() -> None:
    run_state_machine_as_test(Planning, settings=settings(PATIENT, max_examples=40, derandomize=True))


@pytest.mark.slow
def test_planning_with_many_more_stories() -> None:
    run_state_machine_as_test(Planning, settings=settings(PATIENT, max_examples=2000))
