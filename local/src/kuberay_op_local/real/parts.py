"""What each part of a real node is started with: pure functions, as in ``components``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kuberay_op_local import components
from kuberay_op_local.paths import Layout
from kuberay_op_local.real import files, world
from kuberay_op_local.spec import Spec


def containerd(_spec: Spec, layout: Layout) -> list[str]:
    """The container runtime."""
    return [f"--config={layout.node / 'containerd.toml'}", "--log-level=warn"]


def kubelet(spec: Spec, layout: Layout) -> list[str]:
    """The node's agent; its name need not resolve, since it is reached by address."""
    return [
        f"--config={layout.node / 'kubelet.yaml'}",
        f"--kubeconfig={layout.component_kubeconfig(components.KUBELET)}",
        f"--root-dir={world.KUBELET_ROOT}",
        f"--cert-dir={layout.pki}",
        f"--hostname-override={components.REAL_NODE_NAME}",
        f"--node-ip={spec.host}",
        "--node-labels=type=real",
    ]


def kube_proxy(spec: Spec, layout: Layout) -> list[str]:
    """Cluster addresses by iptables; the machine's connection tracking is left as it is."""
    return [
        f"--kubeconfig={layout.component_kubeconfig(components.KUBE_PROXY)}",
        "--proxy-mode=iptables",
        f"--cluster-cidr={world.POD_RANGE}",
        f"--hostname-override={components.REAL_NODE_NAME}",
        f"--healthz-bind-address={spec.host}:{files.PROXY_HEALTH_PORT}",
        "--conntrack-max-per-core=0",
        "--conntrack-min=0",
        "--conntrack-tcp-timeout-established=0s",
        "--conntrack-tcp-timeout-close-wait=0s",
    ]


def coredns(_spec: Spec, layout: Layout) -> list[str]:
    """Names; a process and no Pod, so that it needs no image."""
    return [f"-conf={layout.node / 'Corefile'}"]


BUILDERS: Final[dict[str, Callable[[Spec, Layout], list[str]]]] = {
    components.CONTAINERD: containerd,
    components.KUBELET: kubelet,
    components.KUBE_PROXY: kube_proxy,
    components.COREDNS: coredns,
}


def arguments(component: str, spec: Spec, layout: Layout) -> list[str]:
    """The argument list of a part, the user's own at the end, where they win."""
    return [*BUILDERS[component](spec, layout), *spec.extra_args.get(component, [])]
