"""What ``kuberay-op plan`` and ``kuberay-op render`` share: options, reading, asking, printing."""
