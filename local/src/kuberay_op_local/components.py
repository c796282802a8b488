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

#: Parts of a real node; what they are started with is in ``real.parts``.
NAMESPACES: Final = "namespaces"
SLIRP: Final = "slirp4netns"
CONTAINERD: Final = "containerd"
KUBELET: Final = "kubelet"
KUBE_PROXY: Final = "kube-proxy"
COREDNS: Final = "coredns"

#: In the order in which they need each other.
ALL: Final = (ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER, KWOK)

#: Components without nodes; kwok joins when there are kwok nodes.
CONTROL_PLANE: Final = (ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER)

#: What a real node adds: a world of its own, in which then all the others live, and the node's programs.
REAL_WORLD: Final = (NAMESPACES, SLIRP)
REAL_NODE: Final = (CONTAINERD, KUBELET, KUBE_PROXY, COREDNS)

REAL_NODE_NAME: Final = "real-0"

#: Who a component is to the API server: user and groups of its client certificate.
IDENTITIES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    CONTROLLER_MANAGER: ("system:kube-controller-manager", ()),
    SCHEDULER: ("system:kube-scheduler", ()),
    KWOK: ("kwok", ("system:masters",)),
    KUBELET: (f"system:node:{REAL_NODE_NAME}", ("system:nodes",)),
    KUBE_PROXY: ("system:kube-proxy", ()),
    COREDNS: ("system:coredns", ()),
}

#: Ports a component listens on, all at the address ``Spec.host``.
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

#: Since which 1.x mutating admission policies need no feature gate, and since which they are beta.
MUTATING_POLICIES_STABLE: Final = 36
MUTATING_POLICIES: Final = 34

#: The limits on calls per second that components put on themselves are for big shared clusters.
FAST_CLIENT: Final = ("--kube-api-qps=500", "--kube-api-burst=1000")


def arguments(component: str, spec: Spec, layout: Layout) -> list[str]:
    """The argument list of a component, the user's own at the end, where they win."""
    return [*_BUILDERS[component](spec, layout), *spec.extra_args.get(component, [])]


def etcd(spec: Spec, layout: Layout) -> list[str]:
    """One member; without fsync, since the data dies with the cluster."""
    client = f"https://{spec.host}:{spec.ports['etcd']}"
    peer = f"https://{spec.host}:{spec.ports['etcd-peer']}"
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
    """An API server as in a normal cluster, on loopback unless there is a real node."""
    pki = layout.pki
    return [
        f"--secure-port={spec.ports['kube-apiserver']}",
        f"--bind-address={spec.host}",
        f"--advertise-address={spec.host}",
        *(_for_real_node(spec, layout) if spec.nodes.real else _WITHOUT_PODS),
        f"--etcd-servers=https://{spec.host}:{spec.ports['etcd']}",
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


#: Where no Pod runs nobody asks for the Service ``kubernetes``, and loopback cannot be its endpoint.
_WITHOUT_PODS: Final = ("--endpoint-reconciler-type=none",)


def _for_real_node(spec: Spec, layout: Layout) -> list[str]:
    """How the API server reaches the kubelet, for logs and exec; and the policies of ``real.objects``."""
    pki = layout.pki
    flags = [
        f"--kubelet-client-certificate={pki / 'admin.crt'}",
        f"--kubelet-client-key={pki / 'admin.key'}",
        f"--kubelet-certificate-authority={pki / 'ca.crt'}",
        "--kubelet-preferred-address-types=InternalIP",
    ]
    if spec.small_requests and minor(spec.kubernetes) < MUTATING_POLICIES_STABLE:
        flags += [
            "--feature-gates=MutatingAdmissionPolicy=true",
            "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
        ]
    return flags


def minor(kubernetes: str) -> int:
    """The second number of a Kubernetes version."""
    return int(kubernetes.split(".")[1])


def kube_controller_manager(spec: Spec, layout: Layout) -> list[str]:
    """All controllers, each with a service account of its own, as in a normal cluster."""
    pki = layout.pki
    return [
        f"--kubeconfig={layout.component_kubeconfig(CONTROLLER_MANAGER)}",
        f"--secure-port={spec.ports['kube-controller-manager']}",
        f"--bind-address={spec.host}",
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
        f"--bind-address={spec.host}",
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
