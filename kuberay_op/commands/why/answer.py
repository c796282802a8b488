"""The answer of ``kuberay-op why``, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import orjson

from kuberay_op.controllers.raycluster.why import Obstacle


@dataclass(frozen=True, slots=True)
class Log:
    """The end of a log."""

    #: Whose log it is.
    of: str
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What stands between one object and being ready."""

    kind: str
    namespace: str
    name: str
    #: The most important first; none when the object is ready.
    obstacles: Sequence[Obstacle] = ()
    #: What is wrong although nothing stands in the way.
    notes: Sequence[Obstacle] = ()
    #: What could not be looked at, and why.
    unseen: Sequence[str] = ()
    #: The end of logs that tell more.
    logs: Sequence[Log] = ()
    #: What the object is when nothing stands in the way.
    goal: str = "ready"

    @property
    def ready(self) -> bool:
        """Whether nothing stands in the way."""
        return not self.obstacles

    def as_text(self) -> str:
        """The cause on the first line; below it what else there is, each with the command to look further."""
        return "\n".join(self._lines())

    def as_json(self) -> str:
        """The same as one JSON object."""
        value = {
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "ready": self.ready,
            "obstacles": [asdict(each) for each in self.obstacles],
            "notes": [asdict(each) for each in self.notes],
            "unseen": list(self.unseen),
            "logs": [asdict(each) for each in self.logs],
        }
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()

    def _lines(self) -> Iterator[str]:
        who = f"{self.kind} {self.namespace}/{self.name}"
        if self.ready:
            yield f"{who} is {self.goal}"
        else:
            first, *others = self.obstacles
            yield f"{who} is not {self.goal}: {_sentence(first)}"
            yield from _look(first)
            if others:
                yield "also:"
            for each in others:
                yield f"- {_sentence(each)}"
                yield from _look(each)
        for each in self.notes:
            yield f"but {_sentence(each)}"
            yield from _look(each)
        if self.unseen:
            yield "could not look at:"
            yield from (f"- {each}" for each in self.unseen)
        for log in self.logs:
            yield f"the log of {log.of} ends:"
            yield from (f"    {line}" for line in log.lines)


def _sentence(obstacle: Obstacle) -> str:
    return obstacle.text if obstacle.serious else f"{obstacle.text} (this may need time only)"


def _look(obstacle: Obstacle) -> Iterator[str]:
    if obstacle.look:
        yield f"    {obstacle.look}"
