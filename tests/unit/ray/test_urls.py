from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuberay_op.ray import urls
from kuberay_op.ray.errors import BadRequest


def test_direct_addresses_get_a_scheme() -> None:
    address = urls.service_address("a-head-svc", "ns", 8265, domain="cluster.local")

    assert address == "a-head-svc.ns.svc.cluster.local:8265"
    assert urls.direct(address).url(urls.JOBS) == "http://a-head-svc.ns.svc.cluster.local:8265/api/jobs/"
    assert urls.direct("https://ray.example/").url(urls.VERSION) == "https://ray.example/api/version"


def test_the_api_server_proxies_services_and_pods() -> None:
    service = urls.proxied_service("ns", "a-head-svc")
    pod = urls.proxied_pod("ns", "a-head", 8000)

    assert service.proxied
    assert pod.proxied
    assert service.url("/x") == "/api/v1/namespaces/ns/services/a-head-svc:dashboard/proxy/x"
    assert pod.url("/x") == "/api/v1/namespaces/ns/pods/a-head:8000/proxy/x"
    assert "through the API server" in str(service)


def test_pods_are_reached_by_either_family_of_addresses() -> None:
    four, six = urls.direct_pod("10.0.0.7", 8000), urls.direct_pod("fd00::7", 8000)

    assert four is not None
    assert four.url(urls.PROXY_HEALTH) == "http://10.0.0.7:8000/-/healthz"
    assert six is not None
    assert six.url(urls.PROXY_HEALTH) == "http://[fd00::7]:8000/-/healthz"


def test_a_pod_without_address_is_not_the_operator_itself() -> None:
    assert urls.direct_pod("", 8000) is None


@pytest.mark.parametrize("job_id", ["", ".", ".."])
def test_ids_that_would_address_something_else_are_refused(job_id: str) -> None:
    with pytest.raises(BadRequest, match="choose another id"):
        urls.job(job_id)


@given(st.text(min_size=1).filter(lambda text: text not in {".", ".."}))
def test_any_other_id_is_one_segment(job_id: str) -> None:
    try:
        path = urls.job(job_id, "stop")
    except UnicodeEncodeError:  # half of a surrogate pair: no JSON has that
        return

    assert path.isascii()
    assert "?" not in path
    head, segment, action = path.rsplit("/", 2)
    assert (head, unquote(segment), action) == ("/api/jobs", job_id, "stop")
