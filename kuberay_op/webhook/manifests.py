"""The objects through which the API server finds the webhook; ``kuberay-op webhook manifests``. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kuberay_op.api.meta import GROUP
from kuberay_op.webhook.admission import PATHS
from kuberay_op.webhook.injection import VALIDATING

Json = dict[str, Any]

#: What the reference calls its entries.
NAMES: Final[Mapping[str, str]] = {path: f"v{view.KIND.lower()}.kb.io" for path, view in PATHS.items()}

#: Port of the Service.
PORT: Final = 443

#: An object on its way out is not shown to us: whether it goes must not depend on the webhook being up.
#: Taking off a finalizer is an update, and so would be asked about.
STAYS: Final = {"name": "not-being-deleted", "expression": "!has(object.metadata.deletionTimestamp)"}


def by_service(name: str, namespace: str) -> Callable[[str], Json]:
    """Reach the webhook through a Service."""
    return lambda path: {"service": {"name": name, "namespace": namespace, "path": path, "port": PORT}}


def by_url(address: str) -> Callable[[str], Json]:
    """Reach the webhook at ``https://host:port``, without a Service."""
    return lambda path: {"url": f"{address}{path}"}


def configuration(
    name: str, way: Callable[[str], Json], annotations: Mapping[str, str] | None = None
) -> Json:
    """The ValidatingWebhookConfiguration; the operator adds the ``caBundle``."""
    return {
        "apiVersion": VALIDATING.api_version,
        "kind": VALIDATING.kind,
        "metadata": {"name": name, **({"annotations": dict(annotations)} if annotations else {})},
        "webhooks": [
            {
                "name": NAMES[path],
                "admissionReviewVersions": ["v1"],
                "clientConfig": way(path),
                "failurePolicy": "Fail",
                "matchConditions": [STAYS],
                "rules": [
                    {
                        "apiGroups": [GROUP],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": [view.PLURAL],
                    }
                ],
                "sideEffects": "None",
                "timeoutSeconds": 10,
            }
            for path, view in PATHS.items()
        ],
    }


def service(name: str, namespace: str, selector: Mapping[str, str], port: int) -> Json:
    """The Service in front of the operator's Pods."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": dict(selector),
            "ports": [{"name": "webhook", "port": PORT, "targetPort": port, "protocol": "TCP"}],
        },
    }
