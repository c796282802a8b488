"""The operator that a preview imagines: its configuration and plugins, from the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import yaml

from kuberay_op.api.defaults import with_defaults
from kuberay_op.api.manifests import Mistake, decode, read_manifests
from kuberay_op.commands.flags import effective, split
from kuberay_op.config import Config
from kuberay_op.controllers.plugins import wanted
from kuberay_op.controllers.preview import KINDS, stored
from kuberay_op.errors import Misconfigured
from kuberay_op.loader.choose import refuse_unknown
from kuberay_op.loader.discover import discover
from kuberay_op.loader.load import Plugins, load_plugins

F = TypeVar("F", bound=Callable[..., Any])

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Setting:
    """An operator that might run."""

    config: Config
    plugins: Plugins
    #: Values of secret options, which no print may show.
    secrets: tuple[str, ...] = field(default=(), repr=False)


def options(function: F) -> F:
    """The options of commands that read files."""
    return _add(function, (_FILES, *_OPERATOR, _NAMESPACE))


def operator_options(function: F) -> F:
    """The options that say what the operator is like."""
    return _add(function, _OPERATOR)


def _add(function: F, chosen: Iterable[Callable[[F], F]]) -> F:
    for option in reversed(tuple(chosen)):
        function = option(function)
    return function


_FILES: Final = click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    required=True,
    metavar="FILE|-",
    help="A file with RayClusters, RayJobs or RayCronJobs, or - for standard input. May be repeated.",
)
_NAMESPACE: Final = click.option("-n", "--namespace", default="", help="Namespace of objects that name none.")
_OPERATOR: Final = (
    click.option(
        "--plugin",
        "names",
        multiple=True,
        metavar="NAME",
        help="A plugin to switch on, or off with a - before its name. May be repeated.",
    ),
    click.option("--batch-scheduler", default="", help="Batch scheduler, as the operator has it."),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="PLUGIN.OPTION=VALUE",
        help="An option of a plugin. May be repeated.",
    ),
    click.option(
        "--plugin-folder",
        "folders",
        multiple=True,
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Folder of YAML plugins; may be repeated.",
    ),
    click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="The operator's configuration file.",
    ),
    click.option("--feature-gates", default="", help="Gates, such as RayMultiHostIndexing=false."),
)


def load(
    *,
    names: Iterable[str],
    batch_scheduler: str,
    settings: Iterable[str],
    folders: Iterable[Path],
    config: Path | None,
    feature_gates: str,
) -> Setting:
    """Put the configuration and the plugins together, as the operator does when it starts."""
    argv = [f"--feature-gates={feature_gates}"] if feature_gates else []
    argv += [f"--config={config}"] if config else []
    argv += [f"--plugin-folders={','.join(map(str, folders))}"] if folders and not config else []
    base = effective(argv, {}).config
    all_folders = [*folders, *(Path(folder) for folder in split(base.plugin_folders))]
    unique = list(dict.fromkeys(all_folders))
    found = discover(unique)
    asked = wanted(base)
    enabled = dict(asked.enabled)
    for name in names:
        plain = name.removeprefix("-")
        refuse_unknown("plugin", [plain], found)
        scheduler = found[plain].manifest().provides.batch_scheduler
        if scheduler and not name.startswith("-"):
            batch_scheduler = batch_scheduler or scheduler
        else:
            enabled[plain] = not name.startswith("-")
    given = {name: dict(values) for name, values in asked.options.items()}
    for setting in settings:
        target, _, text = setting.partition("=")
        plugin, _, option = target.partition(".")
        if not option:
            raise Misconfigured(f"--set {setting!r}: write PLUGIN.OPTION=VALUE")
        refuse_unknown("plugin", [plugin], found)
        kind = found[plugin].manifest().options.get(option)
        value = text if kind is not None and kind.type == "str" else yaml.safe_load(text)
        given.setdefault(plugin, {})[option] = value
    chosen = replace(
        asked,
        enabled=enabled,
        options=given,
        batch_scheduler=batch_scheduler or asked.batch_scheduler,
    )
    plugins = load_plugins(chosen, base.gates, folders=unique)
    secrets = tuple(
        text
        for name, manifest in plugins.chosen.manifests.items()
        for option, described in manifest.options.items()
        if described.secret and (text := str(given.get(name, {}).get(option) or described.default or ""))
    )
    return Setting(base, plugins, secrets)


def read_owners(filenames: Iterable[str], namespace: str) -> list[dict[str, Any]]:
    """The objects of our kinds in these files, completed as the API server would; others are skipped."""
    owners: list[dict[str, Any]] = []
    for name in filenames:
        for item in read_manifests(_text(name)):
            if isinstance(item, Mistake):
                if item.fatal:
                    raise Misconfigured(f"{name}:{item.place[0]}: {item.message}")
            elif isinstance(item.value, Mapping) and item.value.get("kind") in KINDS:
                owners.append(_completed(item.value, namespace))
    if not owners:
        raise Misconfigured(f"there is no {', '.join(KINDS[:-1])} or {KINDS[-1]} in {', '.join(filenames)}")
    return owners


def _text(name: str) -> str:
    try:
        return decode(sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes())
    except OSError as error:
        raise Misconfigured(f"{name}: cannot be read: {error.strerror or error}") from error


def _completed(obj: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    metadata = dict(obj.get("metadata") or {})
    if not metadata.get("name"):
        raise Misconfigured(f"a {obj.get('kind')} has no metadata.name; a plan needs one")
    metadata.setdefault("namespace", namespace or "default")
    return stored(with_defaults({**obj, "metadata": metadata}))
