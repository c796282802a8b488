"""What each component is started with: pure functions from a cluster's specification to argument lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kuberay_op_local.paths import Layout
from kuberay_op_local.spec import Spec

ETCD: Final = "etcd"
API_SERVER: Final = "kube-apiserver"
CONTROLLER_MANAGER: Final = "kube-controller-manager"
SCHEDULER: Final = "kube-scheduler"
KWOK: Final = "kwok"
OPERATOR: Final = "operator"

#: In the order in which they need each other.
ALL: Final = (ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER, KWOK)

#: Components without nodes; kwok joins when there are kwok nodes.
CONTROL_PLANE: Final = (ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER)

#: Who a component is to the API server: user and groups of its client certificate.
IDENTITIES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    CONTROLLER_MANAGER: ("system:kube-controller-manager", ()),
    SCHEDULER: ("system:kube-scheduler", ()),
    KWOK: ("kwok", ("system:masters",)),
}

#: Ports a component listens on, all on loopback.
PORTS: Final[dict[str, tuple[str, ...]]] = {
    ETCD: ("etcd", "etcd-peer"),
    API_SERVER: ("kube-apiserver",),
    CONTROLLER_MANAGER: ("kube-controller-manager",),
    SCHEDULER: ("kube-scheduler",),
    KWOK: (),
}

SERVICE_RANGE: Final = "10.96.0.0/16"
FIRST_SERVICE_ADDRESS: Final = "10.96.0.1"
#: Eight million addresses: a hundred nodes with a thousand Pods each need more than a /16.
POD_RANGE: Final = "10.128.0.0/9"

#: Names under which the serving certificate is valid.
SERVING_HOSTS: Final = (
    "localhost",
    "127.0.0.1",
    "::1",
    FIRST_SERVICE_ADDRESS,
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)

#: The limits on calls per second that components put on themselves are for big shared clusters.
FAST_CLIENT: Final = ("--kube-api-qps=500", "--kube-api-burst=1000")


def arguments(component: str, spec: Spec, layout: Layout) -> list[str]:
    """The argument list of a component, the user's own at the end, where they win."""
    return [*_BUILDERS[component](spec, layout), *spec.extra_args.get(component, [])]


def etcd(spec: Spec, layout: Layout) -> list[str]:
    """One member on loopback; without fsync, since the data dies with the cluster."""
    client = f"https://127.0.0.1:{spec.ports['etcd']}"
    peer = f"https://127.0.0.1:{spec.ports['etcd-peer']}"
    serving = [
        f"--{prefix}{name}={layout.pki / file}"
        for prefix in ("", "peer-")
        for name, file in (
            ("cert-file", "server.crt"),
            ("key-file", "server.key"),
            ("trusted-ca-file", "ca.crt"),
        )
    ]
    return [
        "--name=local",
        f"--data-dir={layout.data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=local={peer}",
        *serving,
        "--client-cert-auth=true",
        "--peer-client-cert-auth=true",
        "--unsafe-no-fsync=true",
        "--quota-backend-bytes=8589934592",
        "--log-level=warn",
    ]


def kube_apiserver(spec: Spec, layout: Layout) -> list[str]:
    """An API server as in a normal cluster, on loopback."""
    pki = layout.pki
    return [
        f"--secure-port={spec.ports['kube-apiserver']}",
        "--bind-address=127.0.0.1",
        # Pods are not run here, so nobody needs an address from outside; a machine may have none.
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--etcd-servers=https://127.0.0.1:{spec.ports['etcd']}",
        f"--etcd-cafile={pki / 'ca.crt'}",
        f"--etcd-certfile={pki / 'server.crt'}",
        f"--etcd-keyfile={pki / 'server.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--tls-cert-file={pki / 'server.crt'}",
        f"--tls-private-key-file={pki / 'server.key'}",
        f"--service-account-key-file={pki / 'service-accounts.pub'}",
        f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        "--authorization-mode=Node,RBAC",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--allow-privileged=true",
        "--profiling=false",
    ]


def kube_controller_manager(spec: Spec, layout: Layout) -> list[str]:
    """All controllers, each with a service account of its own, as in a normal cluster."""
    pki = layout.pki
    return [
        f"--kubeconfig={layout.component_kubeconfig(CONTROLLER_MANAGER)}",
        f"--secure-port={spec.ports['kube-controller-manager']}",
        "--bind-address=127.0.0.1",
        f"--tls-cert-file={pki / 'server.crt'}",
        f"--tls-private-key-file={pki / 'server.key'}",
        f"--root-ca-file={pki / 'ca.crt'}",
        f"--cluster-signing-cert-file={pki / 'ca.crt'}",
        f"--cluster-signing-key-file={pki / 'ca.key'}",
        f"--service-account-private-key-file={pki / 'service-accounts.key'}",
        "--use-service-account-credentials=true",
        # Alone on the machine; under load a lease would be lost and the component would end.
        "--leader-elect=false",
        "--concurrent-gc-syncs=20",
        *FAST_CLIENT,
    ]


def kube_scheduler(spec: Spec, layout: Layout) -> list[str]:
    """The scheduler with its usual profile."""
    return [
        f"--kubeconfig={layout.component_kubeconfig(SCHEDULER)}",
        f"--secure-port={spec.ports['kube-scheduler']}",
        "--bind-address=127.0.0.1",
        f"--tls-cert-file={layout.pki / 'server.crt'}",
        f"--tls-private-key-file={layout.pki / 'server.key'}",
        "--leader-elect=false",
        *FAST_CLIENT,
    ]


def kwok(_spec: Spec, layout: Layout) -> list[str]:
    """Plays the kubelet of its nodes, by ``stages.yaml``; other nodes are not its business."""
    return [
        f"--kubeconfig={layout.component_kubeconfig(KWOK)}",
        f"--config={layout.stages}",
        "--manage-nodes-with-label-selector=type=kwok",
        "--node-lease-duration-seconds=40",
        f"--cidr={POD_RANGE}",
        "--node-ip=127.0.0.1",
    ]


_BUILDERS: Final[dict[str, Callable[[Spec, Layout], list[str]]]] = {
    ETCD: etcd,
    API_SERVER: kube_apiserver,
    CONTROLLER_MANAGER: kube_controller_manager,
    SCHEDULER: kube_scheduler,
    KWOK: kwok,
}
