"""A plugin whose API the cluster lacks: said at start-up and on the objects, and nothing else breaks."""

from __future__ import annotations

from typing import Any

import pytest

from kuberay_op.errors import Misconfigured
from kuberay_op.hooks import Watch, hookimpl
from kuberay_op.kube.resource import CONFIG_MAPS
from kuberay_op.testing.operator import eventually

pytestmark = pytest.mark.apiserver


def plugin(*watches: Watch) -> Any:
    class Plugin:
        @hookimpl
        def kuberay_watches(self) -> Any:
            return [Watch("v1", "ConfigMap", "configmaps"), *watches]

        @hookimpl
        def kuberay_extra_objects(self) -> Any:
            yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there"}}
            for watch in watches:
                yield {
                    "apiVersion": watch.api_version,
                    "kind": watch.kind,
                    "metadata": {"name": "not-there"},
                }

    return Plugin()


async def test_it_says_so_once_and_goes_on(start: Any, capsys: pytest.CaptureFixture[str]) -> None:
    async with start({"gangs": plugin(Watch("scheduling.example.com/v1", "Gang", "gangs"))}) as world:
        await world.create("a")
        condition = await world.objects("a", "ApiMissing")
        assert condition["message"] == (
            "plugin gangs: this cluster does not serve Gang of scheduling.example.com/v1; "
            "install it and restart the operator"
        )
        await world.has_head("a")
        assert await world.get(CONFIG_MAPS, "there") is not None
        assert await eventually(lambda: world.said("a", "ApiMissing")) == [condition["message"]]

        async def ready() -> bool:
            return bool((await world.cluster("a"))["status"].get("state") == "ready")

        await eventually(ready)
        assert (await world.agreement("a"))["reason"] == "ApiMissing", "it stays while the API is missing"


async def test_an_optional_api_is_not_missed(start: Any) -> None:
    optional = Watch("scheduling.example.com/v1", "Gang", "gangs", optional=True)
    async with start({"gangs": plugin(optional)}) as world:
        await world.create("a")
        await world.has_head("a")
        await eventually(lambda: world.get(CONFIG_MAPS, "there"))
        assert await world.agreement("a") == {}


async def test_a_kind_outside_of_namespaces_stops_the_start(start: Any) -> None:
    with pytest.raises(Misconfigured, match="plugin 'nodes' watches Node of v1, which does not live in"):
        async with start({"nodes": plugin(Watch("v1", "Node", "nodes"))}):
            pass
