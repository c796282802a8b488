"""``kuberay-op plugin``: what is installed, whether it is right, and how to begin one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kuberay_op.commands.output import show, table
from kuberay_op.errors import Misconfigured

if TYPE_CHECKING:
    from kuberay_op.declarative.manifest import PluginManifest

_FOLDERS = click.option(
    "--plugin-folder",
    "folders",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of YAML plugins; may be given several times.",
)


@click.group()
def plugin() -> None:
    """List, check, document, test, try and begin plugins."""


@plugin.command("list")
@_FOLDERS
@click.option("--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
def list_(folders: tuple[Path, ...], output: str) -> None:
    """List the installed plugins and whether each is on by default.

    Exit codes of all these commands: 0 all is well, 1 something is wrong and was named, 2 wrong use.
    """
    from kuberay_op.loader.choose import DEFAULT_PLUGINS
    from kuberay_op.loader.discover import discover

    found = []
    for name, available in discover(folders).items():
        manifest = available.manifest()
        found.append(
            {
                "name": name,
                "default": "on" if name in DEFAULT_PLUGINS else "off",
                "provides": manifest.provides.batch_scheduler,
                "source": available.source,
                "summary": manifest.summary,
            }
        )
    if output != "text":
        show(found, output)
    elif found:
        table([tuple(row.values()) for row in found], ("NAME", "DEFAULT", "SCHEDULER", "FROM", "SUMMARY"))
    else:
        click.echo("no plugins are installed; begin one with: kuberay-op plugin new NAME")


@plugin.command("show")
@click.argument("name")
@_FOLDERS
@click.option("--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def show_(name: str, folders: tuple[Path, ...], output: str) -> None:
    """Print the manifest of a plugin: an installed one by NAME, or a file."""
    show(_manifest(name, folders).raw, output)


@plugin.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME|FILE...")
@_FOLDERS
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def lint(names: tuple[str, ...], folders: tuple[Path, ...], strict: bool, output: str) -> None:
    """Check manifests without running them. Exit code 1 when something is wrong."""
    from kuberay_op.declarative.lint import lint as check

    found: list[dict[str, str]] = []
    for name in names:
        for problem in check(_raw(name, folders)):
            found.append(
                {
                    "plugin": name,
                    "severity": problem.severity,
                    "path": problem.path_text,
                    "message": problem.message,
                }
            )
    if output == "json":
        show(found, output)
    else:
        for row in found:
            where = f"{row['path']}: " if row["path"] else ""
            click.echo(f"{row['plugin']}: {row['severity']}: {where}{row['message']}")
    errors = [row for row in found if strict or row["severity"] == "error"]
    if not errors and output == "text":
        click.echo(f"{len(names)} checked, all right")
    sys.exit(1 if errors else 0)


@plugin.command()
@click.argument("name")
@_FOLDERS
def doc(name: str, folders: tuple[Path, ...]) -> None:
    """Print the page of a plugin as Markdown."""
    from kuberay_op.declarative.doc import page

    click.echo(page(_manifest(name, folders)), nl=False)


@plugin.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME|FILE...")
@_FOLDERS
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def test(names: tuple[str, ...], folders: tuple[Path, ...], output: str) -> None:
    """Run the examples of manifests. Exit code 1 when one fails or there are none."""
    from kuberay_op.declarative.examples import run_examples

    ran: list[dict[str, Any]] = []
    for name in names:
        for result in run_examples(_manifest(name, folders)):
            ran.append({"plugin": name, "example": result.name, "differences": list(result.differences)})
    failed = [row for row in ran if row["differences"]]
    if output == "json":
        show(ran, output)
    else:
        for row in ran:
            click.echo(f"{row['plugin']}: {row['example']}: {'FAILED' if row['differences'] else 'ok'}")
            for difference in row["differences"]:
                click.echo(f"  {difference}")
        click.echo(f"{len(ran) - len(failed)} passed, {len(failed)} failed")
    sys.exit(1 if failed or not ran else 0)


@plugin.command("try")
@click.argument("name", metavar="NAME|FILE")
@click.option(
    "-f",
    "file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with a RayCluster.",
)
@click.option("--set", "settings", multiple=True, metavar="OPTION=VALUE", help="An option; several times.")
@_FOLDERS
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def try_(name: str, file: Path, settings: tuple[str, ...], folders: tuple[Path, ...], output: str) -> None:
    """Show what a plugin would do to your object, as a diff. Nothing is written anywhere.

    Hooks that ask the outside world (before_..., after_...) are not called. Exit code 1 when the plugin
    refuses the object.
    """
    from dataclasses import asdict

    from kuberay_op.commands.plugin_try import read_owner, read_settings, try_plugin

    pairs = dict(setting.partition("=")[::2] for setting in settings)
    manifest = _manifest(name, folders)
    tried = list(try_plugin(manifest, read_settings(manifest, pairs), read_owner(file)))
    if output == "json":
        show([asdict(each) for each in tried], output)
    else:
        for each in tried:
            steps = f" ({'; '.join(each.steps)})" if each.steps else ""
            click.echo(f"{each.what}: {each.title}{steps}")
            if each.diff:
                click.echo(each.diff)
        if not tried:
            click.echo("nothing would change")
    sys.exit(1 if any(each.what == "refused" for each in tried) else 0)


@plugin.command()
@click.argument("name")
@click.option("--python", is_flag=True, help="With a Python module for hooks, besides the YAML.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=None,
    help="Where to make it; a new folder named after the plugin when not given.",
)
def new(name: str, python: bool, folder: Path | None) -> None:
    """Begin a plugin: a package with a manifest, a README and tests that pass."""
    from kuberay_op.commands.plugin_new import make_package

    made = make_package(name, folder or Path(name), python=python)
    for path in made:
        click.echo(f"made {path}")
    click.echo(f"next: pip install -e {folder or name} && kuberay-op plugin test {name}")


def _raw(name: str, folders: tuple[Path, ...]) -> Any:
    """The YAML of a plugin given by name or as a file."""
    import yaml

    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise click.UsageError(f"there is no file {name}")
    else:
        path = _available(name, folders)
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Misconfigured(f"{name}: cannot be read: {error}") from error


def _manifest(name: str, folders: tuple[Path, ...]) -> PluginManifest:
    from kuberay_op.declarative.manifest import parse_manifest

    return parse_manifest(_raw(name, folders), name)


def _available(name: str, folders: tuple[Path, ...]) -> Path:
    from kuberay_op.loader.choose import refuse_unknown
    from kuberay_op.loader.discover import discover

    known = discover(folders)
    refuse_unknown("plugin", [name], known)
    return known[name].manifest_path
