"""A real node beside the control plane: containerd, kubelet, kube-proxy and CoreDNS in a world of their own.

All of it lives in one set of Linux namespaces (network, mounts, processes). When the first process in there
is killed, the kernel ends the others and takes their mounts, links and firewall rules away, so that nothing
has to be undone by hand: what is left are cgroups and some kernel settings, see ``kernel``.
"""
