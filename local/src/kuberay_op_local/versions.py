"""Which versions we run, and what makes two sets of programs the same."""

from __future__ import annotations

import hashlib
import re
from importlib import resources
from typing import Final

from kuberay_op_local.errors import LocalError

KUBERNETES: Final = "1.36.3"
ETCD: Final = "3.6.8"
KWOK: Final = "0.8.0"
HELM: Final = "4.3.1"

#: The Go release series that is fetched when the machine has no Go that is new enough.
GO: Final = "1.26"

#: Programs of which every Kubernetes version has its own.
KUBERNETES_TOOLS: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
#: Programs that go with any Kubernetes version.
OTHER_TOOLS: Final = ("kwok", "helm")
ALL_TOOLS: Final = (*KUBERNETES_TOOLS, *OTHER_TOOLS)

_VERSION: Final = re.compile(r"v?(1\.\d+\.\d+)")


def check_kubernetes(text: str) -> str:
    """The version without a leading ``v``, if it looks like one of Kubernetes."""
    match = _VERSION.fullmatch(text)
    if not match:
        raise LocalError(
            f"{text!r} is not a Kubernetes version; give all three numbers, such as {KUBERNETES}"
        )
    return match[1]


def go_sources() -> dict[str, str]:
    """The files of our Go module, by name."""
    folder = resources.files(__package__).joinpath("go")
    return {file.name: file.read_text() for file in folder.iterdir() if file.is_file()}


def recipe() -> str:
    """Changes when programs in the cache must be made again."""
    digest = hashlib.sha256(f"{ETCD} {KWOK} {HELM}".encode())
    for name, text in sorted(go_sources().items()):
        digest.update(f"{name}\n{text}".encode())
    return digest.hexdigest()[:16]
