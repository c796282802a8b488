"""From a command line, an environment and a file to the one effective ``Config``.

The first of these that gives a value decides: flag, environment variable, configuration file, default. With
a configuration file the flags that have a key in it do not count at all, given or not; only for the log
encoders they do, since there the reference heeds the flags and not the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from kuberay_op.config import environment, file, goflags
from kuberay_op.config.draft import Draft, Source
from kuberay_op.config.model import SETTINGS, Config
from kuberay_op.config.settings import Kind, Setting
from kuberay_op.config.settle import settle
from kuberay_op.errors import Misconfigured
from kuberay_op.features import BOOLEANS, Gates

#: The settings' flags.
FLAGS: Final = tuple(goflags.Flag(item.flag, item.kind) for item in SETTINGS if item.flag is not None)


class ConfigError(Misconfigured):
    """The configuration has mistakes; ``problems`` has a sentence for each, ``warnings`` the rest."""

    def __init__(self, problems: Sequence[str], warnings: Sequence[str] = ()) -> None:
        self.problems = tuple(problems)
        self.warnings = tuple(warnings)
        many = f"the configuration has {len(problems)} mistakes:\n  " + "\n  ".join(problems)
        super().__init__(problems[0] if len(problems) == 1 else many)


@dataclass(frozen=True, slots=True)
class Resolved:
    """The effective configuration, where each value came from, and what to warn about."""

    config: Config
    #: By field of ``Config``.
    sources: Mapping[str, Source]
    warnings: tuple[str, ...]
    #: Values of the flags that are no settings, as far as they were given.
    extra: Mapping[str, Any]


def resolve(
    argv: Sequence[str],
    environ: Mapping[str, str],
    read_file: Callable[[str], str],
    *,
    gates: Gates | None = None,
    extra: Iterable[goflags.Flag] = (),
) -> Resolved:
    """Make the effective configuration. Raises ``ConfigError`` with all mistakes at once.

    ``gates`` are the known feature gates in their default states, those of plugins included; ``extra`` are
    flags of the calling command that are no settings.
    """
    more = tuple(extra)
    parsed = goflags.parse((*FLAGS, *more), argv)
    draft = Draft(problems=list(parsed.problems))
    if parsed.rest:
        draft.warnings.append(_leftover(argv, parsed))
    path = parsed.values.get("config", "")
    given = _read(path, read_file) if path else None
    if given is not None:
        draft.problems += given.problems
        draft.warnings += given.warnings
    for setting in SETTINGS:
        _choose(draft, setting, parsed, environ, given)
    _set_gates(draft, gates or Gates.default())
    settle(draft)
    if draft.values["strict"]:
        draft.problems += draft.warnings
        draft.warnings.clear()
    if draft.problems:
        raise ConfigError(draft.problems, draft.warnings)
    return Resolved(
        config=Config(**draft.values),
        sources=MappingProxyType(draft.sources),
        warnings=tuple(draft.warnings),
        extra={flag.name: parsed.values[flag.name] for flag in more if flag.name in parsed.values},
    )


def peek(name: str, argv: Sequence[str], environ: Mapping[str, str], read_file: Callable[[str], str]) -> Any:
    """The value of one setting, mistakes aside: for what must be known before ``resolve`` can be called."""
    parsed = goflags.parse(FLAGS, argv)
    path = parsed.values.get("config", "")
    setting = next(item for item in SETTINGS if item.name == name)
    draft = Draft()
    _choose(draft, setting, parsed, environ, _read(path, read_file) if path else None)
    return draft.values[name]


def _read(path: str, read_file: Callable[[str], str]) -> file.FileSettings:
    try:
        return file.read(read_file(path), path)
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeDecodeError:
        reason = "it is no UTF-8 text"
    return file.FileSettings(problems=[f"the configuration file {path!r} cannot be read: {reason}"])


def _choose(
    draft: Draft,
    setting: Setting,
    parsed: goflags.Parsed,
    environ: Mapping[str, str],
    given: file.FileSettings | None,
) -> None:
    """Take the value from the first source that has one, and say when another is passed over."""
    candidates: list[tuple[Any, Source]] = []
    if setting.flag is not None and setting.flag in parsed.values:
        value = parsed.values[setting.flag]
        if given is None or setting.key is None or setting.flag_over_file:
            candidates.append((value, Source("flag", f"--{setting.flag}")))
        else:
            draft.warnings.append(
                f"--{setting.flag} is ignored beside --config; set {setting.key} in the file"
            )
    value, warning = environment.read(setting, environ)
    if warning is not None:
        draft.warnings.append(warning)
    if value is not None:
        candidates.append((value, Source("env", setting.env or "")))
    if given is not None and setting.name in given.values:
        candidates.append((given.values[setting.name], Source("file", given.places[setting.name])))
    if len(candidates) > 1 and candidates[0][0] != candidates[1][0]:
        (_, winner), (_, loser), *_ = candidates
        draft.warnings.append(f"{loser.where} is overruled by {winner.where}, which says otherwise")
    draft.values[setting.name], draft.sources[setting.name] = (
        candidates[0] if candidates else (setting.default, Source())
    )


def _set_gates(draft: Draft, gates: Gates) -> None:
    if draft.sources["gates"].kind != "default":
        try:
            gates = gates.with_overrides(draft.values["gates"])
        except Misconfigured as error:
            draft.problems.append(f"--feature-gates: {error}")
        draft.warnings += gates.warnings
    draft.values["gates"] = gates


def _leftover(argv: Sequence[str], parsed: goflags.Parsed) -> str:
    """What to say about arguments after the flags, which the reference ignores without a word."""
    first = parsed.rest[0]
    before = argv[len(argv) - len(parsed.rest) - 1] if len(argv) > len(parsed.rest) else ""
    name = before.lstrip("-")
    if first in BOOLEANS and any(flag.name == name and flag.kind is Kind.BOOL for flag in FLAGS):
        return (
            f"{first!r} and all arguments after it are ignored; write -{name}={first} to give -{name} a value"
        )
    return f"{first!r} is no flag; it and all arguments after it are ignored"
