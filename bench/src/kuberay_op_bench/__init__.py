"""Benchmarks of kuberay-op: ``kuberay-op bench --help``."""
