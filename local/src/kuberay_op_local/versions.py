"""Which versions we run, and what makes two sets of programs the same."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final

from kuberay_op_local.errors import LocalError

KUBERNETES: Final = "1.36.3"
ETCD: Final = "3.6.8"
KWOK: Final = "0.8.0"
HELM: Final = "4.3.1"
COREDNS: Final = "1.15.0"

#: The Go release series that is fetched when the machine has no Go that is new enough.
GO: Final = "1.26"

#: Programs of which every Kubernetes version has its own.
KUBERNETES_TOOLS: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
#: Programs that go with any Kubernetes version.
OTHER_TOOLS: Final = ("kwok", "helm")
ALL_TOOLS: Final = (*KUBERNETES_TOOLS, *OTHER_TOOLS)
#: What a real node runs besides, of ours; the rest are Debian packages.
NODE_TOOLS: Final = ("kubelet", "kube-proxy", "coredns")


@dataclass(frozen=True, slots=True)
class Module:
    """One of our Go modules: programs that are built together and kept in two sets of the cache."""

    #: The folder of its sources in this package, and the name of its binary.
    folder: str
    binary: str
    #: Programs of which every Kubernetes version has its own, and the name of their set without the version.
    kubernetes_tools: tuple[str, ...]
    kubernetes_set: str
    #: Programs that go with any Kubernetes version, and the name of their set.
    other_tools: tuple[str, ...]
    other_set: str
    #: What else decides which programs come out.
    pins: tuple[str, ...]

    def set_of(self, tool: str, kubernetes: str) -> str:
        """The set of the cache that holds a tool."""
        return f"{self.kubernetes_set}-{kubernetes}" if tool in self.kubernetes_tools else self.other_set

    @property
    def tools(self) -> tuple[str, ...]:
        """All its programs."""
        return (*self.kubernetes_tools, *self.other_tools)

    def sources(self) -> dict[str, str]:
        """Its files, by name."""
        folder = resources.files(__package__).joinpath(self.folder)
        return {file.name: file.read_text() for file in folder.iterdir() if file.is_file()}

    def recipe(self) -> str:
        """Changes when programs in the cache must be made again."""
        digest = hashlib.sha256(" ".join(self.pins).encode())
        for name, text in sorted(self.sources().items()):
            digest.update(f"{name}\n{text}".encode())
        return digest.hexdigest()[:16]


def modules() -> Sequence[Module]:
    """Our Go modules: the control plane with its tools, and what a real node needs besides."""
    return (
        Module("go", "kube", KUBERNETES_TOOLS, "kubernetes", OTHER_TOOLS, "tools", (ETCD, KWOK, HELM)),
        Module("gonode", "node", ("kubelet", "kube-proxy"), "node", ("coredns",), "dns", (COREDNS,)),
    )


def module_of(tool: str) -> Module:
    """The module a program is built in."""
    return next(module for module in modules() if tool in module.tools)


_VERSION: Final = re.compile(r"v?(1\.\d+\.\d+)")


def check_kubernetes(text: str) -> str:
    """The version without a leading ``v``, if it looks like one of Kubernetes."""
    match = _VERSION.fullmatch(text)
    if not match:
        raise LocalError(
            f"{text!r} is not a Kubernetes version; give all three numbers, such as {KUBERNETES}"
        )
    return match[1]
