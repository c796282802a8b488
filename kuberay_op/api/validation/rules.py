"""How a rule is declared: one function, one id, one line of help.

::

    @rule("raycluster.spec.12", "autoscalerOptions.idleTimeoutSeconds is not negative.")
    def idle_timeout(cluster: ClusterSubject) -> Findings:
        seconds = cluster.spec.autoscaler_options.idle_timeout_seconds
        if seconds is not None and seconds < 0:
            yield Finding("autoscalerOptions.idleTimeoutSeconds", "must not be negative", seconds)

A rule yields nothing when all is well and one finding per mistake. Paths are relative to its subject; the
decorator makes them whole and adds the id. Ids follow the numbers of the written contract, and the catalogue
of all of them is what the reference page and the coverage test are made from.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol, TypeVar

from kuberay_op.api.problems import Path, Problem, Severity


class Finding(NamedTuple):
    """One mistake, seen from the rule's subject.

    ``path`` is a tuple, or plain names joined by dots. ``value`` stays None where it could be a secret.
    ``from_top`` is for the rare mistake outside of the subject, such as an annotation that forbids a field.
    """

    path: str | Path
    message: str
    value: object = None
    from_top: bool = False


Findings = Iterator[Finding]


class Subject(Protocol):
    """What a rule looks at."""

    @property
    def at(self) -> Path:
        """Where in the whole object it is."""
        ...


class RuleInfo(NamedTuple):
    """A line of the catalogue."""

    id: str
    summary: str
    severity: Severity


#: Every rule, in the order of declaration.
CATALOGUE: Final[dict[str, RuleInfo]] = {}

S = TypeVar("S", bound=Subject)
Check = Callable[[S], Iterator[Problem]]


def rule(
    rule_id: str, summary: str, *, severity: Severity = "error"
) -> Callable[[Callable[[S], Findings]], Check[S]]:
    """Declare a rule; ``summary`` says in one sentence what must hold."""

    def declare(function: Callable[[S], Findings]) -> Check[S]:
        if rule_id in CATALOGUE:
            raise AssertionError(f"two rules are called {rule_id}")
        CATALOGUE[rule_id] = RuleInfo(rule_id, summary, severity)

        @functools.wraps(function)
        def check(subject: S) -> Iterator[Problem]:
            for path, message, value, from_top in function(subject):
                below: Path = tuple(path.split(".")) if isinstance(path, str) else path
                yield Problem(below if from_top else (*subject.at, *below), message, value, severity, rule_id)

        return check

    return declare


def warning(rule_id: str, summary: str) -> Callable[[Callable[[S], Findings]], Check[S]]:
    """Declare a rule whose findings are worth knowing but forbid nothing."""
    return rule(rule_id, summary, severity="warning")


def run(checks: tuple[Check[S], ...], subject: S) -> Iterator[Problem]:
    """All findings of all checks, in order."""
    for check in checks:
        yield from check(subject)
