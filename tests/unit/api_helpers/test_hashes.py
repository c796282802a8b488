"""The spec hash changes when Pods must, and not otherwise."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from kuberay_op.api.hashes import raycluster_spec_hash, rayservice_spec_hash

Json = dict[str, Any]


def spec() -> Json:
    def template(name: str) -> Json:
        resources = {"limits": {"cpu": "1", "memory": "1Gi"}}
        pod = {
            "containers": [{"name": name, "image": "ray:2", "resources": resources}],
            "tolerations": [{"key": "a"}],
            "schedulingGates": [{"name": "b"}],
        }
        return {"metadata": {"labels": {"a": "b"}}, "spec": pod}

    return {
        "rayVersion": "2.52.0",
        "headGroupSpec": {"rayStartParams": {}, "template": template("head")},
        "workerGroupSpecs": [
            {
                "groupName": name,
                "replicas": 1,
                "minReplicas": 0,
                "maxReplicas": 3,
                "numOfHosts": 1,
                "rayStartParams": {},
                "scaleStrategy": {"workersToDelete": ["x"]},
                "template": template("worker"),
            }
            for name in ("a", "b")
        ],
    }


def put(obj: Any, path: str, value: Any) -> Any:
    """The object with a value at a path; null removes."""
    result = copy.deepcopy(obj)
    *steps, last = (int(step) if step.isdigit() else step for step in path.split("."))
    target = result
    for step in steps:
        target = target.setdefault(step, {}) if isinstance(target, dict) else target[step]
    if value is None:
        target.pop(last)
    else:
        target[last] = value
    return result


HEAD = "headGroupSpec.template.spec"
WORKER = "workerGroupSpecs.0.template.spec"

FREE = [
    ("upgradeStrategy", {"type": "Recreate"}),
    (f"{HEAD}.tolerations", None),
    (f"{HEAD}.schedulingGates", [{"name": "other"}]),
    (f"{WORKER}.tolerations", [{"key": "other"}]),
    (f"{WORKER}.schedulingGates", None),
    ("workerGroupSpecs.0.replicas", 7),
    ("workerGroupSpecs.0.minReplicas", 7),
    ("workerGroupSpecs.1.maxReplicas", None),
    ("workerGroupSpecs.1.scaleStrategy.workersToDelete", ["y", "z"]),
    ("workerGroupSpecs.1.scaleStrategy", None),
    ("workerGroupSpecs.1.scaleStrategy", {}),
]
#: What a Go program that reads an object and writes it back may do to it.
REWRITTEN = [
    (f"{HEAD}.containers.0.resources.limits.cpu", 1),
    (f"{HEAD}.containers.0.resources.limits.cpu", "1000m"),
    (f"{HEAD}.containers.0.resources.limits.memory", "1024Mi"),
    (f"{HEAD}.containers.0.resources.requests", {}),
    (f"{HEAD}.containers.0.env", []),
    (f"{HEAD}.hostNetwork", False),
    (f"{HEAD}.nodeSelector", {}),
    ("headGroupSpec.template.metadata.annotations", {}),
    ("headGroupSpec.rayStartParams", None),
]
BINDING = [
    ("rayVersion", "2.53.0"),
    ("managedBy", "ray.io/kuberay-operator"),
    ("gcsFaultToleranceOptions", {}),
    ("headGroupSpec.rayStartParams.num-cpus", "0"),
    (f"{HEAD}.containers.0.image", "ray:3"),
    (f"{HEAD}.containers.0.resources.limits.memory", "1025Mi"),
    (f"{HEAD}.containers.0.securityContext", {"allowPrivilegeEscalation": False}),
    (f"{HEAD}.volumes", [{"name": "a", "emptyDir": {}}]),
    (f"{HEAD}.hostNetwork", True),
    ("workerGroupSpecs.0.numOfHosts", 2),
    ("workerGroupSpecs.0.idleTimeoutSeconds", 5),
    ("workerGroupSpecs.0.priority", 1),
    ("workerGroupSpecs.0.suspend", True),
    ("workerGroupSpecs.0.groupName", "c"),
    ("workerGroupSpecs.0.labels", {"a": "b"}),
]


@pytest.mark.parametrize("question", [raycluster_spec_hash, rayservice_spec_hash])
def test_form(question: Any) -> None:
    assert re.fullmatch("[0-9A-V]{32}", question(spec()))
    assert question(spec()) == question(spec())
    shuffled = dict(reversed(spec().items()))
    assert question(shuffled) == question(spec())
    assert re.fullmatch("[0-9A-V]{32}", question({}))


@pytest.mark.parametrize(("path", "value"), FREE)
def test_what_may_change_freely(path: str, value: Any) -> None:
    changed = put(spec(), path, value)
    assert changed != spec()
    assert raycluster_spec_hash(changed) == raycluster_spec_hash(spec())
    assert rayservice_spec_hash(changed) == rayservice_spec_hash(spec())


@pytest.mark.parametrize(("path", "value"), REWRITTEN)
def test_other_ways_to_write_the_same(path: str, value: Any) -> None:
    changed = put(spec(), path, value)
    assert changed != spec()
    assert raycluster_spec_hash(changed) == raycluster_spec_hash(spec())


def test_null_is_absent() -> None:
    changed = spec()
    changed["headGroupSpec"]["template"]["metadata"]["creationTimestamp"] = None
    changed["autoscalerOptions"] = None
    assert raycluster_spec_hash(changed) == raycluster_spec_hash(spec())


@pytest.mark.parametrize(("path", "value"), BINDING)
def test_what_counts(path: str, value: Any) -> None:
    changed = put(spec(), path, value)
    assert raycluster_spec_hash(changed) != raycluster_spec_hash(spec())
    assert rayservice_spec_hash(changed) != rayservice_spec_hash(spec())


def test_suspend_counts_for_a_cluster_and_not_for_a_service() -> None:
    changed = put(spec(), "suspend", False)
    assert raycluster_spec_hash(changed) != raycluster_spec_hash(spec())
    assert rayservice_spec_hash(changed) == rayservice_spec_hash(spec())


def test_order_of_groups_counts() -> None:
    changed = spec()
    changed["workerGroupSpecs"].reverse()
    assert raycluster_spec_hash(changed) != raycluster_spec_hash(spec())


def test_appended_groups_are_seen_by_looking_at_the_first_ones() -> None:
    longer = spec()
    longer["workerGroupSpecs"].append({**longer["workerGroupSpecs"][0], "groupName": "c"})
    assert rayservice_spec_hash(longer) != rayservice_spec_hash(spec())
    assert rayservice_spec_hash(longer, worker_groups=2) == rayservice_spec_hash(spec())
    changed = put(longer, "workerGroupSpecs.0.groupName", "d")
    assert rayservice_spec_hash(changed, worker_groups=2) != rayservice_spec_hash(spec())


def test_the_spec_is_not_changed_and_no_shape_breaks_it() -> None:
    given = spec()
    raycluster_spec_hash(given)
    rayservice_spec_hash(given, worker_groups=1)
    assert given == spec()
    shapes: list[Json] = [
        {"workerGroupSpecs": [None, 1]},
        {"headGroupSpec": 1},
        {"workerGroupSpecs": [{"template": []}]},
    ]
    for shape in shapes:
        assert raycluster_spec_hash(shape)
    odd = put(spec(), f"{HEAD}.containers.0.resources.limits", {"cpu": "lots", "x": True})
    assert raycluster_spec_hash(odd) != raycluster_spec_hash(spec())
