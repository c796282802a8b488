"""Applying on a real API server: what it fills in is no difference, what others add is theirs."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kuberay_op.frozen import freeze
from kuberay_op.kube.apply import Action, Applier, NotOurs
from kuberay_op.kube.client import Client
from kuberay_op.kube.errors import InvalidObject
from kuberay_op.kube.resource import (
    CONFIG_MAPS,
    INGRESSES,
    JOBS,
    NETWORK_POLICIES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from tests.apiserver.kube.objects import config_map

pytestmark = pytest.mark.apiserver

RBAC = "rbac.authorization.k8s.io"

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"ray.io/cluster": "c"}},
    "spec": {
        "initContainers": [{"name": "wait", "image": "ray", "command": ["true"], "env": []}],
        "containers": [
            {
                "name": "ray",
                "image": "ray",
                "args": ["ray start"],
                "env": [
                    {"name": "A", "value": ""},
                    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                ],
                "ports": [{"name": "gcs", "containerPort": 6379}],
                "resources": {"limits": {"cpu": "1000m", "memory": "1073741824"}, "requests": {"cpu": 0.5}},
                "readinessProbe": {"exec": {"command": ["true"]}, "initialDelaySeconds": 0},
                "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm", "readOnly": False}],
                "stdin": False,
            }
        ],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1024Mi"}}],
        "nodeSelector": {},
        "hostNetwork": False,
        "restartPolicy": "Never",
    },
}

#: One of each kind, written as a controller would: short, and not as the server writes it.
WANTED: dict[Resource, dict[str, Any]] = {
    PODS: TEMPLATE,
    JOBS: {"spec": {"template": TEMPLATE, "backoffLimit": 2}},
    SERVICES: {
        "spec": {
            "type": "NodePort",
            "selector": {"a": "b"},
            "ports": [{"name": "gcs", "port": 6379}, {"name": "serve", "port": 8000, "targetPort": "serve"}],
            "publishNotReadyAddresses": False,
        }
    },
    PERSISTENT_VOLUME_CLAIMS: {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
    },
    SERVICE_ACCOUNTS: {},
    ROLES: {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    ROLE_BINDINGS: {
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "a"},
        "subjects": [{"kind": "ServiceAccount", "name": "a"}],
    },
    INGRESSES: {
        "spec": {
            "rules": [
                {
                    "http": {
                        "paths": [
                            {
                                "path": "/a",
                                "pathType": "Exact",
                                "backend": {"service": {"name": "a", "port": {"number": 80}}},
                            }
                        ]
                    }
                }
            ]
        }
    },
    NETWORK_POLICIES: {
        "spec": {
            "podSelector": {},
            "ingress": [{"from": [{"podSelector": {"matchLabels": {"a": "b"}}}], "ports": [{"port": 80}]}],
        }
    },
    SECRETS: {"stringData": {"token": "hunter2"}, "type": "Opaque"},
    CONFIG_MAPS: {"data": {"a": "b"}, "binaryData": {}},
}


def desired(resource: Resource, namespace: str, fields: dict[str, Any]) -> dict[str, Any]:
    fields = copy.deepcopy(fields)
    metadata = fields.pop("metadata", {}) | {"name": "a", "namespace": namespace}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **fields}


@pytest.mark.parametrize("resource", WANTED, ids=str)
async def test_what_the_server_fills_in_is_no_difference(
    resource: Resource, client: Client, namespace: str
) -> None:
    applier, wanted = Applier(client), desired(resource, namespace, WANTED[resource])
    made = await applier.apply(resource, wanted, reason="test")
    assert made.action is Action.CREATED
    observed = freeze(await client.get(resource, "a", namespace))
    again = await applier.apply(resource, wanted, observed, reason="test")
    assert again.action is Action.UNCHANGED
    labelled = copy.deepcopy(wanted)
    labelled["metadata"]["labels"] = {**(wanted["metadata"].get("labels") or {}), "new": "x"}
    patched = await applier.apply(resource, labelled, observed, reason="test")
    assert patched.action is Action.PATCHED
    assert (await applier.apply(resource, labelled, patched.object, reason="test")).action is Action.UNCHANGED


async def test_what_others_add_is_theirs(client: Client, namespace: str) -> None:
    applier = Applier(client)
    wanted = desired(SERVICES, namespace, WANTED[SERVICES])
    made = await applier.apply(SERVICES, wanted, reason="test")
    ports = [port["nodePort"] for port in made.object["spec"]["ports"]]
    theirs = {
        "metadata": {"labels": {"team": "x"}, "annotations": {"y": "z"}},
        "spec": {"sessionAffinity": "ClientIP"},
    }
    await client.patch(SERVICES, "a", namespace, theirs, reason="somebody else")
    wanted["spec"]["ports"][0]["name"] = "renamed"
    wanted["metadata"]["labels"] = {"ours": "1"}
    # From the object as it was: the conflict is found by the server and made up for.
    done = await applier.apply(SERVICES, wanted, made.object, reason="test")
    assert done.action is Action.PATCHED
    service = await client.get(SERVICES, "a", namespace)
    assert service["metadata"]["labels"] == {"team": "x", "ours": "1"}
    assert service["metadata"]["annotations"] == {"y": "z"}
    assert service["spec"]["sessionAffinity"] == "ClientIP"
    assert [port["name"] for port in service["spec"]["ports"]] == ["renamed", "serve"]
    assert [port["nodePort"] for port in service["spec"]["ports"]] == ports


async def test_a_status_is_applied_by_itself(client: Client, namespace: str) -> None:
    applier = Applier(client)
    await applier.apply(PODS, desired(PODS, namespace, TEMPLATE), reason="test")
    pod = await client.get(PODS, "a", namespace)
    condition = {"type": "ours.example.com/ready", "status": "True"}
    status = {"metadata": pod["metadata"], "status": {"conditions": [condition], "message": "hello"}}
    done = await applier.apply(PODS, status, pod, subresource="status", reason="test")
    assert done.action is Action.PATCHED
    assert done.object["status"]["message"] == "hello"
    again = await applier.apply(PODS, status, done.object, subresource="status", reason="test")
    assert again.action is Action.UNCHANGED


async def test_an_object_of_another_owner_is_left_alone(client: Client, namespace: str) -> None:
    def owned(uid: str, value: str) -> dict[str, Any]:
        obj = config_map(namespace, "a")
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
        obj["metadata"]["ownerReferences"] = [owner]
        return obj | {"data": {"x": value}}

    applier = Applier(client)
    # The garbage collector would delete an object whose owner is not there, so the owner is.
    pod = (await applier.apply(PODS, desired(PODS, namespace, TEMPLATE), reason="test")).object
    mine = owned(pod["metadata"]["uid"], "1")
    mine["metadata"]["ownerReferences"][0]["name"] = "a"
    await applier.apply(CONFIG_MAPS, mine, reason="test")
    with pytest.raises(NotOurs, match=r"configmaps .*/a exists and is not ours"):
        await applier.apply(CONFIG_MAPS, owned("another", "2"), reason="test")
    mine["data"]["x"] = "3"
    assert (await applier.apply(CONFIG_MAPS, mine, reason="test")).action is Action.PATCHED
    assert (await client.get(CONFIG_MAPS, "a", namespace))["data"] == {"x": "3"}


async def test_deleting_hits_only_the_object_that_was_meant(client: Client, namespace: str) -> None:
    applier = Applier(client)
    first = (await applier.apply(CONFIG_MAPS, config_map(namespace, "a"), reason="test")).object
    assert (await applier.delete(CONFIG_MAPS, first, reason="test")).action is Action.DELETED
    assert (await applier.delete(CONFIG_MAPS, first, reason="test")).action is Action.UNCHANGED
    await applier.apply(CONFIG_MAPS, config_map(namespace, "a"), reason="test")
    assert (await applier.delete(CONFIG_MAPS, first, reason="test")).action is Action.UNCHANGED
    assert await client.get(CONFIG_MAPS, "a", namespace)


async def test_what_cannot_be_changed_is_an_error(client: Client, namespace: str) -> None:
    applier, wanted = Applier(client), desired(PODS, namespace, TEMPLATE)
    pod = (await applier.apply(PODS, wanted, reason="test")).object
    wanted["spec"]["restartPolicy"] = "Always"
    with pytest.raises(InvalidObject, match="may not change fields"):
        await applier.apply(PODS, wanted, pod, reason="test")
