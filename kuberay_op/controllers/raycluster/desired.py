"""The RayCluster's part in the pipeline: what there should be, and what to say about it. Pure."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

from kuberay_op.api.predicates import externally_managed, gcs_ft_embedded
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.validation import Failure
from kuberay_op.api.volumes import AUTH_SECRET_KEY
from kuberay_op.build.auth import auth_secret, needs_secret
from kuberay_op.build.ingress import head_ingress
from kuberay_op.build.route import head_route
from kuberay_op.build.service import head_service, headless_service, serve_service
from kuberay_op.config import Config
from kuberay_op.controllers.notes import Note
from kuberay_op.controllers.pipeline import Kind, Report
from kuberay_op.controllers.raycluster.claim import claim_notes, wanted_claim
from kuberay_op.controllers.raycluster.events import notes, restart_policy_notes
from kuberay_op.controllers.raycluster.failures import failures_of
from kuberay_op.controllers.raycluster.metrics import ClusterMetrics
from kuberay_op.controllers.raycluster.pods import PodActions, settings_of
from kuberay_op.controllers.raycluster.status import Standing, head_service_of, invalid_status, status_of
from kuberay_op.controllers.raycluster.why import Obstacle
from kuberay_op.controllers.wishes import causes_of
from kuberay_op.hooks.gangs import cluster_gang
from kuberay_op.hooks.scope import Gang, Scope
from kuberay_op.hooks.typed import Hooks
from kuberay_op.kube.resource import Key
from kuberay_op.plan.actions import Desired, Manifest, Outcome, Wanted
from kuberay_op.plan.pods import plan_pods
from kuberay_op.plan.suspend import step_of

#: Random bytes in a token.
TOKEN_BYTES: Final = 32


class RayClusterKind(Kind):
    """The RayCluster's part in the pipeline.

    With ``routes`` the dashboard gets an OpenShift Route rather than an Ingress; ``new_token`` makes the
    tokens of clusters with authentication; ``rng`` gives the names of multi-host replicas, and ``begun``
    those of a cluster that were never whole.
    """

    def __init__(
        self,
        config: Config,
        *,
        rng: Random,
        metrics: ClusterMetrics | None = None,
        routes: bool = False,
        new_token: Callable[[], str] | None = None,
        begun: Callable[[Key], frozenset[str]] = lambda _: frozenset(),
    ) -> None:
        self._config = config
        self._rng = rng
        self._metrics = metrics
        self._pod_settings = settings_of(config)
        self._in_conditions = config.gates.enabled("RayClusterStatusConditions")
        self._routes = routes
        self._new_token = new_token or random_token
        self._begun = begun

    def skips(self, owner: Manifest) -> bool:
        """Somebody else manages it."""
        return externally_managed(RayCluster(dict(owner)).spec)

    def gang(self, scope: Scope) -> Gang:
        """The head and the workers that must start with it."""
        return cluster_gang(RayCluster(dict(scope.owner)))

    def wanted(self, scope: Scope, hooks: Hooks) -> Wanted:
        """What leads to the head, what it needs, and the Pods."""
        cluster = RayCluster(dict(scope.owner))
        objects = []
        for item in self._around_the_head(cluster, scope):
            built = hooks.patch_object(scope, item.obj)
            objects.append(replace(item, obj=built.obj, causes=causes_of(built.changes)))
        begun = self._begun(Key(scope.namespace, scope.name))
        plan = plan_pods(cluster, scope.children.get("Pod", ()), self._pod_settings, self._rng, begun)
        actions = PodActions(cluster, self._config, scope, hooks).of(plan)
        return Wanted(objects, tuple(actions), plan.problem)

    def _around_the_head(self, cluster: RayCluster, scope: Scope) -> Iterator[Desired]:
        """Everything but Pods. Most of it is made once: what users change in it stays."""
        if cluster.spec.head_group_spec.enable_ingress:
            why = "the spec asks for a way to the dashboard"
            if not self._routes:
                yield Desired(head_ingress(cluster), why)
            elif not scope.children.get("Route"):
                yield Desired(head_route(cluster), why, once=True)
        if needs_secret(cluster):
            why = "the cluster has no token yet"
            yield Desired(auth_secret(cluster), why, once=True, seal=self._with_token)
        if not head_service_of(scope.children.get("Service", ())):
            yield Desired(head_service(cluster, self._config), "the head needs an address", once=True)
        if hosts := headless_service(cluster):
            yield Desired(hosts, "the hosts of a replica must find each other", once=True)
        if serve := serve_service(cluster):
            yield Desired(serve, "an annotation asks for a Service to Serve", once=True)
        yield from wanted_claim(cluster, scope.children.get("PersistentVolumeClaim", ()))

    def _with_token(self, secret: Manifest) -> Manifest:
        return {**secret, "stringData": {AUTH_SECRET_KEY: self._new_token()}}

    def notes(self, scope: Scope, outcomes: Sequence[Outcome]) -> Iterator[Note]:
        """What happened to Pods and other objects; once per edit, what in the spec will not do."""
        yield from notes(scope.owner, outcomes)
        cluster = RayCluster(dict(scope.owner))
        if just_edited(cluster):
            yield from restart_policy_notes(scope.owner, scope.gate)
            if gcs_ft_embedded(cluster.spec):
                yield from claim_notes(cluster, scope.children.get("PersistentVolumeClaim", ()))

    def status(self, scope: Scope, standing: Sequence[Manifest], report: Report) -> dict[str, Any]:
        """All fields of the status."""
        hold = report.hold
        reached = Standing(
            RayCluster(dict(scope.owner)),
            pods=[child for child in standing if child.get("kind") == "Pod"],
            services=[child for child in standing if child.get("kind") == "Service"],
            failures=failures_of(report.outcomes),
            objections=[Obstacle(hold.reason, hold.message)] if hold else [],
            problem=report.problem,
        )
        return status_of(reached, scope.now, in_conditions=self._in_conditions)

    def invalid(self, scope: Scope, broken: Failure) -> dict[str, Any]:
        """That it is not ready because it breaks a rule; the rest of the status stays as it was."""
        if not self._in_conditions:
            return {}
        return invalid_status(RayCluster(dict(scope.owner)), broken.message, scope.now)

    def written(self, scope: Scope, status: Mapping[str, Any]) -> bool:
        """Whether the next step of suspending or resuming can be taken."""
        if self._metrics is not None:
            self._metrics.written(scope.owner, status, scope.now)
        before, after = RayCluster(dict(scope.owner)), RayCluster({"status": dict(status)})
        return step_of(before) is not step_of(after)


def just_edited(cluster: RayCluster) -> bool:
    """Whether this is the first pass over what the spec says now."""
    return cluster.status.observed_generation != cluster.metadata.generation


def random_token() -> str:
    """A token that nobody can guess."""
    return base64.b64encode(secrets.token_bytes(TOKEN_BYTES)).decode()
