"""``kuberay-op config``: what the operator would run with, and whether a configuration file is right."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any, Final

import click
import yaml

from kuberay_op.commands.flags import FlagsCommand, effective
from kuberay_op.config import SETTINGS, ConfigError, Flag, Kind, Resolved, Setting, batch_scheduler
from kuberay_op.errors import Misconfigured
from kuberay_op.features import Gates
from kuberay_op.logs import redact

OUTPUTS: Final = ("text", "json", "yaml")


@click.group()
def config() -> None:
    """Show or check the operator's configuration."""


@config.command(
    cls=FlagsCommand, extra={Flag("output", Kind.TEXT): f"Form of the print: {', '.join(OUTPUTS)}."}
)
def show(argv: tuple[str, ...]) -> None:
    """Print the effective configuration and where each value comes from.

    Takes the flags of "kuberay-op run" and reads the same environment variables and configuration file, so
    it answers what the operator would run with. Secrets are not shown. Warnings go to stderr.

    Exit codes: 0 all is well (warnings or not), 1 the operator would not start.
    """
    resolved = effective(argv, os.environ, extra=[Flag("output", Kind.TEXT)])
    output = resolved.extra.get("output", "text")
    if output not in OUTPUTS:
        raise click.UsageError(f"--output is {output!r}; allowed is one of {', '.join(OUTPUTS)}")
    batch_scheduler(resolved.config)
    for warning in resolved.warnings:
        click.echo(f"warning: {warning}", err=True)
    if output == "text":
        click.echo(table(resolved))
    elif output == "json":
        click.echo(json.dumps(_report(resolved), indent=2))
    else:
        click.echo(yaml.safe_dump(_report(resolved), sort_keys=False), nl=False)


@config.command()
@click.argument("file")
@click.option("--strict", is_flag=True, help="Count every warning as a mistake.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def check(file: str, strict: bool, output: str) -> None:
    """Check a configuration file (config.ray.io/v1alpha1), all mistakes at once.

    Exit codes: 0 the operator would start with it, 1 it would not, 2 wrong use.
    """
    problems: tuple[str, ...] = ()
    try:
        resolved = effective(["--config", file, *(["--strict"] if strict else [])], {})
        warnings = resolved.warnings
        batch_scheduler(resolved.config)
    except ConfigError as error:
        problems, warnings = error.problems, error.warnings
    except Misconfigured as error:
        problems = (f"{file}: {error}",)
    if output == "json":
        click.echo(json.dumps({"file": file, "problems": problems, "warnings": warnings}, indent=2))
    else:
        for text in problems:
            click.echo(f"error: {text}")
        for text in warnings:
            click.echo(f"warning: {text}")
        if not problems:
            click.echo(f"{file}: right")
    if problems:
        raise SystemExit(1)


def _label(setting: Setting) -> str:
    """What a user calls it: the flag, else the key of the file, else the variable."""
    return f"--{setting.flag}" if setting.flag else setting.key or setting.env or setting.name


def _plain(value: Any) -> Any:
    """A value as JSON and YAML can hold it, without secrets."""
    if isinstance(value, Gates):
        return str(value)
    if isinstance(value, float) and math.isinf(value):
        return "unlimited"
    if isinstance(value, tuple | Mapping):
        return redact(value)
    return value


def _report(resolved: Resolved) -> dict[str, Any]:
    gates = resolved.config.gates
    return {
        "settings": [
            {
                "name": setting.name,
                "value": _plain(getattr(resolved.config, setting.name)),
                "source": source.kind,
                "where": source.where,
                "flag": setting.flag,
                "key": setting.key,
                "env": setting.env,
            }
            for setting in SETTINGS
            if (source := resolved.sources[setting.name])
        ],
        "featureGates": [
            {
                "name": gate.name,
                "enabled": gates.enabled(gate.name),
                "stage": gate.stage.value,
                "since": gate.since,
                "source": "flag" if gates.given(gate.name) else "default",
            }
            for gate in gates
        ],
        "warnings": list(resolved.warnings),
    }


def table(resolved: Resolved) -> str:
    """All settings and gates as text, each with its source."""
    settings = [
        (_label(setting), str(resolved.sources[setting.name]), _text(getattr(resolved.config, setting.name)))
        for setting in SETTINGS
        if setting.name != "gates"  # they have a table of their own
    ]
    gates = resolved.config.gates
    features = [
        (
            gate.name,
            f"{gate.stage.value} since {gate.since}",
            "flag --feature-gates" if gates.given(gate.name) else "default",
            _text(gates.enabled(gate.name)),
        )
        for gate in gates
    ]
    return "\n".join(
        [
            *_aligned([("SETTING", "FROM", "VALUE"), *settings]),
            "",
            *_aligned([("FEATURE GATE", "STAGE", "FROM", "VALUE"), *features]),
        ]
    )


def _text(value: Any) -> str:
    """A value on one line; what is empty shows as a dash, so that every row has its columns."""
    plain = _plain(value)
    if plain in ("", [], {}):
        return "-"
    if isinstance(plain, list) and all(isinstance(item, str) for item in plain):
        return ",".join(plain)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _aligned(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Columns as wide as their widest cell; values come last because some are very long."""
    table = list(rows)
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]) - 1)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
        for row in table
    ]
