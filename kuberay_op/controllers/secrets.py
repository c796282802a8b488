"""Reading a token from its Secret, by name, at the moment it is needed."""

from __future__ import annotations

import base64
import binascii

from kuberay_op.errors import Retry
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import NotFound
from kuberay_op.kube.resource import SECRETS

#: Seconds until a Secret that is missing or broken is looked for again.
AGAIN = 30.0


async def secret_value(client: Client, namespace: str, name: str, key: str) -> str:
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
