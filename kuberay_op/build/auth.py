"""Token authentication of Ray: the wiring of containers, and the Secret with the token."""

from __future__ import annotations

from kuberay_op.api import env as names_of
from kuberay_op.api import labels, names
from kuberay_op.api import volumes as fixed
from kuberay_op.api.predicates import auth_enabled, k8s_auth_enabled
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.view import Json
from kuberay_op.build import env
from kuberay_op.build.draft import Draft, named
from kuberay_op.build.init_container import WAIT_FOR_GCS
from kuberay_op.build.metadata import child_metadata
from kuberay_op.build.volumes import add_volume, mount


def add_auth(draft: Draft) -> None:
    """Give the Ray container, and the one that waits for the head, the token."""
    if not auth_enabled(draft.cluster.spec):
        return
    add_token(draft.ray, draft.cluster)
    if k8s_auth_enabled(draft.cluster.spec):
        source = {"serviceAccountToken": {"path": "token"}}
        add_volume(draft, {"name": fixed.TOKEN_VOLUME, "projected": {"sources": [source]}})
    waiting = draft.init_container(WAIT_FOR_GCS)
    if waiting is not None:
        add_token(waiting, draft.cluster)


def add_token(container: Json, cluster: RayCluster) -> None:
    """Give one container the token, if the cluster asks for tokens."""
    if not auth_enabled(cluster.spec):
        return
    env.add_absent(container, env.variable(names_of.RAY_AUTH_MODE, "token"))
    if k8s_auth_enabled(cluster.spec):
        env.add_absent(container, env.variable(names_of.RAY_ENABLE_K8S_TOKEN_AUTH, "true"))
        if not named(container.get("volumeMounts"), fixed.TOKEN_VOLUME):
            mount(container, fixed.TOKEN_VOLUME, fixed.TOKEN_PATH, readOnly=True)
        return
    key = {"name": secret_name(cluster), "key": fixed.AUTH_SECRET_KEY}
    env.add_absent(container, {"name": names_of.RAY_AUTH_TOKEN, "valueFrom": {"secretKeyRef": key}})


def secret_name(cluster: RayCluster) -> str:
    """The Secret with the token: the user's, or ours."""
    return cluster.spec.auth_options.secret_name or names.auth_secret(cluster.name)


def needs_secret(cluster: RayCluster) -> bool:
    """Whether the Secret is ours to make. Options without a mode get one too, which no Pod uses."""
    options = cluster.spec.auth_options
    return (
        bool(options)
        and options.mode != "disabled"
        and not options.enable_k8s_token_auth
        and not options.secret_name
    )


def auth_secret(cluster: RayCluster) -> Json:
    """The Secret for the token; see :func:`needs_secret`. The token itself comes in when it is made."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": child_metadata(cluster, secret_name(cluster), {labels.CLUSTER: cluster.name}),
    }
