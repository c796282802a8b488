"""The configuration files of a real node, as texts."""

from __future__ import annotations

import json
from typing import Any, Final

import yaml

from kuberay_op_local.paths import Layout
from kuberay_op_local.real import kernel, world
from kuberay_op_local.real.packages import CNI_FOLDER
from kuberay_op_local.spec import Spec

#: The program every Pod's namespaces belong to; ours, so that no registry is asked for it.
PAUSE_IMAGE: Final = "kuberay-op.local/pause:1"
CONTAINERD_SOCKET: Final = "/run/containerd/containerd.sock"
#: Where CoreDNS says that it knows all Services, and kube-proxy that its rules are written.
DNS_READY_PORT: Final = 8181
PROXY_HEALTH_PORT: Final = 10256
KUBELET_PORT: Final = 10250

CONTAINERD: Final = """\
version = 2
root = "{node}/containerd"
state = "/run/containerd"
# This machine may forbid lower values, and then no container would start.
oom_score = 0
[grpc]
  address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{node}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  max_container_log_line_size = 65536
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni}"
    conf_dir = "{node}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"""

COREFILE: Final = """\
cluster.local:53 in-addr.arpa:53 ip6.arpa:53 {{
  bind {bridge}
  errors
  ready {host}:{ready}
  kubernetes cluster.local in-addr.arpa ip6.arpa {{
    kubeconfig {kubeconfig} {context}
    pods insecure
    ttl 2
  }}
}}
.:53 {{
  bind {bridge}
  errors
  forward . {outside}
  cache 30
}}
"""


def containerd(layout: Layout) -> str:
    """containerd's configuration: everything in the cluster's folder, sockets in the node's own /run."""
    return CONTAINERD.format(node=layout.node, socket=CONTAINERD_SOCKET, pause=PAUSE_IMAGE, cni=CNI_FOLDER)


def cni() -> str:
    """How Pods are plugged into the network: one bridge, addresses by count."""
    bridge: dict[str, Any] = {
        "type": "bridge",
        "bridge": world.BRIDGE,
        "isGateway": True,
        "ipMasq": False,  # done once for all Pods, see ``world``
        "hairpinMode": True,  # a Pod may reach itself through its Service
        "forceAddress": True,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": world.POD_RANGE}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": "/run/cni-addresses",
        },
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "0.4.0", "name": "kuberay-op", "plugins": [bridge, portmap]}, indent=2)


def kubelet(layout: Layout) -> str:
    """The kubelet's configuration."""
    document: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": str(layout.pki / "ca.crt")},
        },
        # Whoever has a certificate of this cluster's authority for clients is its administrator.
        "authorization": {"mode": "AlwaysAllow"},
        "port": KUBELET_PORT,
        "tlsCertFile": str(layout.pki / "kubelet.crt"),
        "tlsPrivateKeyFile": str(layout.pki / "kubelet.key"),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{kernel.cgroup(layout)}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "clusterDNS": [world.DNS_SERVICE],
        "clusterDomain": "cluster.local",
        "resolvConf": str(layout.node / "resolv-outside.conf"),
        "volumePluginDir": str(layout.node / "volume-plugins"),
        "maxPods": 200,
        # The images were loaded by hand: nobody could fetch them again.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "100Mi"},
        "serializeImagePulls": False,
        "kubeAPIQPS": 100,
        "kubeAPIBurst": 200,
        "eventRecordQPS": 100,
        "syncFrequency": "10s",
        "nodeStatusUpdateFrequency": "5s",
    }
    return yaml.safe_dump(document, sort_keys=False)


def corefile(spec: Spec, *, kubeconfig: str) -> str:
    """What CoreDNS answers: the cluster's names itself, all others as this machine would."""
    return COREFILE.format(
        bridge=world.BRIDGE_ADDRESS,
        host=spec.host,
        ready=DNS_READY_PORT,
        kubeconfig=kubeconfig,
        context=f"kuberay-op-{spec.name}",
        outside=world.OUTSIDE_DNS,
    )
