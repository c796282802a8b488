"""What there should be: the head Pod, and the objects around it. Pure."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from kuberay_op.api import labels, replicas
from kuberay_op.api.predicates import autoscaling_enabled, externally_managed
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.resources import pod_resources
from kuberay_op.api.volumes import AUTH_SECRET_KEY
from kuberay_op.build.auth import auth_secret, needs_secret
from kuberay_op.build.gcs_ft import storage_claim
from kuberay_op.build.ingress import head_ingress
from kuberay_op.build.pod import head_pod
from kuberay_op.build.route import head_route
from kuberay_op.build.service import head_service, headless_service, serve_service
from kuberay_op.config import Config
from kuberay_op.controllers.pipeline import causes_of
from kuberay_op.controllers.raycluster.status import live_heads, status_of
from kuberay_op.hooks.scope import Gang, GangMember, Group, Scope
from kuberay_op.hooks.typed import Hooks
from kuberay_op.plan.actions import Desired, Manifest

#: Random bytes in a token.
TOKEN_BYTES: Final = 32


class RayClusterKind:
    """The RayCluster's part in the pipeline.

    With ``routes`` the dashboard gets an OpenShift Route rather than an Ingress; ``new_token`` makes the
    tokens of clusters with authentication.
    """

    def __init__(
        self, config: Config, *, routes: bool = False, new_token: Callable[[], str] | None = None
    ) -> None:
        self._config = config
        self._routes = routes
        self._new_token = new_token or random_token

    def skips(self, owner: Manifest) -> bool:
        """Somebody else manages it."""
        return externally_managed(RayCluster(dict(owner)).spec)

    def gang(self, owner: Manifest) -> Gang:
        """The head and the workers that must start with it: the minimum when groups scale by themselves."""
        spec = RayCluster(dict(owner)).spec
        autoscaling = autoscaling_enabled(spec)
        members = [
            GangMember(head_group(spec.head_group_spec.raw), 1, _requests(spec.head_group_spec.template))
        ]
        for group in spec.worker_group_specs:
            count = replicas.group_desired_pods(group)
            if autoscaling and count:
                count = replicas.min_replicas(group) * replicas.hosts(group)
            if count:
                members.append(
                    GangMember(Group(group.group_name, "worker", group.raw), count, _requests(group.template))
                )
        return Gang(str(owner["metadata"]["name"]), tuple(members))

    def desired(self, scope: Scope, hooks: Hooks) -> list[Desired]:
        """What leads to the head, what it needs, and a head Pod if there is none."""
        cluster = RayCluster(dict(scope.owner))
        wanted = []
        for item in self._around_the_head(cluster, scope):
            built = hooks.patch_object(scope, item.obj)
            wanted.append(replace(item, obj=built.obj, causes=causes_of(built.changes)))
        if not live_heads(scope.children.get("Pod", ())):
            group = head_group(cluster.spec.head_group_spec.raw)
            built = hooks.patch_pod(scope, group, head_pod(cluster, self._config))
            why = "the cluster has no head"
            wanted.append(Desired(built.obj, why, causes_of(built.changes), once=True))
        return wanted

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
        if not any(_is_head_service(service) for service in scope.children.get("Service", ())):
            yield Desired(head_service(cluster, self._config), "the head needs an address", once=True)
        if hosts := headless_service(cluster):
            yield Desired(hosts, "the hosts of a replica must find each other", once=True)
        if serve := serve_service(cluster):
            yield Desired(serve, "an annotation asks for a Service to Serve", once=True)
        if claim := storage_claim(cluster):
            yield Desired(claim, "the control store needs a volume", once=True)

    def _with_token(self, secret: Manifest) -> Manifest:
        return {**secret, "stringData": {AUTH_SECRET_KEY: self._new_token()}}

    def status(self, scope: Scope, standing: Any) -> dict[str, Any]:
        """The head and the state."""
        pods = [child for child in standing if child.get("kind") == "Pod"]
        return status_of(RayCluster(dict(scope.owner)), live_heads(pods), scope.now)


def head_group(spec: Manifest) -> Group:
    """The group that plugins see for the head."""
    return Group(labels.HEAD_GROUP, "head", spec)


def random_token() -> str:
    """A token that nobody can guess."""
    return base64.b64encode(secrets.token_bytes(TOKEN_BYTES)).decode()


def _is_head_service(service: Manifest) -> bool:
    """By its labels: the user may have named another since it was made."""
    own = service["metadata"].get("labels") or {}
    return own.get(labels.NODE_TYPE) == labels.HEAD and labels.CLUSTER in own


def _requests(template: Manifest) -> dict[str, str]:
    return {name: str(amount) for name, amount in pod_resources(dict(template)).items()}
