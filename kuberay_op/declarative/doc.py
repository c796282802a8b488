"""The page of a plugin, made from its manifest: ``kuberay-op plugin doc``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from kuberay_op.declarative.lint import SECTIONS
from kuberay_op.declarative.manifest import PluginManifest, option_default

_TITLES = {
    "values": "Values it computes",
    "defaults": "What it fills in",
    "checks": "What it checks",
    "patches": "What it changes",
    "objects": "What it adds",
    "finalizers": "How it cleans up",
}


def page(manifest: PluginManifest) -> str:
    """Markdown: what the plugin is for, its options, what it does and what it may do."""
    return "\n".join(_lines(manifest)).rstrip() + "\n"


def _lines(manifest: PluginManifest) -> Iterator[str]:
    yield f"# {manifest.name}"
    yield ""
    yield manifest.summary
    yield ""
    if manifest.description:
        yield manifest.description.rstrip()
        yield ""
    if manifest.provides.batch_scheduler:
        yield f"Provides the batch scheduler `{manifest.provides.batch_scheduler}`."
        yield ""
    if manifest.feature_gate:
        gate = manifest.feature_gate
        state = "on" if gate.default else "off"
        yield f"Behind the feature gate `{gate.name}` ({gate.stage or 'alpha'}, {state} by default): "
        yield gate.description
        yield ""
    yield from _options(manifest)
    for section in SECTIONS:
        steps = getattr(manifest, section)
        if steps:
            yield f"## {_TITLES[section]}"
            yield ""
            yield from (f"- {step.name}" for step in steps)
            yield ""
    if manifest.hooks:
        yield f"Further hooks are in the Python module `{manifest.hooks}`."
        yield ""
    yield "## Rights"
    yield ""
    if manifest.rbac:
        yield "```yaml"
        yield _yaml([rule.raw for rule in manifest.rbac])
        yield "```"
    else:
        yield "It needs no rights of its own."
    for index, example in enumerate(manifest.examples, 1):
        yield ""
        yield f"## {example.name or f'Example {index}'}"
        yield ""
        yield "```yaml"
        yield _yaml(example.raw)
        yield "```"


def _options(manifest: PluginManifest) -> Iterator[str]:
    if not manifest.options:
        return
    yield "## Options"
    yield ""
    yield "| option | type | default | meaning |"
    yield "|---|---|---|---|"
    for name, option in manifest.options.items():
        default = "required" if option.required else f"`{_scalar(option_default(option))}`"
        choices = (
            f" One of {', '.join(f'`{choice}`' for choice in option.choices)}." if option.choices else ""
        )
        secret = " Never printed." if option.secret else ""
        yield f"| `{name}` | {option.type} | {default} | {option.description}{choices}{secret} |"
    yield ""


def _scalar(value: Any) -> str:
    return str(yaml.safe_dump(value, default_flow_style=True)).removesuffix("\n...\n").strip()


class _Plain(yaml.SafeDumper):
    """Writes what a manifest says twice by reference in full, since a page is read from anywhere."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _yaml(value: Any) -> str:
    return str(yaml.dump(value, Dumper=_Plain, sort_keys=False, default_flow_style=False)).rstrip()
