"""The steps of a declarative plugin, compiled: match, conditions, loops, and what they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kuberay_op import logs
from kuberay_op.declarative.expr import Expression, Failed, Variables
from kuberay_op.declarative.manifest import Match, Step
from kuberay_op.declarative.template import Budget, Template
from kuberay_op.errors import OperatorError

log = logs.get_logger("plugins")

#: Rounds of one loop.
MOST_ROUNDS: Final = 100


class StepFailed(OperatorError):
    """A step could not be done; names the step."""


@dataclass(frozen=True, slots=True)
class Matching:
    """The ``match`` of a step, read once: a view reads its fields anew each time."""

    owner: tuple[str, ...] = ()
    object: tuple[str, ...] = ()
    role: tuple[str, ...] = ()

    @classmethod
    def of(cls, match: Match) -> Matching:
        """From the manifest."""
        return cls(tuple(match.owner), tuple(match.object), tuple(match.role))


@dataclass(frozen=True, slots=True)
class Subject:
    """What a step is about: the owner and, when there is one, an object and its role."""

    owner: Mapping[str, Any]
    object: Mapping[str, Any] | None = None
    role: str = ""

    def matches(self, match: Matching) -> bool:
        """Whether everything that ``match`` names fits."""
        if match.owner and self.owner.get("kind") not in match.owner:
            return False
        if match.object and (self.object is None or self.object.get("kind") not in match.object):
            return False
        return not match.role or self.role in match.role


class CompiledStep:
    """A named step with its conditions and, where it has one, its loop."""

    def __init__(self, step: Step, *, loop: str = "", makes: Any = None) -> None:
        self.name = step.name
        self._match = Matching.of(step.match)
        self._when = [Expression(text) for text in step.when]
        self._loop = Expression(loop) if loop else None
        self._makes = Template(makes)
        #: Names that it gives to values, when that is what it does.
        self.makes_names: tuple[str, ...] = tuple(makes) if isinstance(makes, Mapping) else ()

    @property
    def loops(self) -> bool:
        """Whether it is done once for each item of a list."""
        return self._loop is not None

    @property
    def expressions(self) -> list[Expression]:
        """Every expression in it."""
        loop = [] if self._loop is None else [self._loop]
        return [*self._when, *loop, *self._makes.expressions]

    def applies(self, subject: Subject, variables: Variables, budget: Budget) -> bool:
        """Whether it matches and all its conditions hold; a skip is logged with the one that did not."""
        if not subject.matches(self._match):
            return False
        for condition in self._when:
            try:
                holds = budget.evaluate(condition, variables)
            except Failed as error:
                raise StepFailed(f"step {self.name!r}: when: {error}") from None
            if not holds:
                log.debug("step skipped", step=self.name, condition=condition.text)
                return False
        return True

    def results(self, subject: Subject, variables: Variables, budget: Budget) -> Iterator[Any]:
        """What the step makes: once, or once per item of its loop; nothing when it does not apply."""
        rounds: Sequence[Variables] = [variables]
        try:
            if self._loop is not None:
                if not subject.matches(self._match):
                    return
                found = self._items(variables, budget)
                rounds = [{**variables, "item": item, "index": index} for index, item in enumerate(found)]
            for bound in rounds:
                if self.applies(subject, bound, budget):
                    yield self._makes(bound, budget)
        except Failed as error:
            raise StepFailed(f"step {self.name!r}: {error}") from None

    def _items(self, variables: Variables, budget: Budget) -> Sequence[Any]:
        assert self._loop is not None  # noqa: S101 (for the type checker; the caller looked)
        found = budget.evaluate(self._loop, variables)
        if found is None:
            return ()
        if isinstance(found, Mapping):
            found = [{"key": key, "value": value} for key, value in found.items()]
        if not isinstance(found, Sequence) or isinstance(found, str):
            raise Failed(f"loop: {self._loop.text}: must give a list or a mapping")
        if len(found) > MOST_ROUNDS:
            raise Failed(f"loop: {self._loop.text}: {len(found)} rounds; {MOST_ROUNDS} are allowed")
        return found
