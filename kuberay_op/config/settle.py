"""What values mean beyond their type: limits, special values, and warnings about what does nothing.

Each rule changes the draft or notes a problem or a warning in it. What the reference accepts is never a
problem here, however odd; at most a warning.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final

from kuberay_op.config.draft import Draft
from kuberay_op.config.model import SETTINGS
from kuberay_op.logs import ENCODERS, parse_level

#: What the reference's client makes of a 0.
_DEFAULT_QPS: Final = 5.0
_DEFAULT_BURST: Final = 10

_BY_NAME: Final = {setting.name: setting for setting in SETTINGS}
_NAMESPACE: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_STACKTRACE_LEVELS: Final = ("info", "warn", "error", "panic")
_TIME_ENCODINGS: Final = ("epoch", "millis", "nanos", "iso8601", "rfc3339", "rfc3339nano")


def bind_address(text: str) -> tuple[str, int] | None:
    """Split ``host:port``; an empty host is every interface, None is no server at all (``0``).

    Raises ValueError when the text is no address.
    """
    if text == "0":
        return None
    host, colon, port = text.rpartition(":")
    if not (colon and port.isascii() and port.isdecimal() and int(port) < 65536):
        raise ValueError(f"{text!r} is no address")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError(f"{text!r} is no address")
    return host.removeprefix("[").removesuffix("]"), int(port)


def settle(draft: Draft) -> None:
    """Apply every rule."""
    for rule in _RULES:
        rule(draft)


def _addresses(draft: Draft) -> None:
    # The reference's libraries disagree on the empty address: metrics go to the default, health is off.
    defaults = {name: _BY_NAME[name].default for name in ("metrics_addr", "webhook_addr")}
    for name, when_empty in {**defaults, "probe_addr": "0"}.items():
        draft.values[name] = draft.values[name] or when_empty
        try:
            bind_address(draft.values[name])
        except ValueError:
            _problem(draft, name, "host:port, for example :8080, or 0 for none")


def _rates(draft: Draft) -> None:
    qps, burst = draft.values["qps"], draft.values["burst"]
    if math.isnan(qps):
        _problem(draft, "qps", "a number")
    elif qps < 0:
        draft.values["qps"] = math.inf
    elif qps == 0:
        draft.values["qps"] = _DEFAULT_QPS
    if burst == 0:
        draft.values["burst"] = _DEFAULT_BURST
    elif burst < 0 and draft.values["qps"] != math.inf:
        _problem(draft, "burst", "a whole number from 0 on")


def _lease(draft: Draft) -> None:
    lease, renew, retry = (
        draft.values[f"leader_election_{name}_seconds"] for name in ("lease", "renew", "retry")
    )
    if not 0 < retry < renew < lease < math.inf:
        draft.problems.append(
            f"leader-election-lease-seconds, -renew-seconds and -retry-seconds are {lease:g}, {renew:g} and "
            f"{retry:g}; allowed are falling numbers above 0, for example 15, 10 and 2"
        )


def _concurrency(draft: Draft) -> None:
    value = draft.values["reconcile_concurrency"]
    if value < 1:
        draft.values["reconcile_concurrency"] = default = _BY_NAME["reconcile_concurrency"].default
        if value < 0:
            _warning(draft, "reconcile_concurrency", f"is {value}; the default {default} is used")


def _namespaces(draft: Draft) -> None:
    if draft.sources["watch_namespaces"].kind == "default":
        return
    text: str = draft.values["watch_namespaces"]
    names = text.split(",")
    if text and "" in names:
        _warning(
            draft, "watch_namespaces", f"is {text!r} with an empty name in it: all namespaces are watched"
        )
    for name in filter(None, names):
        if not _NAMESPACE.fullmatch(name):
            blanks = "; leave out the blanks" if name.strip() != name else ""
            _warning(draft, "watch_namespaces", f"has {name!r}, which no namespace can be called{blanks}")
    draft.values["watch_namespaces"] = () if "" in names else tuple(dict.fromkeys(names))


def _encoders(draft: Draft) -> None:
    for name in ("log_stdout_encoder", "log_file_encoder"):
        value = draft.values[name] or "json"
        if value not in ENCODERS:
            # The reference looks at neither the key in the file nor, without a log file, at its encoder.
            unread = draft.sources[name].kind == "file" or (
                name == "log_file_encoder" and not draft.values["log_file"]
            )
            if not unread:
                _problem(draft, name, "json or console")
            else:
                _warning(draft, name, f"is {value!r}, which is neither json nor console; json is used")
            value = "json"
        draft.values[name] = value


def _zap(draft: Draft) -> None:
    values, sources = draft.values, draft.sources
    if values["zap_devel"]:
        for name, level in (("zap_log_level", "debug"), ("zap_stacktrace_level", "warn")):
            if sources[name].kind == "default":
                values[name] = level
    try:
        parse_level(values["zap_log_level"])
    except ValueError:
        _problem(draft, "zap_log_level", "debug, info, warn, error, panic or a whole number above 0")
    for name, allowed in (
        ("zap_stacktrace_level", _STACKTRACE_LEVELS),
        ("zap_encoder", tuple(ENCODERS)),
        ("zap_time_encoding", _TIME_ENCODINGS),
    ):
        if sources[name].kind != "default" and values[name].lower() not in allowed:
            _problem(draft, name, ", ".join(allowed))


def _deprecated(draft: Draft) -> None:
    for setting in SETTINGS:
        given = draft.sources[setting.name].kind != "default" and draft.values[setting.name] is not False
        if setting.deprecated and given:
            _warning(draft, setting.name, setting.deprecated)


def _label(draft: Draft, name: str) -> str:
    """What the user wrote: ``--burst``, ``CLUSTER_DOMAIN`` or ``config.yaml:3: burst``."""
    source = draft.sources[name]
    return f"{source.where}: {_BY_NAME[name].key}" if source.kind == "file" else source.where


def _problem(draft: Draft, name: str, allowed: str) -> None:
    draft.problems.append(f"{_label(draft, name)} is {draft.values[name]!r}; allowed is {allowed}")


def _warning(draft: Draft, name: str, says: str) -> None:
    draft.warnings.append(f"{_label(draft, name)} {says}")


_RULES: Final[tuple[Callable[[Draft], None], ...]] = (
    _addresses,
    _rates,
    _lease,
    _concurrency,
    _namespaces,
    _encoders,
    _zap,
    _deprecated,
)
