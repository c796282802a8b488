"""What a pass may do to the cluster: a list of these is a plan.

Every action is in a *lane*. Lanes are carried out in the order in which the plan first names them. The
actions of :data:`OBJECTS`, where most are, come one after the other; those of any other lane, where Pods are,
at the same time. A lane is left out when one that its actions name in ``after`` has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Manifest = Mapping[str, Any]

#: The lane of what does not say otherwise.
OBJECTS: Final = "objects"

#: Completes an object just before it is made, with what no plan may show: a fresh secret.
Seal = Callable[[Manifest], Manifest]


@dataclass(frozen=True, slots=True)
class Cause:
    """A plugin's part in an object: who, in which hook, and in which step."""

    plugin: str
    hook: str = ""
    step: str = ""
    #: What it changed, for those who want to see; None when it asked for the object.
    patch: Any = field(default=None, compare=False, repr=False)

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
    #: Deleted where it differs, and made again when it is gone, since the server does not let it be changed.
    replace: bool = False
    #: Others' finalizers that would hold such a deletion, and are taken off.
    releases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Create:
    """Make an object that is missing."""

    obj: Manifest
    reason: str
    causes: tuple[Cause, ...] = ()
    seal: Seal | None = None
    lane: str = OBJECTS
    after: tuple[str, ...] = ()
    #: If it turns out to be there already, and ours, it stays as it is.
    once: bool = False
    #: Name of what it is a part of and no use without: a multi-host replica. Empty when it stands for itself.
    whole: str = ""


@dataclass(frozen=True, slots=True)
class Update:
    """Give an object the fields it should have; ``patch`` is what differs."""

    obj: Manifest
    observed: Manifest
    patch: Manifest
    reason: str
    causes: tuple[Cause, ...] = ()
    #: The fields that were wanted before; what is no longer wanted is taken away.
    previous: Manifest = field(default_factory=dict)
    lane: str = OBJECTS
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove an object."""

    obj: Manifest
    reason: str
    causes: tuple[Cause, ...] = ()
    lane: str = OBJECTS
    after: tuple[str, ...] = ()
    #: Others' finalizers that are taken off first.
    releases: tuple[str, ...] = ()


Action = Create | Update | Delete


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an action ended."""

    action: Action
    #: The object as the server has it now.
    obj: Manifest = field(default_factory=dict)
    error: Exception | None = None
    #: Whether anything was written; not so when the server had it that way already.
    changed: bool = True


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a kind wants of its children."""

    #: Compared with what is there: made, changed, removed as needed.
    objects: list[Desired]
    #: What was decided by other means, as it is for Pods, which are counted rather than compared.
    actions: tuple[Action, ...] = ()
    #: What is in a state that only a person can mend; empty when nothing is.
    problem: str = ""
