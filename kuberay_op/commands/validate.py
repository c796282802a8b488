"""``kuberay-op validate``: check manifests without a cluster, all mistakes at once, with line numbers."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click
import orjson

from kuberay_op.api.manifests import Manifest, Mistake, decode, read_manifests
from kuberay_op.api.meta import GROUP
from kuberay_op.api.problems import Problem, Severity
from kuberay_op.api.validation.whole import examine
from kuberay_op.api.yamltext import YamlTextError
from kuberay_op.errors import Misconfigured
from kuberay_op.features import Gates

#: Endings of the files looked at in a folder.
SUFFIXES: Final = (".yaml", ".yml", ".json")
#: No manifest is larger; a larger file is a mistake in the command.
MAX_BYTES: Final = 64 * 1024 * 1024
#: A message is cut here: some texts in manifests are very long.
MAX_MESSAGE: Final = 400

STDIN: Final = "-"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the report."""

    file: str
    line: int
    column: int
    severity: Severity
    message: str
    kind: str = ""
    name: str = ""
    path: str = ""
    rule: str = ""

    def as_json(self) -> dict[str, Any]:
        """The entry for ``--output json``; what is not known is left out."""
        keys = ("file", "line", "column", "severity", "kind", "name", "path", "message", "rule")
        return {key: value for key in keys if (value := getattr(self, key)) != ""}


@dataclass(slots=True)
class Report:
    """What was found in all files."""

    entries: list[Entry] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)

    def count(self, severity: Severity) -> int:
        """How many entries are this bad."""
        return sum(entry.severity == severity for entry in self.entries)


@click.command()
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    required=True,
    metavar="FILE|FOLDER|-",
    help="A file, a folder with all that is below it, or - for standard input. May be repeated.",
)
@click.option(
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the print.",
)
@click.option(
    "--feature-gates",
    default="",
    metavar="A=true,B=false",
    help="Feature gates of the operator to check for.",
)
@click.option("--strict", is_flag=True, help="Count every warning as a mistake.")
def validate(filenames: tuple[str, ...], output: str, feature_gates: str, strict: bool) -> None:
    """Check manifests of RayCluster, RayJob, RayService and RayCronJob.

    Says what the API server and the operator would say, without asking either: the structure of each object,
    the rules that span several fields, and warnings about what will not do what it seems to. Files may hold
    several documents and objects of other kinds, which are skipped.

    Exit codes: 0 no mistakes, 1 mistakes (with --strict also warnings), 2 wrong use.
    """
    try:
        gates = Gates.default().with_overrides(feature_gates)
    except Misconfigured as error:
        raise click.UsageError(f"--feature-gates: {error}") from error
    for warning in gates.warnings:
        click.echo(f"warning: {warning}", err=True)
    report = Report()
    for name, path in _files(filenames):
        _check_file(_cut(name), path, gates, report)
    plain = output == "json" or "NO_COLOR" in os.environ
    click.echo(_as_json(report) if output == "json" else _as_text(report), color=False if plain else None)
    if report.count("error") or (strict and report.count("warning")):
        raise SystemExit(1)


# --- files


def _files(names: tuple[str, ...]) -> Iterator[tuple[str, Path | None]]:
    """Every file to read, with the name to show; no path for standard input."""
    for name in names:
        path = Path(name)
        if name == STDIN:
            yield "<stdin>", None
        elif path.is_dir():
            found = list(_below(path))
            if not found:
                raise click.UsageError(
                    f"the folder {name} holds no file that ends with {', '.join(SUFFIXES)}"
                )
            yield from ((str(file), file) for file in found)
        elif path.exists():
            yield name, path
        else:
            raise click.UsageError(f"there is no file or folder {name}")


def _below(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(parent, name) for name in sorted(files) if name.endswith(SUFFIXES))


def _read(path: Path | None) -> bytes:
    if path is None:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _check_file(name: str, path: Path | None, gates: Gates, report: Report) -> None:
    try:
        data = _read(path)
        if len(data) > MAX_BYTES:
            raise YamlTextError(f"the file is larger than {MAX_BYTES // 1024**2} MiB", 1, 1)
        text = decode(data)
    except YamlTextError as error:
        report.entries.append(Entry(name, error.line, error.column, "error", error.message))
        return
    except OSError as error:
        report.entries.append(Entry(name, 1, 1, "error", f"cannot be read: {error.strerror or error}"))
        return
    for item in read_manifests(text):
        if isinstance(item, Mistake):
            severity: Severity = "error" if item.fatal else "warning"
            report.entries.append(Entry(name, *item.place, severity, _cut(item.message)))
        else:
            _check_object(name, item, gates, report)


def _check_object(file: str, manifest: Manifest, gates: Gates, report: Report) -> None:
    obj = manifest.value
    api_version, kind = (obj.get("apiVersion"), obj.get("kind")) if isinstance(obj, dict) else (None, None)
    if not isinstance(api_version, str) or not isinstance(kind, str) or not kind:
        text = "is no Kubernetes object: it has no apiVersion and kind"
        report.entries.append(Entry(file, *manifest.place(()), "error", text))
        return
    if api_version.partition("/")[0] != GROUP:
        report.skipped[kind] += 1
        return
    report.checked[kind] += 1
    metadata = obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    found = [_entry(file, manifest, kind, name, problem) for problem in examine(obj, gates.enabled)]
    found.sort(key=lambda entry: (entry.line, entry.column))
    report.entries.extend(found)


def _entry(file: str, manifest: Manifest, kind: str, name: object, problem: Problem) -> Entry:
    line, column = manifest.place(problem.path)
    return Entry(
        file,
        line,
        column,
        problem.severity,
        _cut(problem.message),
        kind,
        _cut(name) if isinstance(name, str) else "",
        _cut(problem.path_text),
        problem.rule,
    )


def _cut(text: str) -> str:
    """One line of sane length, free of what could steer a terminal."""
    text = "".join(
        char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text[: MAX_MESSAGE + 1]
    )
    return f"{text[:MAX_MESSAGE]}…" if len(text) > MAX_MESSAGE else text


# --- the report


def _as_json(report: Report) -> str:
    return orjson.dumps(
        {
            "errors": report.count("error"),
            "warnings": report.count("warning"),
            "checked": dict(report.checked),
            "skipped": dict(report.skipped),
            "problems": [entry.as_json() for entry in report.entries],
        },
        option=orjson.OPT_INDENT_2,
    ).decode()


def _as_text(report: Report) -> str:
    return "\n".join([*map(_line, report.entries), _summary(report)])


def _line(entry: Entry) -> str:
    word = click.style(entry.severity, fg="red" if entry.severity == "error" else "yellow", bold=True)
    where = f"{entry.path}: " if entry.path else ""
    rule = click.style(f" [{entry.rule}]", dim=True) if entry.rule else ""
    return f"{entry.file}:{entry.line}:{entry.column}: {word}: {where}{entry.message}{rule}"


def _summary(report: Report) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(report.checked.items()))
    text = f"checked {kinds}" if kinds else "found nothing to check"
    text += f": {_number(report.count('error'), 'error')}, {_number(report.count('warning'), 'warning')}"
    if report.skipped:
        others = ", ".join(sorted(report.skipped))
        text += f"; skipped {_number(report.skipped.total(), 'object')} of other kinds ({others})"
    return text


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
