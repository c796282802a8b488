"""Printing for people and for programs."""

from __future__ import annotations

from typing import Any

import click


def show(value: Any, output: str) -> None:
    """Print a value as YAML or JSON."""
    if output == "json":
        import orjson  # late: most calls print text

        click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
    else:
        import yaml  # late, as above

        click.echo(yaml.safe_dump(value, sort_keys=False, default_flow_style=False), nl=False)


def table(rows: list[tuple[str, ...]], header: tuple[str, ...]) -> None:
    """Print rows in columns that line up."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    for row in [header, *rows]:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
