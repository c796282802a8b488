"""Commands that take the operator's flags, in Go's syntax.

``click`` would read ``-health-probe-bind-address`` as ``-h`` and ``--`` away, so such a command gets its
arguments as they are, as ``argv``, and hands them to ``kuberay_op.config.resolve``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from kuberay_op.config import FLAGS, SETTINGS, Flag, Kind, Resolved, peek, resolve
from kuberay_op.config.goflags import parse


class FlagsCommand(click.Command):
    """A command whose function takes ``argv``. ``extra`` are flags beside the settings, with their help."""

    def __init__(self, *args: Any, extra: dict[Flag, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.extra = extra or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the arguments as they are; only a question for help is answered here."""
        if parse((*FLAGS, *self.extra), args).help:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        ctx.params["argv"] = tuple(args)
        return []

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """What stands behind the command's name."""
        return ["[FLAGS]"]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List all flags, made from their declarations."""
        rows = [(_usage(flag), doc) for flag, doc in self.extra.items()]
        rows += [
            (_usage(Flag(item.flag, item.kind)), item.doc.replace("`", ""))
            for item in SETTINGS
            if item.flag is not None
        ]
        with formatter.section("Flags (-x or --x; booleans only as -x or -x=false)"):
            formatter.write_dl(sorted(rows))


def _usage(flag: Flag) -> str:
    values = {Kind.BOOL: "", Kind.INT: " N", Kind.FLOAT: " N"}
    return f"--{flag.name}{values.get(flag.kind, ' TEXT')}"


def effective(argv: Sequence[str], environ: Mapping[str, str], extra: Iterable[Flag] = ()) -> Resolved:
    """The configuration that these flags, variables and files make, with the gates of installed plugins."""
    from kuberay_op.loader.gates import known_gates  # late: not needed to show help

    folders = split(peek("plugin_folders", argv, environ, _read_text))
    gates = known_gates(Path(folder) for folder in folders)
    return resolve(argv, environ, _read_text, gates=gates, extra=extra)


def split(text: str) -> list[str]:
    """The words in a list separated by commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def _read_text(path: str) -> str:
    return Path(path).read_text("utf-8")
