"""Views read and write plain dicts, and never fail on what they find there."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuberay_op.api import RayCluster, RayCronJob, RayJob, RayService
from kuberay_op.api.fields import (
    Flag,
    Integer,
    Kube,
    KubeList,
    Nested,
    NestedList,
    NestedMap,
    Number,
    Quantity,
    Text,
    TextList,
    TextMap,
    Time,
)
from kuberay_op.api.raycluster import HeadGroupSpec, NetworkPolicyConfig, RayClusterSpec, WorkerGroupSpec
from kuberay_op.api.view import View, walk


class Inner(View):
    """Something inside."""

    text = Text("text", "A text.")


class Sample(View):
    """One field of every kind."""

    text = Text("text", "A text.")
    time = Time("time", "A time.")
    flag = Flag("flag", "A flag.")
    whole = Integer("whole", "A number.")
    number = Number("number", "A number.")
    quantity = Quantity("quantity", "A quantity.")
    texts = TextMap("texts", "Texts by name.")
    names = TextList("names", "Names.")
    inner = Nested("inner", "Inside.", Inner)
    inners = NestedList("inners", "Inside, many.", Inner)
    by_name = NestedMap("byName", "Inside, by name.", Inner)
    pod = Kube("pod", "A Pod.", "io.k8s.api.core.v1.PodTemplateSpec")
    pods = KubeList("pods", "Pods.", "io.k8s.api.core.v1.EnvVar")


def test_an_empty_view_reads_as_empty_values() -> None:
    view = Sample({})
    assert (view.text, view.time, view.flag) == ("", "", False)
    assert (view.whole, view.number, view.quantity) == (None, None, None)
    assert (view.texts, list(view.names), list(view.inners), view.by_name) == ({}, [], [], {})
    assert (view.pod, list(view.pods)) == ({}, [])
    assert not view.inner


def test_fields_read_what_is_there() -> None:
    raw = {
        "text": "a",
        "time": "2026-01-01T00:00:00Z",
        "flag": True,
        "whole": 3,
        "number": 0.5,
        "quantity": "500m",
        "texts": {"a": "b"},
        "names": ["x"],
        "inner": {"text": "in"},
        "inners": [{"text": "one"}, {"text": "two"}],
        "byName": {"k": {"text": "v"}},
        "pod": {"spec": {}},
        "pods": [{"name": "A"}],
    }
    view = Sample(raw)
    assert (view.text, view.time, view.flag) == ("a", "2026-01-01T00:00:00Z", True)
    assert (view.whole, view.number, view.quantity) == (3, 0.5, "500m")
    assert (view.texts, view.names, view.pod, view.pods) == ({"a": "b"}, ["x"], {"spec": {}}, [{"name": "A"}])
    assert view.inner.text == "in"
    assert [inner.text for inner in view.inners] == ["one", "two"]
    assert view.by_name["k"].text == "v"


def test_assignment_writes_into_the_same_dict() -> None:
    raw: dict[str, Any] = {"unknown": 1}
    view = Sample(raw)
    view.text = "a"
    view.whole = 2
    view.names = ["x", "y"]
    view.inner = Inner({"text": "b"})
    view.inners = [Inner({"text": "c"})]
    view.by_name = {"k": Inner({})}
    assert raw == {
        "unknown": 1,
        "text": "a",
        "whole": 2,
        "names": ["x", "y"],
        "inner": {"text": "b"},
        "inners": [{"text": "c"}],
        "byName": {"k": {}},
    }
    view.whole = None
    del view.text
    assert "whole" not in raw
    assert "text" not in raw


def test_a_misspelt_attribute_cannot_be_set() -> None:
    with pytest.raises(AttributeError):
        Sample({}).txt = "a"  # type: ignore[attr-defined]


def test_absent_is_falsy_and_empty_is_not() -> None:
    assert not Sample({}).inner
    assert not Sample({"inner": None}).inner
    assert Sample({"inner": {}}).inner
    assert Sample({"inner": {}}).inner != Sample({}).inner
    assert Sample({"inner": {}}).inner == Inner({})


def test_an_absent_view_refuses_to_be_written_until_it_is_made() -> None:
    view = Sample({})
    with pytest.raises(TypeError, match="ensure"):
        view.inner.text = "lost"
    view.ensure(Sample.inner).text = "kept"
    view.ensure(Sample.inner).text += "!"
    assert view.raw == {"inner": {"text": "kept!"}}


def test_is_set_tells_presence() -> None:
    view = Sample({"flag": False, "text": None})
    assert view.is_set("flag")
    assert not view.is_set("text")
    assert not view.is_set("whole")
    with pytest.raises(AttributeError, match="nothing"):
        view.is_set("nothing")


def test_the_repr_shows_names_and_no_values() -> None:
    assert repr(Sample({"text": "secret"})) == "Sample(text)"
    assert repr(Sample({}).inner) == "Inner(absent)"


def test_the_class_gives_the_field_itself() -> None:
    assert WorkerGroupSpec.group_name.json == "groupName"
    assert WorkerGroupSpec.replicas.default == 0
    assert "unique" in WorkerGroupSpec.group_name.doc


def test_inherited_fields_come_first() -> None:
    rules = NetworkPolicyConfig.worker_groups.view
    assert list(rules.fields()) == ["ingress_rules", "egress_rules", "group_name"]


def test_the_four_kinds_read_real_objects() -> None:
    cluster = RayCluster(
        {
            "metadata": {"name": "a", "labels": {"x": "y"}, "ownerReferences": [{"name": "o"}]},
            "spec": {"workerGroupSpecs": [{"groupName": "g", "replicas": 2}], "suspend": True},
            "status": {"head": {"podIP": "10.0.0.1"}, "desiredCPU": 3},
        }
    )
    assert (cluster.name, cluster.namespace, cluster.metadata.labels) == ("a", "default", {"x": "y"})
    assert cluster.metadata.owner_references[0].name == "o"
    assert cluster.spec.suspend
    assert [(group.group_name, group.replicas) for group in cluster.spec.worker_group_specs] == [("g", 2)]
    assert (cluster.status.head.pod_ip, cluster.status.desired_cpu) == ("10.0.0.1", 3)
    job = RayJob({"spec": {"rayClusterSpec": {"rayVersion": "2.52.0"}}})
    assert job.spec.ray_cluster_spec.ray_version == "2.52.0"
    service = RayService(
        {"status": {"activeServiceStatus": {"applicationStatuses": {"a": {"status": "RUNNING"}}}}}
    )
    assert service.status.active_service_status.application_statuses["a"].status == "RUNNING"
    cron = RayCronJob({"spec": {"jobTemplate": {"entrypoint": "x"}}})
    assert cron.spec.job_template.entrypoint == "x"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def read_all(view: View, depth: int = 0) -> Iterator[object]:
    """Read every field of a view and of the views below."""
    for attr in view.fields():
        value = getattr(view, attr)
        yield value
        below: list[Any] = [value]
        if isinstance(value, list | tuple):
            below = list(value)
        elif isinstance(value, dict):
            below = list(value.values())
        for entry in below:
            if isinstance(entry, View) and entry and depth < 4:
                yield from read_all(entry, depth + 1)


@given(st.dictionaries(st.sampled_from([field.json for field in Sample.fields().values()]), JSON))
def test_reading_never_fails_and_never_changes_anything(raw: dict[str, Any]) -> None:
    before = copy.deepcopy(raw)
    list(read_all(Sample(raw)))
    assert raw == before


@given(st.dictionaries(st.sampled_from(["headGroupSpec", "workerGroupSpecs", "suspend", "managedBy"]), JSON))
def test_reading_broken_clusters_never_fails(raw: dict[str, Any]) -> None:
    list(read_all(RayClusterSpec(raw)))


def test_every_field_has_a_description_and_a_type() -> None:
    for kind in (RayCluster, RayJob, RayService, RayCronJob):
        for path, field in walk(kind):
            assert field.doc.endswith((".", "?")), f"{kind.KIND}.{'.'.join(path)} needs a sentence"
            assert field.type_name, f"{kind.KIND}.{'.'.join(path)} has no type"


def test_every_view_says_what_it_is() -> None:
    for kind in (RayCluster, RayJob, RayService, RayCronJob):
        for path, field in walk(kind):
            view = field.children()
            if view is not None:
                assert (view.__doc__ or "").endswith("."), (
                    f"{'.'.join(path)}: {view.__name__} needs a sentence"
                )


def test_head_and_worker_templates_are_pod_templates() -> None:
    assert HeadGroupSpec.template.definition == WorkerGroupSpec.template.definition
    assert HeadGroupSpec.template.type_name == "PodTemplateSpec"
