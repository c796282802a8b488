"""Contract 02 §10 and §16.6: what becomes of NetworkPolicies, and what is said about it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from kuberay_op.api import labels
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.build.networkpolicy import network_policies
from kuberay_op.config import Config
from kuberay_op.controllers.networkpolicy import notes, plan_policies
from kuberay_op.controllers.plugins import Kinds
from kuberay_op.controllers.raycluster.reconciler import selectors
from kuberay_op.errors import OperatorError
from kuberay_op.features import Gates
from kuberay_op.frozen import freeze
from kuberay_op.kube.apply import NotOurs
from kuberay_op.kube.resource import NETWORK_POLICIES
from kuberay_op.plan.actions import Create, Delete, Outcome, Update
from kuberay_op.testing import make

Json = dict[str, Any]
GATES = Gates.default().with_overrides("RayClusterNetworkPolicy=true").enabled
DNS: Json = {"egressRules": [{"ports": [{"port": 53, "protocol": "UDP"}]}]}


def cluster(*parts: make.Part) -> RayCluster:
    return RayCluster(make.raycluster("c", make.namespace("ns"), make.stored(), make.workers(1, "a"), *parts))


def policy(**config: Any) -> make.Part:
    return make.cluster(networkPolicy=config)


def stored(found: RayCluster) -> list[Json]:
    """The policies of a cluster as the server keeps them."""
    made = []
    for number, obj in enumerate(network_policies(found)):
        obj["metadata"] |= {"uid": f"p-{number}", "resourceVersion": "1", "generation": 1}
        made.append(obj)
    return made


def test_what_is_missing_is_made() -> None:
    plan = plan_policies(cluster(policy()), [])
    assert [(type(step), step.obj["metadata"]["name"]) for step in plan] == [
        (Create, "c-head"),
        (Create, "c-workers-a"),
    ]


def test_nothing_to_do_is_no_action() -> None:
    # §16.6 47: the reference posts 1 + groups policies in each pass.
    found = cluster(policy(head=DNS, worker={"ingressRules": [{"from": []}, {"ports": [{"port": 80}]}]}))
    observed = stored(found)
    assert observed[1]["spec"]["ingress"][1] == {"from": []}
    observed[1]["spec"]["ingress"][1] = {}  # as the server keeps it
    assert plan_policies(found, [freeze(each) for each in observed]) == []


def test_null_deletes_the_leftovers() -> None:
    plan = plan_policies(cluster(), stored(cluster(policy())))
    assert [(type(step), step.obj["metadata"]["name"]) for step in plan] == [
        (Delete, "c-head"),
        (Delete, "c-workers-a"),
    ]


def test_a_group_that_is_gone_loses_its_policy() -> None:
    both = cluster(policy(), make.workers(1, "b"))
    plan = plan_policies(cluster(policy()), stored(both))
    assert [(type(step), step.obj["metadata"]["name"]) for step in plan] == [(Delete, "c-workers-b")]


def test_what_is_going_is_left_alone() -> None:
    observed = stored(cluster(policy()))
    for each in observed:
        each["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert plan_policies(cluster(), observed) == []


def tampered(change: Callable[[Json], Any]) -> list[Json]:
    observed = stored(cluster(policy(worker={"ingressRules": [{"ports": [{"port": 80}]}]})))
    change(observed[1])
    return observed


@pytest.mark.parametrize(
    ("change", "patch"),
    [
        (lambda p: p["spec"].update(policyTypes=["Ingress"]), {"policyTypes": ["Ingress", "Egress"]}),
        (lambda p: p["spec"]["podSelector"]["matchLabels"].update(x="y"),
         {"podSelector": {"matchLabels": {"x": None}}}),
        (lambda p: p["spec"]["podSelector"].update(matchExpressions=[{"key": "x", "operator": "Exists"}]),
         {"podSelector": {"matchExpressions": None}}),
    ],
)  # fmt: skip
def test_the_whole_spec_is_ours(change: Callable[[Json], Any], patch: Json) -> None:
    wanted = cluster(policy(worker={"ingressRules": [{"ports": [{"port": 80}]}]}))
    [step] = plan_policies(wanted, tampered(change))
    assert isinstance(step, Update)
    assert step.patch == {"spec": patch}


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p["spec"]["ingress"].append({}),
        lambda p: p["spec"]["ingress"][1].update({"from": [{"podSelector": {}}]}),
        lambda p: p["spec"]["ingress"][1]["ports"][0].update(endPort=90),
        lambda p: p["spec"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"].update(x="y"),
        lambda p: p["spec"]["ingress"].pop(),
    ],
)
def test_rules_are_ours_to_the_last_field(change: Callable[[Json], Any]) -> None:
    wanted = cluster(policy(worker={"ingressRules": [{"ports": [{"port": 80}]}]}))
    [step] = plan_policies(wanted, tampered(change))
    assert isinstance(step, Update)
    assert step.patch == {"spec": {"ingress": network_policies(wanted)[1]["spec"]["ingress"]}}


def test_a_direction_that_is_opened_loses_its_rules() -> None:
    plan = plan_policies(cluster(policy(mode="DenyAllIngress")), stored(cluster(policy())))
    assert [step.patch for step in plan if isinstance(step, Update)] == [
        {"spec": {"policyTypes": ["Ingress"], "egress": None}}
    ] * 2


def test_labels_of_ours_come_back_and_others_stay() -> None:
    observed = stored(cluster(policy()))
    observed[0]["metadata"]["labels"]["ray.io/group"] = "other"
    observed[0]["metadata"]["labels"]["team"] = "a"
    [step] = plan_policies(cluster(policy()), observed)
    assert isinstance(step, Update)
    assert step.patch == {"metadata": {"labels": {"ray.io/group": "headgroup"}}}


def test_a_later_submission_mode_is_seen() -> None:
    # §16.6 47: the label comes after the policies.
    job = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "j"}}
    before = cluster(policy(), make.owned_by(job))
    after = cluster(policy(), make.owned_by(job), make.labels({"ray.io/job-submission-mode": "K8sJobMode"}))
    [step] = plan_policies(after, stored(before))
    assert step.obj["metadata"]["name"] == "c-head"
    assert len(step.obj["spec"]["ingress"]) == 2


# --- events


def outcome(action: type[Any], **more: Any) -> Outcome:
    obj = copy.deepcopy(stored(cluster(policy()))[0])
    made = action(obj, obj, {}, "why") if action is Update else action(obj, "why")
    return Outcome(made, **more)


@pytest.mark.parametrize(
    ("happened", "kind", "reason", "action", "text"),
    [
        (outcome(Create), "Normal", "CreatedNetworkPolicy", "Create", "Created NetworkPolicy ns/c-head"),
        (outcome(Update), "Normal", "UpdatedNetworkPolicy", "Update", "Updated NetworkPolicy ns/c-head"),
        (outcome(Delete), "Normal", "DeletedNetworkPolicy", "Delete", "Deleted NetworkPolicy ns/c-head"),
        (outcome(Create, error=OperatorError("no")), "Warning", "FailedToCreateNetworkPolicy", "Create",
         "Failed to create NetworkPolicy ns/c-head: no"),
        (outcome(Update, error=OperatorError("no")), "Warning", "FailedToUpdateNetworkPolicy", "Update",
         "Failed to update NetworkPolicy ns/c-head: no"),
        (outcome(Delete, error=OperatorError("no")), "Warning", "FailedToDeleteNetworkPolicy", "Delete",
         "Failed to delete NetworkPolicy ns/c-head: no"),
        (outcome(Create, error=NotOurs("taken")), "Warning", "NetworkPolicyNameCollision", "Validate",
         "taken"),
    ],
)  # fmt: skip
def test_events(happened: Outcome, kind: str, reason: str, action: str, text: str) -> None:
    said = list(notes(cluster(policy(head=DNS, worker=DNS)), [happened], GATES))
    assert [(note.type, note.reason, note.action, note.text) for note in said] == [
        (kind, reason, action, text)
    ]


def test_nothing_is_said_of_what_was_so_already() -> None:
    assert list(notes(cluster(policy()), [outcome(Create, changed=False)], GATES)) == []


def test_closing_the_way_to_dns_is_said() -> None:
    # §16.6 48
    said = list(notes(cluster(policy(worker=DNS)), [outcome(Create)], GATES))
    assert [(note.type, note.reason) for note in said[1:]] == [("Warning", "NetworkPolicyWithoutDNS")]
    assert said[1].text.startswith("spec.networkPolicy.head.egressRules: no egress rule allows port 53")


@pytest.mark.parametrize(("gate", "selector"), [("true", None), ("false", labels.PLUGIN)])
def test_a_cache_that_plugins_share_has_no_selector(gate: str, selector: str | None) -> None:
    # No single selector finds both a plugin's policies and ours.
    gates = Gates.default().with_overrides(f"RayClusterNetworkPolicy={gate}")
    chosen = selectors(Config(gates=gates), Kinds(served=(NETWORK_POLICIES,)), routes=False)
    assert chosen[NETWORK_POLICIES] == selector
