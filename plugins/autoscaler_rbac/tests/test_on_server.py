"""The plugin on a real API server, with nodes played by kwok."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kuberay_op.kube.resource import PODS, Resource
from kuberay_op.testing import make
from kuberay_op.testing.controlplane import ControlPlane
from kuberay_op.testing.operator import eventually
from kuberay_op.testing.world import World, world_on

pytestmark = pytest.mark.apiserver

MANIFEST: Final = Path(__file__).parent.parent / "src" / "kuberay_op_autoscaler_rbac" / "plugin.yaml"
ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount")
ROLES: Final = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
BINDINGS: Final = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
ALL: Final = (ACCOUNTS, ROLES, BINDINGS)


class Accounts:
    """What the plugin makes, and the world it makes it in."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def all_there(self, name: str) -> bool:
        return all([await self.world.get(resource, name) for resource in ALL])

    async def none_there(self, name: str) -> bool:
        return not any([await self.world.get(resource, name) for resource in ALL])


Start = Callable[..., AbstractAsyncContextManager[World]]


@pytest.fixture
def start(kwok_cluster: ControlPlane, kwok_namespace: str) -> Start:
    """Starts an operator with the plugin, or without; it sees the test's own namespace only."""

    def run(*, plugin: dict[str, Any] | None = None, on: bool = True) -> AbstractAsyncContextManager[World]:
        manifest = plugin or yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
        return world_on(kwok_cluster, kwok_namespace, {"autoscaler-rbac": manifest} if on else {})

    return run


def asking(question: Callable[..., Awaitable[Any]], *arguments: Any) -> Callable[[], Awaitable[Any]]:
    return lambda: question(*arguments)


async def test_the_autoscaler_may_do_its_work_and_nothing_else(
    start: Start, kwok_cluster: ControlPlane
) -> None:
    async with start() as world:
        await world.create("c", make.autoscaling())
        [head] = await eventually(asking(world.heads, "c"))
        assert head["spec"]["serviceAccountName"] == "c"
        assert [container["name"] for container in head["spec"]["containers"]] == ["ray-head", "autoscaler"]
        notes = await eventually(asking(world.said, "c", "CreatedServiceAccount"))
        assert notes == [f"Created service account {world.namespace}/c"]

        def may(verb: str, resource: str) -> bool:
            plural, _, below = resource.partition("/")
            asked = {
                "namespace": world.namespace,
                "verb": verb,
                "group": "ray.io" if plural == "rayclusters" else "",
                "resource": plural,
                "subresource": below,
            }
            spec = {"user": f"system:serviceaccount:{world.namespace}:c", "resourceAttributes": asked}
            review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
            path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
            return bool(kwok_cluster.api("POST", path, review)["status"]["allowed"])

        async def granted() -> bool:  # the authorizer has caches, too
            return may("patch", "rayclusters")

        await eventually(granted)
        allowed = {("pods", verb) for verb in ("get", "list", "watch", "patch")}
        allowed |= {("pods/resize", "patch"), ("rayclusters", "get"), ("rayclusters", "patch")}
        for resource in ("pods", "pods/resize", "rayclusters", "secrets"):
            for verb in ("get", "list", "watch", "patch", "create", "delete"):
                assert may(verb, resource) is ((resource, verb) in allowed), (verb, resource)


async def test_a_users_own_account_is_bound_and_left_alone(start: Start) -> None:
    async with start() as world:
        own = {"metadata": {"name": "mine", "namespace": world.namespace}}
        before = await world.operator.client.create(ACCOUNTS, own, reason="a test")
        await world.create("c", make.autoscaling(), _account("mine"))
        [head] = await eventually(asking(world.heads, "c"))
        assert head["spec"]["serviceAccountName"] == "mine"
        binding = await world.get(BINDINGS, "c")
        assert binding is not None
        assert [subject["name"] for subject in binding["subjects"]] == ["mine"]
        assert await world.get(ACCOUNTS, "c") is None
        assert await world.get(ACCOUNTS, "mine") == before


async def test_a_users_own_account_that_is_missing_is_named(start: Start) -> None:
    async with start() as world:
        await world.create("c", make.autoscaling(), _account("missing"))

        async def told() -> str:
            found = await world.cluster("c")
            conditions = found.get("status", {}).get("conditions", ())
            ready = [each for each in conditions if each["type"] == "Ready"]
            missing = [each for each in ready if each["reason"] == "ServiceAccountMissing"]
            return str(missing[0]["message"]) if missing else ""

        assert 'serviceaccount "missing" not found' in await eventually(told)
        notes = await eventually(asking(world.said, "c", "AutoscalerServiceAccountNotFound"))
        text = "The autoscaler's service account missing does not exist; create it, or leave it out"
        assert notes == [text]
        assert await world.get(ACCOUNTS, "missing") is None
        await world.operator.client.create(
            ACCOUNTS, {"metadata": {"name": "missing", "namespace": world.namespace}}, reason="a test"
        )
        assert await eventually(asking(world.heads, "c"))


async def test_all_go_when_autoscaling_is_off_but_not_under_a_running_autoscaler(start: Start) -> None:
    async with start() as world:
        await world.create("c", make.autoscaling())
        [head] = await eventually(asking(world.heads, "c"))
        await world.edit("c", {"spec": {"enableInTreeAutoscaling": False}})

        async def seen() -> bool:
            found = await world.cluster("c")
            return bool(found["status"].get("observedGeneration") == found["metadata"]["generation"])

        await eventually(seen)
        assert await Accounts(world).all_there("c"), "the head still runs an autoscaler"
        await world.delete(PODS, head["metadata"]["name"])
        await eventually(asking(Accounts(world).none_there, "c"))
        [head] = await eventually(asking(world.heads, "c"))
        assert head["spec"]["serviceAccountName"] == "default"


async def test_rules_are_kept_up_to_date_and_others_additions_stay(start: Start) -> None:
    older = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
    role = next(step for step in older["objects"] if step["template"]["kind"] == "Role")
    wanted = list(role["template"]["rules"])
    role["template"]["rules"] = wanted[:1]
    async with start(plugin=older) as world:
        await world.create("c", make.autoscaling())
        await eventually(asking(Accounts(world).all_there, "c"))
        team = {"metadata": {"labels": {"team": "ml"}, "annotations": {"iam": "role-1"}}}
        await world.operator.client.patch(ACCOUNTS, "c", world.namespace, team, reason="a test")
    async with start() as world:

        async def rules() -> bool:
            found = await world.get(ROLES, "c")
            return found is not None and found["rules"] == wanted

        await eventually(rules)
        body: dict[str, Any] = {"rules": []}
        await world.operator.client.patch(ROLES, "c", world.namespace, body, reason="somebody breaks it")
        await eventually(rules)
        account = await world.get(ACCOUNTS, "c")
        assert account is not None
        assert account["metadata"]["labels"]["team"] == "ml"
        assert account["metadata"]["annotations"]["iam"] == "role-1"


async def test_a_long_name(start: Start) -> None:
    name = "a" * 53
    async with start() as world:
        await world.create(name, make.autoscaling())
        [head] = await eventually(asking(world.heads, name))
        assert head["spec"]["serviceAccountName"] == "a" * 50
        assert await Accounts(world).all_there("a" * 50)


async def test_objects_of_the_reference_are_taken_over(start: Start) -> None:
    """KubeRay's carry no label of ours; they are found by name, kept, and pruned later like our own."""
    async with start(on=False) as world:
        made = await world.create("c", make.autoscaling())
        owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "c", "uid": made["metadata"]["uid"]}
        metadata = {
            "name": "c",
            "namespace": world.namespace,
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        }
        role = {"kind": "Role", "name": "c", "apiGroup": "rbac.authorization.k8s.io"}
        bodies: dict[Resource, dict[str, Any]] = {
            ACCOUNTS: {},
            ROLES: {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
            BINDINGS: {"roleRef": role},
        }
        before = {}
        for resource, body in bodies.items():
            found = await world.operator.client.create(
                resource, {"metadata": metadata, **body}, reason="a test"
            )
            before[resource] = found["metadata"]["uid"]
    async with start() as world:

        async def taken_over() -> bool:
            found = [await world.get(resource, "c") for resource in ALL]
            return all(each and "kuberay-op/plugin" in each["metadata"].get("labels", {}) for each in found)

        await eventually(taken_over)
        for resource in ALL:
            kept = await world.get(resource, "c")
            assert kept is not None
            assert kept["metadata"]["uid"] == before[resource]
        granted = await world.get(ROLES, "c")
        assert granted is not None
        assert len(granted["rules"]) == 3


def _account(name: str) -> make.Part:
    def part(obj: dict[str, Any]) -> None:
        obj["spec"]["headGroupSpec"]["template"]["spec"]["serviceAccountName"] = name

    return part
