"""What a pass may do to the cluster: a list of these is a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Manifest = Mapping[str, Any]

#: Completes an object just before it is made, with what no plan may show: a fresh secret.
Seal = Callable[[Manifest], Manifest]


@dataclass(frozen=True, slots=True)
class Cause:
    """A plugin's part in an object: who, in which hook, and in which step."""

    plugin: str
    hook: str = ""
    step: str = ""

    def __str__(self) -> str:
        return f"{self.plugin} ({self.step})" if self.step else self.plugin


@dataclass(frozen=True, slots=True)
class Desired:
    """A child object that should exist."""

    obj: Manifest
    #: Why it should exist, in a few words; becomes the reason of the write.
    reason: str
    #: The plugins that asked for it or changed it.
    causes: tuple[Cause, ...] = ()
    #: Made when it is missing and never changed afterwards, as Pods are.
    once: bool = False
    #: Completes the object when it is made.
    seal: Seal | None = None


@dataclass(frozen=True, slots=True)
class Create:
    """Make an object that is missing."""

    obj: Manifest
    reason: str
    causes: tuple[Cause, ...] = ()
    seal: Seal | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """Give an object the fields it should have; ``patch`` is what differs."""

    obj: Manifest
    observed: Manifest
    patch: Manifest
    reason: str
    causes: tuple[Cause, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove an object."""

    obj: Manifest
    reason: str
    causes: tuple[Cause, ...] = ()


Action = Create | Update | Delete


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an action ended."""

    action: Action
    #: The object as the server has it now.
    obj: Manifest = field(default_factory=dict)
    error: Exception | None = None
