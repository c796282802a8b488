"""A real Kubernetes on one machine, without Docker and without root.

The way of a cluster: ``binaries`` finds or builds the programs, ``certs`` signs their certificates,
``components`` writes their argument lists, ``processes`` starts and stops them, ``nodes`` adds nodes, and
``cluster`` puts it all in order (``kuberay_op_local.cluster.Cluster`` is the library's front door). ``cli``
is the command ``kuberay-op local``. Nothing is imported here, so that a test run that needs no cluster does
not pay for one.
"""
