from __future__ import annotations

import pytest

from kuberay_op.kube.resource import JOBS, NAMESPACES, PODS, Key, Resource, key_of

RAYCLUSTERS = Resource("ray.io", "v1", "rayclusters", "RayCluster")


@pytest.mark.parametrize(
    ("resource", "args", "path"),
    [
        (PODS, (), "/api/v1/pods"),
        (PODS, ("ns",), "/api/v1/namespaces/ns/pods"),
        (PODS, ("ns", "a"), "/api/v1/namespaces/ns/pods/a"),
        (PODS, ("ns", "a", "status"), "/api/v1/namespaces/ns/pods/a/status"),
        (JOBS, ("ns",), "/apis/batch/v1/namespaces/ns/jobs"),
        (RAYCLUSTERS, ("ns", "a", "status"), "/apis/ray.io/v1/namespaces/ns/rayclusters/a/status"),
        (NAMESPACES, (None, "ns"), "/api/v1/namespaces/ns"),
        (NAMESPACES, ("ignored", "ns"), "/api/v1/namespaces/ns"),
        (PODS, ("ns", "../secrets/x"), "/api/v1/namespaces/ns/pods/..%2Fsecrets%2Fx"),
    ],
)
def test_path(resource: Resource, args: tuple[str, ...], path: str) -> None:
    assert resource.path(*args) == path


def test_a_namespaced_object_needs_its_namespace() -> None:
    with pytest.raises(ValueError, match="Pod 'a' needs a namespace"):
        PODS.path(None, "a")


def test_keys_are_shown_as_kubectl_writes_them() -> None:
    assert str(Key("ns", "a")) == "ns/a"
    assert str(Key("", "a")) == "a"
    assert key_of({"metadata": {"name": "a"}}) == Key("", "a")
    assert str(RAYCLUSTERS) == "rayclusters.ray.io"
    assert RAYCLUSTERS.api_version == "ray.io/v1"
