"""NetworkPolicies on a real API server: made, kept, changed and removed as the spec says (§10)."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.features import Gates
from kuberay_op.kube.resource import NETWORK_POLICIES
from kuberay_op.testing import make
from kuberay_op.testing.operator import eventually
from tests.apiserver.raycluster.conftest import Begin, Story

pytestmark = pytest.mark.apiserver

Json = dict[str, Any]
ON = Gates.default().with_overrides("RayClusterNetworkPolicy=true")
DNS: Json = {"egressRules": [{"ports": [{"port": 53, "protocol": "UDP"}]}]}


async def policies(story: Story) -> dict[str, Json]:
    found = (await story.client.list(NETWORK_POLICIES, story.namespace)).items
    return {each["metadata"]["name"]: each for each in found}


async def test_the_life_of_policies(begin: Begin) -> None:
    async with begin(gates=ON) as story:
        await story.start()
        wish = {"head": DNS, "worker": DNS}
        owner = await story.create("c", make.workers(0, "a"), make.workers(0, "b"),
                                   make.cluster(networkPolicy=wish))  # fmt: skip

        async def three() -> bool:
            return set(await policies(story)) == {"c-head", "c-workers-a", "c-workers-b"}

        await eventually(three)
        head = (await policies(story))["c-head"]
        assert head["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
        assert head["spec"] == {
            "podSelector": {"matchLabels": {"ray.io/cluster": "c", "ray.io/node-type": "head"}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [{"podSelector": {"matchLabels": {"ray.io/cluster": "c"}}}]}],
            "egress": [
                {"to": [{"podSelector": {"matchLabels": {"ray.io/cluster": "c"}}}]},
                {"ports": [{"port": 53, "protocol": "UDP"}]},
            ],
        }

        # Tampered with: an opened door is closed again.
        await story.client.patch(
            NETWORK_POLICIES, "c-head", story.namespace, {"spec": {"ingress": [{}]}}, reason="a test"
        )

        async def closed() -> bool:
            return bool((await policies(story))["c-head"]["spec"]["ingress"] == head["spec"]["ingress"])

        await eventually(closed)

        # A mode that opens a direction.
        await story.edit(
            "c", {"spec": {"networkPolicy": {"mode": "DenyAllIngress", "head": None, "worker": None}}}
        )

        async def opened() -> bool:
            specs = [each["spec"] for each in (await policies(story)).values()]
            return all(each["policyTypes"] == ["Ingress"] and "egress" not in each for each in specs)

        await eventually(opened)

        # A group less, then none at all.
        groups = (await story.cluster("c"))["spec"]["workerGroupSpecs"][:1]
        await story.edit("c", {"spec": {"workerGroupSpecs": groups}})

        async def two() -> bool:
            return set(await policies(story)) == {"c-head", "c-workers-a"}

        await eventually(two)
        await story.edit("c", {"spec": {"networkPolicy": None}})

        async def none() -> bool:
            return not await policies(story)

        await eventually(none)

        async def told() -> bool:
            reasons = ("Created", "Updated", "Deleted")
            return all([await story.said(f"{reason}NetworkPolicy") for reason in reasons])

        await eventually(told)
        assert await story.said("NetworkPolicyWithoutDNS") == []


async def test_others_policies_and_invalid_specs(begin: Begin) -> None:
    async with begin(gates=ON) as story:
        foreign: Json = {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "c-head", "namespace": story.namespace},
            "spec": {"podSelector": {}},
        }
        await story.client.create(NETWORK_POLICIES, foreign, reason="a test")
        await story.start()
        await story.create("c", make.workers(0, "a"), make.cluster(networkPolicy={}))

        async def collided() -> list[str]:
            return await story.said("NetworkPolicyNameCollision")

        assert "exists and is not ours" in (await eventually(collided))[0]

        async def workers() -> bool:  # the other policy is made all the same
            return set(await policies(story)) == {"c-head", "c-workers-a"}

        await eventually(workers)
        assert (await policies(story))["c-head"]["spec"]["podSelector"] == {}

        async def warned() -> list[str]:
            return await story.said("NetworkPolicyWithoutDNS")

        assert "cannot resolve names" in (await eventually(warned))[0]

        # §16.6 47: a spec that breaks a rule changes nothing.
        await story.create("bad", make.workers(0, "Not_A_Label"), make.cluster(networkPolicy={}))

        async def refused() -> list[str]:
            return await story.said("InvalidRayClusterSpec")

        await eventually(refused)
        assert set(await policies(story)) == {"c-head", "c-workers-a"}
        await story.delete(RAY_CLUSTERS, "c")

        async def collected() -> bool:
            return set(await policies(story)) == {"c-head"}

        await eventually(collected)
