"""What is wrong with an object: one :class:`Problem` per mistake, with the path of the field.

Both layers of validation give these: the schema layer (:mod:`kuberay_op.api.schema`) and the rules that
need to see more than one field at a time.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

#: How bad it is: an error is refused or marked invalid, a warning is only worth knowing.
Severity = Literal["error", "warning"]

#: Where a field is: names and list positions from the top of the object.
Path = tuple[str | int, ...]

#: Keys that read well after a dot; others (``ray.io/cluster``) are put in brackets.
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_\-$]*")


_SHORT: Final = reprlib.Repr()
_SHORT.maxstring = 80
_SHORT.maxlong = 40


def show(value: object) -> str:
    """A value as a message shows it: as in a manifest, and never longer than a line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and value.bit_length() > 256:
        return "a number with too many digits"  # Python refuses to print the very longest
    return _SHORT.repr(value)


def one_of(words: Iterable[str]) -> str:
    """``A, B or C``."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def path_text(path: Iterable[str | int]) -> str:
    """A path as users know it: ``spec.workerGroupSpecs[0].minReplicas``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{step}]"
    return text


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in an object.

    ``value`` is what stands there now, and is None where showing it could give away a secret. ``rule`` names
    the rule that was broken (``raycluster.spec.4.3``); it is empty for the schema layer.
    """

    path: Path
    message: str
    value: object = None
    severity: Severity = "error"
    rule: str = ""

    @property
    def path_text(self) -> str:
        """The path as users know it: ``spec.workerGroupSpecs[0].minReplicas``; empty for the whole object."""
        return path_text(self.path)

    def __str__(self) -> str:
        return f"{self.path_text}: {self.message}" if self.path else self.message
