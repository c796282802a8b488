"""The pytest plugin of kuberay-op (entry point ``pytest11``)."""

from __future__ import annotations

#: Each module of the kit that brings fixtures of its own.
pytest_plugins = ("kuberay_op.testing.loop_guard",)
