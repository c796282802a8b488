"""What a real node adds to the API: DNS, and on small machines a policy that lowers what Pods ask for."""

from __future__ import annotations

import string
from importlib import resources
from typing import Any, Final

import yaml

from kuberay_op_local import components
from kuberay_op_local.real import world
from kuberay_op_local.spec import Spec

#: Below this many cores Ray's usual requests (a whole core and more per Pod) do not fit.
ENOUGH_CORES: Final = 8
SMALL_CPU: Final = "50m"
SMALL_MEMORY: Final = "128Mi"
#: A limit stays a limit: without one a quota would refuse the Pod.
SMALL_CPU_LIMIT: Final = "2"
POLICY: Final = "kuberay-op-small-requests"

#: Ray's dashboard gives up when its parts take over 30 seconds to start; a busy small machine is slower.
DASHBOARD_PATIENCE: Final = ("RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT", "180")

API_GROUP: Final = "admissionregistration.k8s.io"


def manifests(spec: Spec) -> str:
    """All objects as one YAML text."""
    template = resources.files(__package__).joinpath("objects.yaml").read_text()
    text = string.Template(template).substitute(
        DNS_SERVICE=world.DNS_SERVICE, BRIDGE_ADDRESS=world.BRIDGE_ADDRESS
    )
    if not spec.small_requests:
        return text
    return f"{text}---\n{yaml.safe_dump_all(small_requests(spec.kubernetes), sort_keys=False)}"


def said(cores: int) -> str:
    """What users are told about lowered requests."""
    return (
        f"this machine has {cores} cores: Pods are scheduled as if each container asked for {SMALL_CPU} CPU "
        f"and {SMALL_MEMORY}, so that Ray fits (--full-requests leaves them alone)"
    )


def small_requests(kubernetes: str) -> list[dict[str, Any]]:
    """A policy that lowers the requests of new Pods; limits of memory and what Ray counts stay."""
    stable = components.minor(kubernetes) >= components.MUTATING_POLICIES_STABLE
    version = f"{API_GROUP}/{'v1' if stable else 'v1beta1'}"
    both = [
        _containers("containers"),
        f"has(object.spec.initContainers) ? {_containers('initContainers')} : []",
    ]
    expressions = [*both, _patient_dashboard()]
    policy = {
        "apiVersion": version,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": POLICY},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ]
            },
            "mutations": [
                {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
                for expression in expressions
            ],
        },
    }
    binding = {
        "apiVersion": version,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": POLICY},
        "spec": {"policyName": POLICY},
    }
    return [policy, binding]


def _containers(field: str) -> str:
    """A CEL expression: patches for each container of the field, only where something is asked for."""
    changes = (
        ("requests", "cpu", SMALL_CPU),
        ("requests", "memory", SMALL_MEMORY),
        ("limits", "cpu", SMALL_CPU_LIMIT),
    )
    parts = [
        f"object.spec.{field}.transformList(i, c, "
        f'has(c.resources) && has(c.resources.{kind}) && "{name}" in c.resources.{kind}, '
        f'JSONPatch{{op: "replace", path: "/spec/{field}/" + string(i) + "/resources/{kind}/{name}", '
        f'value: "{value}"}})'
        for kind, name, value in changes
    ]
    return f"({' + '.join(parts)})"


def _patient_dashboard() -> str:
    name, value = DASHBOARD_PATIENCE
    return (
        'has(object.metadata.labels) && "ray.io/node-type" in object.metadata.labels '
        '&& object.metadata.labels["ray.io/node-type"] == "head" && has(object.spec.containers[0].env) '
        '? [JSONPatch{op: "add", path: "/spec/containers/0/env/-", '
        f'value: Object.spec.containers.env{{name: "{name}", value: "{value}"}}}}] : []'
    )
