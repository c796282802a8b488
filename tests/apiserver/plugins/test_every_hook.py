"""One plugin with every hook there is: each is called, with the arguments that its specification names."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter

from kuberay_op.controllers.resources import RAY_CLUSTERS
from kuberay_op.hooks import Done, Gang, Group, Merge, Problem, Scope, Wait, Watch, hookimpl, specs
from kuberay_op.kube.resource import CONFIG_MAPS
from kuberay_op.plan.actions import Create
from kuberay_op.testing.operator import eventually

pytestmark = pytest.mark.apiserver

#: Called when roles are printed, not by a running operator.
OFFLINE = {"kuberay_rbac_rules"}


class Everything:
    """Implements every hook and keeps the arguments of its last call."""

    def __init__(self) -> None:
        self.calls: dict[str, dict[str, Any]] = {}

    def note(self, **arguments: Any) -> None:
        frame = inspect.currentframe()
        assert frame is not None
        assert frame.f_back is not None
        self.calls[frame.f_back.f_code.co_name] = arguments

    @hookimpl
    def kuberay_watches(self, options: Any) -> Any:
        self.note(options=options)
        return [Watch("v1", "ConfigMap", "configmaps")]

    @hookimpl
    def kuberay_register_metrics(self, registry: CollectorRegistry, options: Any) -> None:
        self.note(registry=registry, options=options)
        Counter("everything_total", "A metric of the plugin's own.", registry=registry).inc()

    @hookimpl
    async def kuberay_started(self, options: Any) -> None:
        self.note(options=options)

    @hookimpl
    async def kuberay_stopping(self, options: Any) -> None:
        self.note(options=options)

    @hookimpl
    def kuberay_patch_pod(self, scope: Scope, group: Group, pod: Any, options: Any) -> Merge:
        self.note(scope=scope, group=group, pod=pod, options=options)
        return Merge({"metadata": {"labels": {"role": group.role, "team": options["team"]}}})

    @hookimpl
    def kuberay_patch_object(self, scope: Scope, obj: Any, options: Any) -> Merge:
        self.note(scope=scope, obj=obj, options=options)
        return Merge({"metadata": {"annotations": {"team": options["team"]}}})

    @hookimpl
    def kuberay_extra_objects(self, scope: Scope, options: Any) -> Any:
        self.note(scope=scope, options=options)
        return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{scope.name}-extra"}}]

    @hookimpl
    async def kuberay_before_reconcile(self, scope: Scope, options: Any) -> Done:
        self.note(scope=scope, options=options)
        return Done()

    @hookimpl
    async def kuberay_before_act(self, scope: Scope, plan: Any, options: Any) -> Any:
        self.note(scope=scope, plan=plan, options=options)
        if scope.name == "late" and "again" not in scope.owner["metadata"].get("labels", {}):
            return Wait("not before it is labelled", 300)
        return None

    @hookimpl
    async def kuberay_after_act(self, scope: Scope, plan: Any, outcomes: Any, options: Any) -> None:
        self.note(scope=scope, plan=plan, outcomes=outcomes, options=options)

    @hookimpl
    async def kuberay_on_reconcile_error(self, scope: Scope, error: Exception, options: Any) -> None:
        self.note(scope=scope, error=error, options=options)

    @hookimpl
    async def kuberay_after_reconcile(self, scope: Scope, outcome: str, seconds: float, options: Any) -> None:
        self.note(scope=scope, outcome=outcome, seconds=seconds, options=options)

    @hookimpl
    def kuberay_gang_objects(self, scope: Scope, gang: Gang, options: Any) -> Any:
        self.note(scope=scope, gang=gang, options=options)
        return []

    @hookimpl
    async def kuberay_admit_gang(self, scope: Scope, gang: Gang, options: Any) -> None:
        self.note(scope=scope, gang=gang, options=options)

    @hookimpl
    def kuberay_schedule_child(self, scope: Scope, child: Any, group: Group, options: Any) -> None:
        self.note(scope=scope, child=child, group=group, options=options)

    @hookimpl
    async def kuberay_release_gang(self, scope: Scope, gang: Gang, options: Any) -> Done:
        self.note(scope=scope, gang=gang, options=options)
        return Done()

    @hookimpl
    def kuberay_finalizers(self, scope: Scope, options: Any) -> Any:
        self.note(scope=scope, options=options)
        return ["ray.io/everything"]

    @hookimpl
    async def kuberay_finalize(self, scope: Scope, finalizer: str, options: Any) -> Done:
        self.note(scope=scope, finalizer=finalizer, options=options)
        return Done()

    @hookimpl
    def kuberay_default(self, obj: Any, options: Any) -> Merge:
        self.note(obj=obj, options=options)
        return Merge({"spec": {"headGroupSpec": {"rayStartParams": {"num-cpus": "0"}}}})

    @hookimpl
    def kuberay_validate(self, obj: Any, options: Any) -> Any:
        self.note(obj=obj, options=options)
        if obj["metadata"]["name"] == "broken":
            raise ValueError("cannot look at it")
        if obj["metadata"]["name"] == "forbidden":
            yield Problem(("metadata", "name"), "is not allowed here")
        yield Problem(("spec",), "has room for improvement", severity="warning")


async def test_each_is_called(start: Any) -> None:
    everything = Everything()
    options = {"everything": {"team": "ml"}}
    async with start({"everything": everything}, options=options, scheduler="everything") as world:
        await world.create("a")
        await world.has_head("a")
        (head,) = await world.heads("a")
        assert head["metadata"]["labels"].items() >= {"role": "head", "team": "ml"}.items()
        extra = await eventually(lambda: world.get(CONFIG_MAPS, "a-extra"))
        assert extra["metadata"]["annotations"]["team"] == "ml"
        assert "plugin everything: spec: has room for improvement" in await eventually(
            lambda: world.said("a", "PluginWarns")
        )
        planned = everything.calls["kuberay_after_act"]["plan"]
        assert any(isinstance(action, Create) for action in planned)
        with pytest.raises(TypeError):
            planned[0].obj["metadata"]["name"] = "other"
        assert "num-cpus" in str((await world.heads("a"))[0]["spec"])
        assert "num-cpus" not in str((await world.cluster("a"))["spec"]), "defaults are not stored"

        await world.create("broken")
        await world.objects("broken", "PluginFailed")
        assert "cannot look at it" in str(everything.calls["kuberay_on_reconcile_error"]["error"])

        await world.create("forbidden")
        refusal = await world.objects("forbidden", "PluginRefuses")
        assert refusal["message"] == "plugin everything: metadata.name: is not allowed here"

        await world.create("late")
        waiting = await world.objects("late", "PluginWaits")
        assert waiting["message"] == "plugin everything: not before it is labelled"
        assert await world.heads("late") == []
        again = {"metadata": {"labels": {"again": "yes"}}}
        await world.operator.client.patch(RAY_CLUSTERS, "late", world.namespace, again, reason="an edit")
        await world.has_head("late")

        await world.operator.client.delete(RAY_CLUSTERS, "a", world.namespace, reason="a test")
        await world.gone(RAY_CLUSTERS, "a")
        assert world.operator.metrics.registry.get_sample_value("everything_total") == 1.0

    assert set(everything.calls) == set(specs.FAMILIES) - OFFLINE
    for hook, arguments in everything.calls.items():
        assert list(arguments) == list(inspect.signature(getattr(specs, hook)).parameters), hook
