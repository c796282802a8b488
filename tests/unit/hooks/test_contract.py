"""Nothing is in the plugin contract that is not called, documented and exercised."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from kuberay_op import hooks
from kuberay_op.api import conditions
from kuberay_op.commands.plugin import plugin
from kuberay_op.commands.rbac import rbac
from kuberay_op.declarative.expr import FUNCTIONS
from kuberay_op.declarative.manifest import Option
from kuberay_op.declarative.plugin import VARIABLES
from kuberay_op.hooks.specs import AWAITED, BUILDING, FAMILIES, Family
from kuberay_op.hooks.typed import Hooks

ROOT = Path(__file__).parents[3]

#: Asked by another method of the facade: the scheduler's say in a Pod belongs to the patches of that Pod.
INSIDE = {"kuberay_schedule_child": "kuberay_patch_pod"}


def read(page: str) -> str:
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


def trees(*folders: str) -> Iterator[ast.AST]:
    for folder in folders:
        for path in sorted({*(ROOT / folder).rglob("*.py")} - {Path(__file__)}):
            yield ast.parse(path.read_text(encoding="utf-8"))


@cache
def called_on_hooks() -> set[str]:
    """Methods that the core calls on something named hooks."""
    return {
        node.attr
        for tree in trees("kuberay_op/controllers", "kuberay_op/loader", "kuberay_op/commands")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith("hooks")
    }


@cache
def implemented_in_tests() -> set[str]:
    """Hooks for which some test has an implementation."""
    found: set[str] = set()
    for tree in trees("tests"):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(node.name)
            elif isinstance(node, ast.keyword) and node.arg:
                found.add(node.arg)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)  # pytest.param("kuberay_patch_pod", ...)
    return found


@pytest.mark.parametrize("hook", FAMILIES)
def test_every_hook_has_a_method_and_the_core_calls_it(hook: str) -> None:
    method = INSIDE.get(hook, hook).removeprefix("kuberay_")
    assert callable(getattr(Hooks, method))
    assert method in called_on_hooks()


@pytest.mark.parametrize("hook", FAMILIES)
def test_every_hook_is_documented_and_exercised(hook: str) -> None:
    assert f"\n## {hook}\n" in read("reference/hooks.md")
    assert hook in implemented_in_tests()


def test_every_family_says_what_a_failure_means() -> None:
    for family in Family:
        assert f"| {family.value} |" in read("reference/hooks.md")
    assert set(Family) == set(FAMILIES.values())
    assert not AWAITED & BUILDING


def test_every_type_of_the_contract_is_documented() -> None:
    page = read("reference/hooks.md")
    for name in hooks.__all__:
        if isinstance(getattr(hooks, name), type):
            assert f"| `{name}` |" in page


def test_every_option_type_is_documented_and_exercised() -> None:
    types = next(field for field in Option.fields().values() if field.json == "type").choices  # type: ignore[attr-defined]  # a text
    manifest = yaml.safe_load((ROOT / "tests/unit/declarative/everything.yaml").read_text())
    assert {option["type"] for option in manifest["options"].values()} == set(types)
    assert f"One of {', '.join(f'`{name}`' for name in types)}." in read("reference/plugin-manifest.md")


def test_every_function_and_variable_is_documented_and_exercised() -> None:
    page = read("reference/plugin-manifest.md")
    tests = (ROOT / "tests/unit/declarative/test_expr.py").read_text()
    tests += (ROOT / "tests/unit/declarative/everything.yaml").read_text()
    for name in FUNCTIONS:
        assert f"| `{name}(" in page
        assert f"{name}(" in tests
    used = "\n".join(path.read_text() for path in (ROOT / "tests/unit/declarative").glob("*.*"))
    for name in VARIABLES:
        assert f"| `{name}` |" in page
        assert re.search(rf"\b{name}[.}}]|\bin {name}\b", used)


def commands() -> Iterator[tuple[str, click.Command]]:
    yield "rbac", rbac
    for name, command in plugin.commands.items():
        yield f"plugin {name}", command


@pytest.mark.parametrize(("name", "command"), list(commands()))
def test_every_command_is_documented_and_exercised(name: str, command: Any) -> None:
    assert f"`kuberay-op {name}" in read("howto/plugins.md")
    tests = (ROOT / "tests/unit/commands/test_plugin_commands.py").read_text()
    words = ", ".join(f'"{word}"' for word in name.split())
    listed = name.rsplit(maxsplit=1)[-1] in ("show", "doc", "lint", "test")  # called with `command` as well
    assert f"call({words}" in tests or listed
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    assert [option.name for option in options if not option.help and option.name != "output"] == []


@pytest.mark.parametrize(
    "reason",
    [
        conditions.PLUGINS_AGREE,
        conditions.PLUGIN_FAILED,
        conditions.PLUGIN_WAITS,
        conditions.PLUGIN_REFUSES,
        conditions.API_MISSING,
        conditions.ALL_AGREE,
    ],
)
def test_every_reason_of_the_condition_is_documented(reason: str) -> None:
    assert f"`{reason}`" in read("howto/plugins.md")
