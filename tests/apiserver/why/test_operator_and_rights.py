"""When the operator is the trouble, and when whoever asks may not see everything."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kuberay_op.api import labels
from kuberay_op.kube.events import micro_time
from kuberay_op.kube.resource import LEASES, PODS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS
from kuberay_op.rbac import cluster_role
from kuberay_op.testing import make
from kuberay_op.testing.operator import eventually

pytestmark = [
    pytest.mark.apiserver,
    pytest.mark.loop_guard(milliseconds=10_000),  # the loop shares its thread's lock with the command
]

HOLDER = "kuberay-operator-0_11111111-2222-4333-8444-555555555555"


async def lease(place: Any, renewed: datetime) -> None:
    spec = {"holderIdentity": HOLDER, "leaseDurationSeconds": 15, "renewTime": micro_time(renewed)}
    await place.put(LEASES, "ray-operator-leader", spec=spec)


async def user(place: Any, name: str, *rules: dict[str, Any]) -> Path:
    """A kubeconfig of somebody who may do this in the namespace and nothing else."""
    who = f"{name}-{place.namespace}"
    group = "rbac.authorization.k8s.io"
    await place.put(ROLES, who, rules=list(rules))
    await place.put(
        ROLE_BINDINGS,
        who,
        roleRef={"apiGroup": group, "kind": "Role", "name": who},
        subjects=[{"apiGroup": group, "kind": "User", "name": who}],
    )
    file: Path = place.plane.cluster.issue_client_cert(who)
    return file


def may(group: str, resource: str, *verbs: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}


def in_namespace(place: Any) -> tuple[str, str]:
    """Where to look for the Lease: other tests have operators elsewhere."""
    return "--operator-namespace", place.namespace


# --- the operator


async def test_no_operator_at_all(begin: Any) -> None:
    async with begin(operator=False) as place:
        await place.create()
        lines = await place.until("no operator has looked at it, and there is no Lease", *in_namespace(place))
        assert lines[1].strip() == "kubectl get pods -A -l app.kubernetes.io/name=kuberay-operator"


async def test_an_operator_that_was_there(begin: Any) -> None:
    async with begin(operator=False) as place:
        await lease(place, datetime(2026, 1, 1, tzinfo=UTC))
        await place.create()
        lines = await place.until("no operator is at work: Lease", *in_namespace(place))
        assert lines[0].endswith(f"of {HOLDER} was renewed last at 2026-01-01T00:00:00.000000Z")
        assert lines[1].strip() == f"kubectl get pods -n {place.namespace}"


async def test_an_operator_that_ended_after_all_was_well(begin: Any) -> None:
    async with begin() as place:
        await place.create(make.workers(1))

        async def ready() -> bool:
            return bool((await place.why(*in_namespace(place))).exit_code == 0)

        await eventually(ready)
    async with begin(operator=False) as place:
        await lease(place, datetime(2026, 1, 1, tzinfo=UTC))
        result = await place.why(*in_namespace(place))
        assert result.exit_code == 0
        first, second, *_ = result.output.splitlines()
        assert first == f"RayCluster {place.namespace}/a is ready"
        assert second.startswith("but no operator is at work: Lease")
        await place.client.delete(
            PODS, (await place.pod(labels.WORKER))["metadata"]["name"], place.namespace, reason="a test"
        )
        lines = await place.until("no operator is at work", *in_namespace(place))
        assert "- group workers has 0 of 1 workers (this may need time only)" in lines


async def test_an_operator_that_holds_the_lease_and_looks_elsewhere(begin: Any) -> None:
    async with begin(operator=False) as place:
        await lease(place, datetime.now(UTC))
        await place.create()
        lines = await place.until(f"the operator {HOLDER} has not looked at it", *in_namespace(place))
        assert lines[1].strip() == f"kubectl logs kuberay-operator-0 -n {place.namespace}"


async def test_an_operator_that_may_not_see_clusters(begin: Any) -> None:
    """Its Pod is there, so its rights can be asked for."""
    async with begin(operator=False) as place:
        await place.put(SERVICE_ACCOUNTS, "op")
        spec = {"serviceAccountName": "op", "containers": [{"name": "op", "image": "x"}]}
        await place.put(PODS, "kuberay-operator-0", spec=spec)
        await lease(place, datetime.now(UTC))
        await place.create()
        lines = await place.until("the operator may not list rayclusters.ray.io", *in_namespace(place))
        account = f"system:serviceaccount:{place.namespace}:op"
        assert lines[0].endswith(f"in namespace {place.namespace}; it runs as {account}")
        look = f"kubectl auth can-i list rayclusters.ray.io -n {place.namespace} --as={account}"
        assert lines[1].strip() == look


async def test_an_operator_that_may_not_make_pods(begin: Any) -> None:
    async with begin(operator=False) as place:
        rules = [
            rule
            for rule in cluster_role("x", ())["rules"]
            if not ("pods" in rule["resources"] and "create" in rule["verbs"])
        ]
        rules.append(may("", "pods", "get", "list", "watch"))
        file = await user(place, "operator", *rules)
    async with begin(kubeconfig=file) as place:
        await place.create()
        lines = await place.until('cannot create resource "pods"')
        assert "the head Pod cannot be made" in lines[0]
        assert f"kubectl auth can-i create pods -n {place.namespace} --as=operator-" in lines[1]


async def test_a_change_that_nobody_has_looked_at(begin: Any) -> None:
    async with begin() as place:
        await place.create()

        async def ready() -> bool:
            return bool((await place.why(*in_namespace(place))).exit_code == 0)

        await eventually(ready)
    async with begin(operator=False) as place:
        await place.edit({"spec": {"suspend": True}})
        await place.until("no operator has looked at its last change", *in_namespace(place))


# --- who asks


async def test_somebody_who_may_see_the_cluster_only(begin: Any) -> None:
    async with begin() as place:
        file = await user(place, "reader", may("ray.io", "rayclusters", "get"))
        template = make.pod_template("ray-head", nodeSelector={"no": "such-node"})
        await place.create(make.head(template=template))
        lines = await place.until("cannot be scheduled", kubeconfig=file)
        unseen = lines[lines.index("could not look at:") + 1 :]
        assert unseen == [
            f"- pods in namespace {place.namespace}: you may not list them",
            "- leases.coordination.k8s.io in all namespaces: you may not list them; "
            "name the operator's namespace with --operator-namespace",
        ]


async def test_somebody_who_may_see_pods_but_neither_events_nor_claims(begin: Any) -> None:
    async with begin() as place:
        rules = (may("ray.io", "rayclusters", "get"), may("", "pods", "list"))
        file = await user(place, "reader", *rules)
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        await place.create(make.head(template=make.pod_template("ray-head", volumes=[volume])))
        lines = await place.until('persistentvolumeclaim "data" not found', kubeconfig=file)
        unseen = "\n".join(lines[lines.index("could not look at:") + 1 :])
        assert "events.events.k8s.io in namespace" in unseen
        assert "persistentvolumeclaims in namespace" in unseen


async def test_somebody_who_may_nothing(begin: Any) -> None:
    async with begin(operator=False) as place:
        await place.create()
        file = await user(place, "stranger")
        result = await place.why(kubeconfig=file)
        assert result.exit_code == 1
        assert f"you may not get rayclusters in namespace {place.namespace}" in str(result.exception)


# --- what is printed


async def test_ready_and_json(begin: Any) -> None:
    async with begin() as place:
        result = await place.why()
        assert result.exit_code == 1
        assert str(result.exception).startswith(f"there is no RayCluster a in namespace {place.namespace}")
        await place.create(make.workers(1))

        async def ready() -> bool:
            return bool((await place.why()).exit_code == 0)

        await eventually(ready)
        assert (await place.why()).output.startswith(f"RayCluster {place.namespace}/a is ready\n")
        answer = await place.answer()
        assert (answer["kind"], answer["namespace"], answer["name"]) == ("RayCluster", place.namespace, "a")
        assert (answer["ready"], answer["obstacles"], answer["notes"]) == (True, [], [])
        await place.edit({"spec": {"suspend": True}})
        await place.until("it is suspended")
        (only,) = (await place.answer())["obstacles"]
        assert (only["reason"], only["serious"]) == ("Suspended", True)
