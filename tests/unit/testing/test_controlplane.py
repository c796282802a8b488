"""The fixtures for clusters, where none is there or none is needed."""

from __future__ import annotations

import re

import pytest

from kuberay_op.testing import controlplane

pytest_plugins = ("pytester",)

NEEDS_CLUSTER = """
    def test_it(control_plane):
        pass
"""


def test_without_the_package_the_failure_names_it(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("import sys; sys.modules['kuberay_op_local'] = None")
    pytester.makepyfile(NEEDS_CLUSTER)
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*need kuberay-op-local: pip install 'kuberay-op[[]testing]'"])


def test_without_programs_the_failure_names_the_command(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(pytester.path / "state"))
    monkeypatch.delenv("KUBERAY_OP_BINARIES", raising=False)
    pytester.makepyfile(NEEDS_CLUSTER)
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*is not in the cache; run `kuberay-op local setup --kubernetes * once"])
    assert not list((pytester.path / "state").rglob("cluster.json"))


def test_a_run_without_clusters_does_not_import_the_package(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_it(golden):
            assert "kuberay_op_local" not in sys.modules
            assert "httpx" not in sys.modules
        """
    )
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


@pytest.mark.parametrize("test", ["test_a", "test_Ä[x/y-1.0]", "", "-" * 80, "test_" + "long_" * 30])
def test_a_namespace_is_named_after_its_test_and_valid(test: str) -> None:
    name = controlplane.namespace_name(test)
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name)
    assert name != controlplane.namespace_name(test)


def test_the_name_of_a_run_tells_its_owner() -> None:
    match = controlplane.OWNED.fullmatch(f"{controlplane.new_run()}-plain")
    assert match is not None
    assert not controlplane.OWNED.fullmatch("pytest-of-somebody")
