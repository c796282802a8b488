"""The token of a Ray cluster, read from its Secret, by name, at the moment it is needed."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from kuberay_op.api.predicates import auth_enabled, k8s_auth_enabled
from kuberay_op.api.raycluster import RayCluster
from kuberay_op.api.volumes import AUTH_SECRET_KEY
from kuberay_op.build.auth import secret_name
from kuberay_op.clock import Clock
from kuberay_op.errors import Retry
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.resource import SECRETS
from kuberay_op.ray.client import CachedToken

#: Seconds until a Secret that is missing or broken is looked for again.
AGAIN: Final = 30.0


def token_of(client: Client, cluster: RayCluster, clock: Clock) -> CachedToken | None:
    """The token for the dashboard of a cluster; None when it asks for none, or none that we have."""
    if not auth_enabled(cluster.spec) or k8s_auth_enabled(cluster.spec):
        return None
    secret = secret_name(cluster)
    return CachedToken(lambda: _value(client, cluster.namespace, secret, AUTH_SECRET_KEY), clock=clock)


async def _value(client: Client, namespace: str, name: str, key: str) -> str:
    """One value of a Secret; raises Retry, which names the Secret and never what is in it."""
    try:
        secret = await client.get(SECRETS, name, namespace)
    except NotFound:
        raise Retry(f"Secret {namespace}/{name} does not exist", after=AGAIN) from None
    text = (secret.get("data") or {}).get(key)
    if text is None:
        raise Retry(f"Secret {namespace}/{name} has no key {key}", after=AGAIN)
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise Retry(f"key {key} of Secret {namespace}/{name} is not text", after=AGAIN) from None
