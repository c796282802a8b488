"""kwok nodes: the Node objects and what kwok does with them and with the Pods on them."""

from __future__ import annotations

import platform
from importlib import resources
from typing import Any, Final

PREFIX: Final = "kwok-"

#: What one node offers. Generous: with kwok no work is done, only counted.
CAPACITY: Final = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "1000"}


def name(index: int) -> str:
    """The name of a kwok node."""
    return f"{PREFIX}{index}"


def manifest(index: int, *, kubernetes: str) -> dict[str, Any]:
    """The Node object with this number."""
    machine = architecture()
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name(index),
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/arch": machine,
                "kubernetes.io/hostname": name(index),
                "kubernetes.io/os": "linux",
                "type": "kwok",
            },
        },
        "status": {
            "allocatable": CAPACITY,
            "capacity": CAPACITY,
            "nodeInfo": {
                "architecture": machine,
                "bootID": "",
                "containerRuntimeVersion": "kwok://",
                "kernelVersion": "kwok",
                "kubeProxyVersion": "",
                "kubeletVersion": f"v{kubernetes}",
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "kwok",
                "systemUUID": "",
            },
        },
    }


def architecture() -> str:
    """This machine's architecture as Go and Kubernetes write it."""
    machine = platform.machine().lower()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def stages() -> str:
    """The configuration file for kwok."""
    return resources.files(__package__).joinpath("stages.yaml").read_text()
