"""Which plugins there are. Nothing is imported: manifests are read as files.

A package announces its manifest with an entry point, ``kai-scheduler = "kuberay_op_kai:plugin.yaml"`` in the
group ``kuberay_op.plugins``; a folder (a mounted ConfigMap, say) holds one manifest per ``*.yaml`` file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kuberay_op.declarative.manifest import PluginManifest, read_manifest
from kuberay_op.errors import Misconfigured

GROUP: Final = "kuberay_op.plugins"


@dataclass(frozen=True, slots=True)
class Available:
    """A plugin that could be enabled."""

    name: str
    manifest_path: Path
    #: Package and version, or the file: where a user would look.
    source: str

    def manifest(self) -> PluginManifest:
        """Read the manifest; raises Misconfigured with every mistake in it."""
        manifest = read_manifest(self.manifest_path)
        if manifest.name != self.name:
            raise Misconfigured(
                f"plugin {self.name!r} from {self.source}: its manifest says name: {manifest.name!r}; "
                "both must be the same"
            )
        return manifest


def discover(folders: Iterable[Path] = ()) -> dict[str, Available]:
    """All plugins by name, sorted. A name that comes twice is an error that says where from."""
    found: dict[str, Available] = {}
    candidates = [_from_entry_point(entry) for entry in entry_points(group=GROUP)]
    for folder in folders:
        candidates += _from_folder(folder)
    for plugin in sorted(candidates, key=lambda available: (available.name, available.source)):
        other = found.get(plugin.name)
        if other is not None:
            raise Misconfigured(
                f"plugin {plugin.name!r} is there twice: from {other.source} and from {plugin.source}; "
                "remove or rename one"
            )
        found[plugin.name] = plugin
    return found


def _from_entry_point(entry: EntryPoint) -> Available:
    package, _, file = entry.value.partition(":")
    distribution = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
    # find_spec looks without importing, as long as the package is a top-level one.
    spec = find_spec(package) if "." not in package else None
    if spec is None or not spec.submodule_search_locations or not file:
        raise Misconfigured(
            f"plugin {entry.name!r} from {distribution}: its entry point {entry.value!r} must be "
            "'package:plugin.yaml' with a top-level package"
        )
    return Available(entry.name, Path(spec.submodule_search_locations[0]) / file, distribution)


def _from_folder(folder: Path) -> list[Available]:
    if not folder.is_dir():
        raise Misconfigured(f"plugin folder {folder}: there is no such folder")
    # A mounted ConfigMap holds hidden links besides its files; they are not plugins.
    files = sorted(path for path in folder.glob("*.y*ml") if not path.name.startswith("."))
    return [Available(read_manifest(path).name, path, str(path)) for path in files]
