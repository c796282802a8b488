"""The ``kuberay-op`` command line.

Every subcommand is an entry point of the group ``kuberay_op.commands``: ours are declared in the root
``pyproject.toml``, other packages (``kuberay-op-local``, plugins) add theirs the same way. A command is
imported only when it is called or listed, so that ``kuberay-op validate`` never pays for a client.
"""

from __future__ import annotations

import difflib
import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Final

import click

from kuberay_op import __version__
from kuberay_op.errors import OperatorError

GROUP: Final = "kuberay_op.commands"

#: Exit code after Ctrl-C, as shells expect it (128 + SIGINT).
INTERRUPTED: Final = 130


class Commands(click.Group):
    """Subcommands found through entry points, loaded late."""

    def entries(self) -> dict[str, EntryPoint]:
        """All installed subcommands by name."""
        return {entry.name: entry for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name)}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name every installed subcommand."""
        return list(self.entries())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the named subcommand; None when there is no such thing."""
        entry = self.entries().get(cmd_name)
        if entry is None:
            return None
        command = entry.load()
        if not isinstance(command, click.Command):
            raise click.ClickException(
                f"the entry point {entry.value} of {cmd_name!r} is not a click command"
            )
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand; for a misspelt one, name the nearest."""
        name = args[0]
        if not name.startswith("-") and name not in self.entries():
            near = difflib.get_close_matches(name, self.entries(), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"no such command: {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kuberay-op")
def cli() -> None:
    """Run Ray on Kubernetes: the operator and the tools around it."""


def manager() -> None:
    """Entry point of the console script ``manager``, which manifests of the reference name: ``run``."""
    main(["run", *sys.argv[1:]], prog_name="manager")


def main(args: list[str] | None = None, *, prog_name: str | None = None) -> None:
    """Entry point of the console script: turns our errors into one sentence and an exit code."""
    try:
        code = cli.main(args, prog_name, standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except OperatorError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)
