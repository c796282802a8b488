"""The operator runs under the rendered roles and no more: each call is granted, and each grant has a use.

Every call is in the API server's audit log. What the run below does not need must stand, with the reason, in
``docs/reference/rights.md``.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kuberay_op.testing import make
from tests.charts.conftest import NAMESPACE, Release
from tests.charts.helm import Json

pytestmark = pytest.mark.apiserver

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "rights.md"
ROW = re.compile(r"^\| (?P<verbs>[a-z*, ]+) \| `(?P<resource>[^`]+)` \| (?P<reason>.+) \|$", re.MULTILINE)

#: Longest wait for something that is about to happen; only a failing test waits this long.
PATIENCE = 90.0

VALUES: Json = {
    "useKubernetesProxy": True,
    "featureGates": [
        {"name": "RayClusterNetworkPolicy", "enabled": True},
        {"name": "RayCronJob", "enabled": True},
    ],
}


def documented() -> dict[tuple[str, str], str]:
    """Reasons by verb and resource."""
    return {
        (verb, row["resource"]): row["reason"]
        for row in ROW.finditer(PAGE.read_text("utf-8"))
        for verb in row["verbs"].split(", ")
    }


def eventually(what: str, question: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not question():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: did not happen within {PATIENCE:.0f} s")
        time.sleep(0.2)


def granted(release: Release) -> set[tuple[str, str]]:
    """What the operator's account may do: verb and resource, from the roles on the server."""
    found = set()
    base = "/apis/rbac.authorization.k8s.io/v1"
    roles = [
        release.plane.api("GET", f"{base}/clusterroles/kuberay-operator"),
        release.plane.api("GET", f"{base}/namespaces/{NAMESPACE}/roles/kuberay-operator-leader-election"),
    ]
    for role in roles:
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    found |= {(verb, named(group, resource)) for verb in rule["verbs"]}
    return found


def named(group: str, resource: str) -> str:
    """A resource as people write it: with its group, unless that is the core's."""
    return f"{resource}.{group}" if group else resource


def forbidden(release: Release) -> list[str]:
    """Calls that were refused for want of rights. A proxy may answer 403 for other reasons."""
    lines = release.audit.path.read_text("utf-8").splitlines()
    events = [json.loads(line) for line in lines if line.endswith("}")]
    return [
        f"{event['verb']} {event['requestURI']}"
        for event in events
        if event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
    ]


def live(release: Release) -> None:
    """A cluster with all that the operator looks after, changed and deleted, and a job."""
    plane = release.plane
    ray, core = "/apis/ray.io/v1/namespaces/default", "/api/v1/namespaces/default"

    def status(kind: str, name: str) -> Json:
        found: Json = plane.api("GET", f"{ray}/{kind}/{name}").get("status") or {}
        return found

    def gone(kind: str, name: str) -> bool:
        return name not in [each["metadata"]["name"] for each in plane.api("GET", f"{ray}/{kind}")["items"]]

    def workers() -> list[str]:
        chosen = "labelSelector=ray.io/cluster%3Da,ray.io/node-type%3Dworker"
        return [pod["metadata"]["name"] for pod in plane.api("GET", f"{core}/pods?{chosen}")["items"]]

    cluster = make.raycluster(
        "a",
        make.namespace("default"),
        make.workers(2),
        make.head(enableIngress=True),
        make.redis(),
        make.cluster(enableInTreeAutoscaling=True, networkPolicy={"mode": "DenyAll"}),
    )
    plane.api("POST", f"{ray}/rayclusters", cluster)
    eventually("the cluster is ready", lambda: status("rayclusters", "a").get("state") == "ready")
    # As the autoscaler would do it.
    group = "/spec/workerGroupSpecs/0"
    one_less = [
        {"op": "replace", "path": f"{group}/replicas", "value": 1},
        {"op": "add", "path": f"{group}/scaleStrategy", "value": {"workersToDelete": workers()[:1]}},
    ]
    plane.kubectl("patch", "raycluster", "a", "--type=json", "-p", json.dumps(one_less))
    eventually("a worker goes", lambda: len(workers()) == 1)
    plane.api("DELETE", f"{ray}/rayclusters/a")
    eventually("the cluster is gone", lambda: gone("rayclusters", "a"))

    plane.api("POST", f"{ray}/rayjobs", make.rayjob("j", make.namespace("default")))
    eventually("the job has a cluster", lambda: status("rayjobs", "j").get("rayClusterName"))
    name = status("rayjobs", "j")["rayClusterName"]
    eventually("the job's cluster is ready", lambda: status("rayclusters", name).get("state") == "ready")
    plane.api("DELETE", f"{ray}/rayjobs/j")
    eventually("the job is gone", lambda: gone("rayjobs", "j"))


def test_each_call_is_granted_and_each_grant_has_a_use(release: Release) -> None:
    release.install(**VALUES)
    release.available()
    live(release)
    calls = release.audit.calls()
    assert forbidden(release) == [], "the chart grants too little"
    used = {(call.verb, named(call.group, call.resource)) for call in calls}
    reasons = documented()
    idle = {
        (verb, resource)
        for verb, resource in granted(release) - used
        if not {(verb, resource), ("*", resource), (verb, "*")} & reasons.keys()
    }
    assert idle == set(), "granted, but neither used here nor explained in docs/reference/rights.md"
