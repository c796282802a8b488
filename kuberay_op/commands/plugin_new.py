"""The package that ``kuberay-op plugin new`` makes: small, whole, and green from the first minute."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template
from typing import Final

from kuberay_op.errors import Misconfigured
from kuberay_op.hooks.specs import CONTRACT

_PYPROJECT: Final = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "kuberay-op-$name"
version = "0.1.0"
description = "A plugin for kuberay-op."
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["kuberay-op"]

# The manifest is found by this entry point and read without importing the package.
[project.entry-points."kuberay_op.plugins"]
$name = "$package:plugin.yaml"

[tool.hatch.build.targets.wheel]
packages = ["src/$package"]

[tool.pytest.ini_options]
asyncio_mode = "auto"
asyncio_default_fixture_loop_scope = "function"
pythonpath = ["src"]
"""

_README: Final = """\
# kuberay-op-$name

A plugin for kuberay-op. Install it beside the operator and switch it on:

    pip install kuberay-op-$name
    kuberay-op plugin test $name

Its options and rights are shown by `kuberay-op plugin doc $name`.
"""

_MANIFEST: Final = """\
# What may stand here: the reference page "Plugin manifest". Check it with: kuberay-op plugin lint $name
apiVersion: kuberay-op/$contract
kind: Plugin
name: $name
summary: Put a label on every Pod.

options:
  label:
    type: str
    default: example.com/plugin
    description: Key of the label.
  value:
    type: str
    default: $name
    description: Value of the label.

patches:
  - name: label the Pod
    match: {object: Pod}
    merge:
      metadata:
        labels:
          "$${options.label}": "$${options.value}"
$hooks
examples:  # run by: kuberay-op plugin test $name
  - name: a head Pod gets the label
    owner: {kind: RayCluster, metadata: {name: demo}}
    object: {kind: Pod, metadata: {name: demo-head}}
    gives:
      kind: Pod
      metadata: {name: demo-head, labels: {example.com/plugin: $name}}
"""

_HOOKS: Final = '''\
"""Python hooks of the plugin: for what YAML cannot say.

Each function is named like a hook and takes the arguments it needs; see the reference page "Hooks".
"""

from kuberay_op.hooks import Done, Refuse, Scope, Verdict, hookimpl


@hookimpl
async def kuberay_before_reconcile(scope: Scope) -> Verdict:
    """Refuse clusters that carry the label example.com/forbidden."""
    labels = scope.owner.get("metadata", {}).get("labels", {})
    if "example.com/forbidden" in labels:
        return Refuse("the label example.com/forbidden is not allowed here")
    return Done()
'''

_TEST: Final = '''\
"""The examples in the manifest, and whatever they cannot show."""

from pathlib import Path

import yaml

from kuberay_op.declarative.examples import run_examples
from kuberay_op.declarative.lint import lint
from kuberay_op.declarative.manifest import read_manifest

MANIFEST = Path(__file__).parent.parent / "src" / "$package" / "plugin.yaml"


def test_the_manifest_has_no_mistakes():
    assert lint(yaml.safe_load(MANIFEST.read_text())) == []


def test_the_examples_come_out_as_they_say():
    ran = run_examples(read_manifest(MANIFEST))
    assert ran
    assert [result for result in ran if result.differences] == []
'''

_TEST_HOOKS: Final = '''\
"""The Python hooks, called as the operator calls them."""

from datetime import UTC, datetime

from kuberay_op.hooks import Done, Refuse, Scope
from $package import hooks


def scope(labels):
    owner = {"kind": "RayCluster", "metadata": {"name": "demo", "labels": labels}}
    return Scope(owner=owner, now=datetime.now(UTC), gate=lambda name: False)


async def test_others_go_on():
    assert await hooks.kuberay_before_reconcile(scope({})) == Done()


async def test_forbidden_clusters_are_refused():
    verdict = await hooks.kuberay_before_reconcile(scope({"example.com/forbidden": "x"}))
    assert isinstance(verdict, Refuse)
'''


def make_package(name: str, folder: Path, *, python: bool) -> list[Path]:
    """Write the package into ``folder``; refuses a bad name and a folder that is not empty."""
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name):
        raise Misconfigured(
            f"plugin name {name!r} must be lower-case letters, digits and '-', such as cost-labels"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Misconfigured(f"{folder} exists and is not empty; name another with --folder")
    package = f"kuberay_op_{name.replace('-', '_')}"
    hooks = f"\nhooks: {package}.hooks\n" if python else ""
    files = {
        "pyproject.toml": _PYPROJECT,
        "README.md": _README,
        f"src/{package}/__init__.py": f'"""The plugin {name}."""\n',
        f"src/{package}/plugin.yaml": _MANIFEST,
        "tests/test_plugin.py": _TEST,
    }
    if python:
        files |= {f"src/{package}/hooks.py": _HOOKS, "tests/test_hooks.py": _TEST_HOOKS}
    made = []
    for relative, text in files.items():
        path = folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        filled = Template(text).substitute(name=name, package=package, contract=CONTRACT, hooks=hooks)
        path.write_text(filled, encoding="utf-8")
        made.append(path)
    return made
