"""Rules 15 and 17 of a cluster spec: authentication and TLS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kuberay_op.api import env, volumes
from kuberay_op.api.podtemplate import ray_container
from kuberay_op.api.predicates import auth_enabled, k8s_auth_enabled, tls_enabled
from kuberay_op.api.problems import Path
from kuberay_op.api.validation.primitives import version_problem
from kuberay_op.api.validation.rules import Check, Finding, Findings, rule
from kuberay_op.api.validation.subjects import (
    HEAD_CONTAINER_AT,
    RAY_CONTAINER_AT,
    ClusterSubject,
    env_at,
    mount_at,
)
from kuberay_op.api.versions import Version

#: First Ray version with tokens.
AUTH_SINCE: Final[Version] = (2, 52)
#: First Ray version that lets Kubernetes check them.
K8S_AUTH_SINCE: Final[Version] = (2, 55)

# --- 15: authentication


@rule("raycluster.spec.15.1", "Token authentication needs Ray 2.52.0 or later, named in rayVersion.")
def auth_version(cluster: ClusterSubject) -> Findings:
    """Earlier versions would ignore the token and stay open."""
    if auth_enabled(cluster.spec):
        text = version_problem(cluster.spec.ray_version, AUTH_SINCE)
        if text:
            yield Finding("authOptions.mode", f"token needs Ray 2.52.0 or later; {text}", "token")


@rule("raycluster.spec.15.2", "Authentication by Kubernetes needs Ray 2.55.0 or later.")
def k8s_auth_version(cluster: ClusterSubject) -> Findings:
    """Earlier versions would not ask Kubernetes."""
    if auth_enabled(cluster.spec) and k8s_auth_enabled(cluster.spec):
        text = version_problem(cluster.spec.ray_version, K8S_AUTH_SINCE)
        # What rule 15.1 has said already is not said twice.
        if text and not version_problem(cluster.spec.ray_version, AUTH_SINCE):
            yield Finding("authOptions.enableK8sTokenAuth", f"needs Ray 2.55.0 or later; {text}", True)


@rule("raycluster.spec.15.3", "Authentication by Kubernetes needs no secretName.")
def k8s_auth_secret(cluster: ClusterSubject) -> Findings:
    """The tokens are those of Kubernetes."""
    options = cluster.spec.auth_options
    if auth_enabled(cluster.spec) and k8s_auth_enabled(cluster.spec) and options.secret_name:
        text = "cannot stand beside enableK8sTokenAuth, which uses the tokens of Kubernetes; remove one"
        yield Finding("authOptions.secretName", text, options.secret_name)


@rule("raycluster.spec.15.4", "Authentication by Kubernetes needs mode token.")
def k8s_auth_mode(cluster: ClusterSubject) -> Findings:
    """Without it nobody would be asked for a token."""
    if not auth_enabled(cluster.spec) and k8s_auth_enabled(cluster.spec):
        yield Finding("authOptions.enableK8sTokenAuth", "needs authOptions.mode to be token", True)


# --- 17: TLS


@rule("raycluster.spec.17.1", "tlsOptions needs the feature gate RayClusterMTLS.")
def tls_gate(cluster: ClusterSubject) -> Findings:
    """Even ``enabled: false`` does: an operator without the feature must not accept the field."""
    if cluster.spec.tls_options and not cluster.gates("RayClusterMTLS"):
        yield Finding("tlsOptions", "needs the feature gate RayClusterMTLS, which is off")


def _ray_containers(cluster: ClusterSubject) -> Iterator[tuple[Mapping[str, Any], Path]]:
    """Every container that mTLS configures, with its path."""
    yield cluster.head_container, HEAD_CONTAINER_AT
    for index, group in enumerate(cluster.groups):
        yield ray_container(group.template), ("workerGroupSpecs", index, "template", *RAY_CONTAINER_AT)
    yield cluster.spec.autoscaler_options.raw, ("autoscalerOptions",)


@rule("raycluster.spec.17.2", "With TLS on, the operator alone sets Ray's TLS variables.")
def tls_env(cluster: ClusterSubject) -> Findings:
    """A value of the user's would break the encryption or switch it off."""
    if tls_enabled(cluster.spec, cluster.gates):
        for container, at in _ray_containers(cluster):
            for name in env.TLS_RESERVED:
                if path := env_at(container, name, at):
                    yield Finding(path, f"{name} is set by the operator while tlsOptions.enabled; remove it")


@rule("raycluster.spec.17.3", "With TLS on, the volume ray-tls and the path /etc/ray/tls are the operator's.")
def tls_mounts(cluster: ClusterSubject) -> Findings:
    """Two volumes cannot be in one place."""
    if tls_enabled(cluster.spec, cluster.gates):
        for container, at in _ray_containers(cluster):
            path = mount_at(container, volume=volumes.TLS_VOLUME, path=volumes.TLS_PATH, at=at)
            if path:
                text = f"the volume {volumes.TLS_VOLUME} and the path {volumes.TLS_PATH} are the operator's"
                yield Finding(path, f"{text} while tlsOptions.enabled; choose others")


AUTH_RULES: Final[tuple[Check[ClusterSubject], ...]] = (
    auth_version,
    k8s_auth_version,
    k8s_auth_secret,
    k8s_auth_mode,
)
TLS_RULES: Final[tuple[Check[ClusterSubject], ...]] = (tls_gate, tls_env, tls_mounts)
