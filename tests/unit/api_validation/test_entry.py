"""The public questions: order, the first part that fails, the words for events and status, the webhook."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.api import validation
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.validation import admission_problems, failure, validate, warnings
from kuberay_op.api.validation.whole import examine

Json = dict[str, Any]


def obj(kind: str, name: str = "a", **spec: Any) -> Json:
    return {"apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def template() -> Json:
    return {"template": {"spec": {"containers": [{"name": "ray"}]}}}


def group(name: str, **more: Any) -> Json:
    return {"groupName": name, "minReplicas": 0, "maxReplicas": 1, **template(), **more}


def test_all_mistakes_come_at_once_in_the_order_of_the_contract() -> None:
    cluster = obj(
        "RayCluster",
        "1a",
        headGroupSpec={},
        workerGroupSpecs=[group("x", minReplicas=-1), group("y", maxReplicas=-1, minReplicas=-2)],
        autoscalerOptions={"idleTimeoutSeconds": -1},
        tlsOptions={},
        upgradeStrategy={"type": "Never"},
    )
    assert [problem.rule for problem in validate(cluster)] == [
        "raycluster.metadata.2",
        "raycluster.spec.1",
        "raycluster.spec.4.3",
        "raycluster.spec.4.3",
        "raycluster.spec.4.4",
        "raycluster.spec.12",
        "raycluster.spec.17.1",
        "raycluster.upgrade.1",
    ]


@pytest.mark.parametrize(
    ("given", "part", "reason"),
    [
        (obj("RayCluster", "1"), "metadata", "InvalidRayClusterMetadata"),
        (obj("RayCluster"), "spec", "InvalidRayClusterSpec"),
        (
            obj("RayCluster", headGroupSpec=template(), upgradeStrategy={"type": "x"}),
            "spec",
            "InvalidRayClusterSpec",
        ),
        (
            {
                **obj("RayCluster", headGroupSpec=template()),
                "status": {
                    "conditions": [
                        {"type": "RayClusterSuspending", "status": "True"},
                        {"type": "RayClusterSuspended", "status": "True"},
                    ]
                },
            },
            "status",
            "InvalidRayClusterStatus",
        ),
        (obj("RayJob", "1"), "metadata", "InvalidRayJobMetadata"),
        (obj("RayJob"), "spec", "InvalidRayJobSpec"),
        (
            {
                **obj("RayJob", clusterSelector={"ray.io/cluster": "b"}),
                "status": {"jobDeploymentStatus": "Waiting"},
            },
            "status",
            "InvalidRayJobStatus",
        ),
        (obj("RayService", "1"), "metadata", "InvalidRayServiceMetadata"),
        (obj("RayService"), "spec", "InvalidRayServiceSpec"),
        (obj("RayCronJob", "a" * 37), "spec", "InvalidRayCronJobSpec"),
    ],
)
def test_the_first_part_that_fails_decides(given: Json, part: str, reason: str) -> None:
    found = failure(given)
    assert found is not None
    assert (found.part, found.reason) == (part, reason)
    assert found.problems[0] == validate(given)[0]


def test_nothing_fails_in_a_good_object() -> None:
    assert failure(obj("RayCluster", headGroupSpec=template())) is None
    assert failure(RayCluster(obj("RayCluster", headGroupSpec=template()))) is None


def test_messages_of_a_failure() -> None:
    job = failure(obj("RayJob", clusterSelector={"ray.io/cluster": "b"}, backoffLimit=-1))
    assert job is not None
    text = "spec.backoffLimit: is -1; must be 0 or more"
    assert job.message == f"The RayJob spec is invalid: {text}"
    assert job.note("ns", "a") == f"ns/a: The RayJob spec is invalid: {text}"

    cluster = failure(
        obj("RayCluster", headGroupSpec=template(), autoscalerOptions={"idleTimeoutSeconds": -1})
    )
    assert cluster is not None
    text = "spec.autoscalerOptions.idleTimeoutSeconds: is -1; must be 0 or more"
    assert cluster.message == f"The RayCluster spec is invalid: {text}"
    assert cluster.note("ns", "a") == f"The RayCluster spec is invalid ns/a: {text}"

    cron = failure(obj("RayCronJob", schedule="@daily", jobTemplate={"clusterSelector": {"a": "b"}}))
    assert cron is not None
    assert cron.message.startswith(
        "The RayCronJob spec is invalid: invalid RayJob template: spec.jobTemplate."
    )


def test_a_message_stays_short() -> None:
    groups = [group(f"g{index}", labels={"ü" * 500: "-"}) for index in range(50)]
    found = failure(obj("RayCluster", headGroupSpec=template(), workerGroupSpecs=groups))
    assert found is not None
    assert len(found.problems) == 100
    assert len(found.note("n" * 63, "c" * 253).encode()) < 1024
    assert found.message.endswith("(and 95 more)")


def test_gates_are_asked() -> None:
    cluster = obj("RayCluster", headGroupSpec=template(), networkPolicy={}, tlsOptions={"enabled": True})
    assert [p.rule for p in validate(cluster)] == ["raycluster.spec.16.1", "raycluster.spec.17.1"]
    assert validate(cluster, lambda _: True) == []
    missing = validate(cluster, lambda _: True, cert_manager=False)
    assert [p.rule for p in missing] == ["raycluster.tls.1"]
    assert validate(cluster, lambda _: True, cert_manager=True) == []


def test_the_webhook_refuses_names_and_doubled_groups_only() -> None:
    cluster = obj("RayCluster", "1", workerGroupSpecs=[group("x"), group("x"), group("x")])
    found = admission_problems(cluster)
    assert [(p.rule, p.path_text) for p in found] == [
        ("raycluster.metadata.2", "metadata.name"),
        ("webhook.1", "spec.workerGroupSpecs[1]"),
    ]
    assert admission_problems(obj("RayJob")) == []
    assert [p.rule for p in admission_problems(obj("RayJob", "1"))] == ["rayjob.metadata.2"]
    assert admission_problems(obj("RayCronJob", "1")) == []
    service = obj("RayService")
    service["metadata"]["annotations"] = {"ray.io/initializing-timeout": "soon"}
    assert [p.rule for p in admission_problems(service)] == ["rayservice.metadata.3"]


def test_other_kinds_have_no_rules() -> None:
    for question in (validate, failure, warnings, admission_problems):
        with pytest.raises(ValueError, match="no rules for the kind 'Pod'"):
            question({"kind": "Pod"})
    with pytest.raises(ValueError, match="no rules for the kind None"):
        validate({})


def test_where_the_structure_is_wrong_the_rules_are_silent() -> None:
    cluster = obj("RayCluster", headGroupSpec={"template": {"spec": {"containers": "ray"}}})
    found = examine(cluster)
    assert [p.path_text for p in found] == ["spec.headGroupSpec.template.spec.containers"]
    assert found[0].rule == ""
    kinds: list[Any] = ["RayClutser", None, 5, {}, ["RayCluster"]]
    for kind in kinds:
        assert [p.path_text for p in examine({"kind": kind, "apiVersion": "ray.io/v1"})] == ["kind"]
    assert [p.path_text for p in examine({"kind": "RayCluster", "apiVersion": "ray.io/v7"})] == ["apiVersion"]


@pytest.mark.parametrize("kind", validation.KINDS)
@pytest.mark.parametrize("junk", [None, 1, "x", [], [1], {"a": 1}, True, [None], {"": {}}])
def test_nothing_fails_on_objects_of_the_wrong_shape(kind: str, junk: Any) -> None:
    for spec in (junk, dict.fromkeys(_fields(kind), junk)):
        given = {"kind": kind, "metadata": junk, "spec": spec, "status": junk}
        assert isinstance(validate(given), list)
        assert isinstance(warnings(given), list)
        assert isinstance(admission_problems(given), list)


def _fields(kind: str) -> list[str]:
    spec: Any = validation.KINDS[kind].fields()["spec"].children()
    return [field.json for field in spec.fields().values()]


def test_lists_do_not_pass_for_times_in_metadata() -> None:
    for junk in ([], [1], [{"a": 1}]):
        cluster = obj("RayCluster", headGroupSpec=template())
        cluster["metadata"]["creationTimestamp"] = junk
        assert [p.path_text for p in examine(cluster)] == ["metadata.creationTimestamp"]
