"""The namespaces of a real node: making them, setting up their network and mounts, running things inside.

One process, ``unshare``, holds them; it and the first process inside die together. The network has two ways
out: a pair of virtual links to this machine (for kubectl, nothing is routed further), and slirp4netns, which
takes connections to the outside without a change to the machine's own routes or firewall.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from kuberay_op_local import paths, processes
from kuberay_op_local.errors import LocalError
from kuberay_op_local.paths import Layout
from kuberay_op_local.real import kernel, packages
from kuberay_op_local.spec import Spec

#: Each real cluster gets four addresses of these: the second is the machine's end, the third the node's.
LINKS: Final = ipaddress.ip_network("10.213.0.0/16")

POD_RANGE: Final = "10.244.0.0/16"
BRIDGE: Final = "cni0"
BRIDGE_ADDRESS: Final = "10.244.0.1"
DNS_SERVICE: Final = "10.96.0.10"
#: Where slirp4netns answers DNS questions with what this machine knows.
OUTSIDE_DNS: Final = "10.0.2.3"
TAP: Final = "tap0"
#: The kubelet's folder as it sees it: short, since it puts sockets there and their paths must be.
KUBELET_ROOT: Final = "/run/kubelet"

WAIT_SECONDS: Final = 20.0
POLL_SECONDS: Final = 0.05
COMMAND_SECONDS: Final = 30.0


def choose_host(taken: Sequence[str]) -> str:
    """A free address for the node's end of the link; ``taken`` are addresses in use on this machine."""
    used = {ipaddress.ip_address(address) for address in taken}
    for block in LINKS.subnets(new_prefix=30):
        if not any(address in block for address in used):
            return str(block[2])
    raise LocalError(
        f"all addresses of {LINKS} are taken by links of other clusters; remove some with `down`"
    )


def addresses_in_use() -> list[str]:
    """IPv4 addresses of this machine and those promised to other clusters."""
    here = [
        entry.address
        for entries in psutil.net_if_addrs().values()
        for entry in entries
        if entry.family.name == "AF_INET"
    ]
    promised = []
    for file in paths.clusters_dir().glob("*/cluster.json"):
        try:
            promised.append(json.loads(file.read_text())["host"])
        except (
            OSError,
            ValueError,
            KeyError,
        ):  # half-made, removed just now, or without an address of its own
            continue
    return here + promised


def holder_arguments() -> list[str]:
    """What ``unshare`` is started with: it makes the namespaces and waits."""
    return [
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--propagation=private",
        *_unmarked(),
        # Waits, and buries processes that lost their parents.
        str(packages.path_of("catatonit")),
        "-P",
    ]


@dataclass(frozen=True, slots=True)
class World:
    """The namespaces that the first process in them, ``pid``, stands for."""

    pid: int

    @classmethod
    def of(cls, holder: psutil.Process) -> World:
        """The world a holder made; waits until it is there."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            inside = holder.children() if processes.alive(holder) else []
            # Until it becomes catatonit the child may not have its namespaces yet.
            if inside and inside[0].name() == "catatonit":
                return cls(inside[0].pid)
            if not processes.alive(holder) or time.monotonic() > deadline:
                raise LocalError(
                    "the namespaces of a real node cannot be made; see `kuberay-op local logs namespaces`"
                )
            time.sleep(POLL_SECONDS)

    @property
    def containerd_socket(self) -> Path:
        """containerd's socket, as seen from outside."""
        return Path(f"/proc/{self.pid}/root/run/containerd/containerd.sock")

    def enter(self, *, mounts: bool = False, whole: bool = False) -> list[str]:
        """The command in front of one that shall run inside: in the network, with its mounts, or wholly.

        A process that enters wholly is a child of ``nsenter``; it dies with it, and only ``nsenter`` has the
        marks by which components are found.
        """
        command = [str(packages.path_of("nsenter")), f"--target={self.pid}", "--net"]
        if not whole:
            return [*command, *(["--mount"] if mounts else []), "--"]
        die_with_parent = [str(packages.path_of("setpriv")), "--pdeathsig", "KILL"]
        return [*command, "--mount", "--pid", "--", *die_with_parent, *_unmarked()]

    def run(self, *command: str, mounts: bool = False) -> str:
        """Run a short command inside; gives its output."""
        return _run(*self.enter(mounts=mounts), *command)

    # ── setting up ──

    def set_up_mounts(self, layout: Layout) -> None:
        """Give the node a /run, /var/log and resolv.conf of its own; what it mounts stays among its own."""
        if Path(f"/proc/{self.pid}/root/run/kuberay-op").exists():
            return
        node = layout.node
        for folder in ("log", "cni-cache", "kubelet"):
            (node / folder).mkdir(parents=True, exist_ok=True)
        search = "default.svc.cluster.local svc.cluster.local cluster.local"
        inside = node / "resolv.conf"
        inside.write_text(f"nameserver {DNS_SERVICE}\nsearch {search}\noptions ndots:5\n")
        (node / "resolv-outside.conf").write_text(f"nameserver {OUTSIDE_DNS}\n")
        for command in (
            ["mount", "--make-rshared", "/"],
            ["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"],
            ["mount", "--bind", str(node / "log"), "/var/log"],
            ["mount", "--bind", str(node / "cni-cache"), str(kernel.CNI_CACHE)],
            ["mount", "--bind", str(inside), str(Path("/etc/resolv.conf").resolve())],
            ["mkdir", "-p", "/run/lock", "/run/netns", KUBELET_ROOT],
            ["mount", "--bind", str(node / "kubelet"), KUBELET_ROOT],
            ["mkdir", "/run/kuberay-op"],  # last: it says that all is there
        ):
            self.run(*command, mounts=True)

    def set_up_network(self, spec: Spec, layout: Layout) -> None:
        """The link to this machine, the bridge of the Pods, and the way out for them."""
        if BRIDGE in self.links():
            return
        outer = f"kr{kernel.tag(layout)}"
        node = ipaddress.ip_interface(f"{spec.host}/30")
        ip = str(packages.path_of("ip"))
        if outer not in psutil.net_if_addrs():
            _run(ip, "link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", str(self.pid))
            _run(ip, "address", "add", f"{node.ip - 1}/30", "dev", outer)
            _run(ip, "link", "set", outer, "up")
            self.run(ip, "address", "add", str(node), "dev", "eth0")
        self.run(ip, "link", "set", "lo", "up")
        self.run(ip, "link", "set", "eth0", "up")
        for setting in ("net.ipv4.ip_forward", "net.bridge.bridge-nf-call-iptables"):
            # In a network of its own these are its own.
            path = f"/proc/sys/{setting.replace('.', '/')}"
            self.run("/bin/sh", "-c", f"if test -e {path}; then echo 1 > {path}; fi", mounts=True)
        out = ("-s", POD_RANGE, "!", "-d", POD_RANGE, "!", "-o", BRIDGE, "-j", "MASQUERADE")
        self.run(str(packages.path_of("iptables")), "-t", "nat", "-A", "POSTROUTING", *out)
        self.run(ip, "link", "add", BRIDGE, "type", "bridge")  # last but for its address: it says "done"
        self.run(ip, "address", "add", f"{BRIDGE_ADDRESS}/16", "dev", BRIDGE)
        self.run(ip, "link", "set", BRIDGE, "up")

    def links(self) -> set[str]:
        """The names of the network links inside."""
        listed = json.loads(self.run(str(packages.path_of("ip")), "-json", "link"))
        return {link["ifname"] for link in listed}


def remove_link(layout: Layout) -> None:
    """Remove the machine's end of the link; it goes by itself, but later when somebody is still inside."""
    outer = f"kr{kernel.tag(layout)}"
    if outer in psutil.net_if_addrs():
        with contextlib.suppress(LocalError):  # the kernel was quicker
            _run(str(packages.path_of("ip")), "link", "delete", outer)


def slirp_arguments(world: World) -> list[str]:
    """What slirp4netns is started with: a way out, none to this machine's loopback."""
    return ["--configure", "--mtu=65520", "--disable-host-loopback", str(world.pid), TAP]


def _unmarked() -> list[str]:
    return ["/usr/bin/env", "-u", processes.CLUSTER, "-u", processes.COMPONENT]


def _run(*command: str) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
            env={"PATH": packages.PATH, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired as error:
        raise LocalError(f"`{' '.join(command)}` did not end in {COMMAND_SECONDS:.0f} seconds") from error
    if done.returncode != 0:
        complaint = (done.stderr or done.stdout).strip().replace("\n", "; ")
        raise LocalError(f"the real node cannot be set up: `{' '.join(command)}` failed: {complaint}")
    return done.stdout
