"""Serve and the health of its proxy, against the fake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kuberay_op.ray import errors
from kuberay_op.ray.answers import Call
from kuberay_op.ray.client import Connector, RayClient
from kuberay_op.ray.serve import Deployment, ProxyHealth, Serve, ServeDetails, proxy_health, serve_details
from kuberay_op.ray.urls import direct_pod
from kuberay_op.testing.clock import FakeClock
from kuberay_op.testing.fake_ray import AppScript, FakeRay, Fault

MakeClient = Callable[..., RayClient]
APP = {"name": "app", "import_path": "main:app", "route_prefix": "/x", "deployments": [{"name": "D"}]}


@pytest.fixture
def serve(client: MakeClient) -> Serve:
    return Serve(client())


async def test_nothing_runs_before_the_first_deployment(serve: Serve) -> None:
    assert await serve.details() == ServeDetails()


async def test_an_application_goes_its_way(serve: Serve, ray: FakeRay, clock: FakeClock) -> None:
    ray.cluster("ns/a").serve.script = AppScript(deploying=3)
    await serve.deploy({"applications": [APP], "target_capacity": 40})

    details = await serve.details()
    assert details.applications["app"].status == "DEPLOYING"
    assert not details.ready

    await clock.advance(3)
    details = await serve.details()
    app = details.applications["app"]
    assert details.ready
    assert details.target_capacity == 40
    assert (app.route_prefix, app.deployments) == ("/x", {"D": Deployment("HEALTHY")})
    assert app.config == APP


async def test_what_is_not_in_the_configuration_goes(serve: Serve, ray: FakeRay, clock: FakeClock) -> None:
    ray.cluster("ns/a").serve.script = AppScript(deleting=2)
    other = {"name": "other", "import_path": "main:other"}
    await serve.deploy({"applications": [APP, other]})
    await serve.deploy({"applications": [other]})

    assert (await serve.details()).applications["app"].status == "DELETING"
    await clock.advance(2)
    assert set((await serve.details()).applications) == {"other"}


async def test_the_same_again_changes_nothing(serve: Serve, ray: FakeRay, clock: FakeClock) -> None:
    ray.cluster("ns/a").serve.script = AppScript(deploying=3)
    await serve.deploy({"applications": [APP]})
    await clock.advance(3)
    before = await serve.details()

    await serve.deploy({"applications": [APP]})

    assert await serve.details() == before


async def test_one_bad_application_makes_the_whole_not_ready(serve: Serve, ray: FakeRay) -> None:
    await serve.deploy({"applications": [APP]})
    ray.cluster("ns/a").serve.force("app", "UNHEALTHY", "replica died")

    details = await serve.details()

    assert not details.ready
    assert details.applications["app"].message == "replica died"


async def test_a_refused_configuration_says_why_and_shows_no_values(serve: Serve) -> None:
    app = {"name": "app", "runtime_env": {"env_vars": {"TOKEN": "hunter22"}}}

    with pytest.raises(errors.BadRequest, match=r"applications.0.import_path Field required") as caught:
        await serve.deploy({"applications": [app]})

    assert "hunter22" not in str(caught.value)


async def test_ray_without_serve_is_told(serve: Serve, ray: FakeRay) -> None:
    ray.cluster("ns/a").serve.installed = False

    with pytest.raises(errors.Unsupported, match="501: Serve dependencies are not installed"):
        await serve.details()


CALL = Call("serve_details", "read", "GET", "/")


def test_an_application_without_a_name_is_the_default() -> None:
    details = serve_details(CALL, {"applications": {"": {"status": "RUNNING"}}})

    assert list(details.applications) == ["default"]
    assert details.ready


def test_no_applications_are_not_ready() -> None:
    assert not serve_details(CALL, {"applications": None}).ready


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"applications": []},
        {"applications": {"a": None}},
        {"applications": {"a": {"status": 1}}},
        {"applications": {"a": {"deployments": {"d": "HEALTHY"}}}},
        {"target_capacity": "much"},
    ],
)
def test_applications_of_other_types_are_garbled(value: Any) -> None:
    with pytest.raises(errors.Garbled):
        serve_details(CALL, value)


@pytest.fixture
def proxy(connector: Connector, ray: FakeRay) -> RayClient:
    ray.cluster("ns/a", hosts=("10.0.0.7",))
    endpoint = direct_pod("10.0.0.7", 8000)
    assert endpoint is not None
    return connector.client("ns/a", endpoint)


async def test_only_200_is_healthy(proxy: RayClient, ray: FakeRay) -> None:
    assert await proxy_health(proxy) == ProxyHealth(healthy=True)

    ray.cluster("ns/a").serve.proxy = 503
    assert await proxy_health(proxy) == ProxyHealth(healthy=False, reason="status 503")


@pytest.mark.parametrize("fault", ["gone", "hang", "truncated", "status:500"])
async def test_any_trouble_is_unhealthy(proxy: RayClient, ray: FakeRay, fault: str) -> None:
    ray.cluster("ns/a").fault = Fault.parse(fault)

    health = await proxy_health(proxy)

    assert not health.healthy
    assert health.reason


async def test_health_checks_leave_the_breaker_alone(proxy: RayClient, ray: FakeRay, serve: Serve) -> None:
    ray.cluster("ns/a").fault = Fault.parse("gone", only="/-/")

    for _ in range(20):
        assert not (await proxy_health(proxy)).healthy

    assert await serve.details() == ServeDetails()


async def test_health_checks_carry_no_token(connector: Connector, ray: FakeRay) -> None:
    async def token(*, fresh: bool) -> str:
        raise AssertionError("the token must not be read")

    ray.cluster("ns/a", hosts=("10.0.0.7",))
    endpoint = direct_pod("10.0.0.7", 8000)
    assert endpoint is not None

    assert (await proxy_health(connector.client("ns/a", endpoint, token=token))).healthy
    assert "x-ray-authorization" not in ray.cluster("ns/a").requests[-1].headers


async def test_a_pod_without_address_is_not_asked() -> None:
    assert await proxy_health(None) == ProxyHealth(healthy=False, reason="the Pod has no address yet")
