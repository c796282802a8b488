"""The pytest plugin of kuberay-op (entry point ``pytest11``)."""
