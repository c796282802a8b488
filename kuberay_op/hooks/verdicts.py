"""What an awaited hook may answer: go on, wait, or refuse."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kuberay_op.hooks.patches import Manifest


@dataclass(frozen=True, slots=True)
class Done:
    """Go on. Where a finalizer is released, the ``reason`` is told in an event.

    ``event`` is another name for that event than ``FinalizerReleased``; with ``warning`` it is a warning.
    """

    reason: str = ""
    event: str = ""
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Not yet: ask again after ``seconds`` (at least one), or when a child changes. The reason is shown.

    ``objects`` are children that the core must make first, such as the Job that cleans up: a plugin that
    waits for an object needs no client of its own. They stay as they were made until the owner goes. Events
    name them by their kind, or by what they are ``called``: ``backup Job`` gives ``CreatedBackupJob``.

    With ``stop_pods`` the core deletes the owner's Pods first; it counts for an owner that is being deleted.
    """

    reason: str
    seconds: float = 10.0
    objects: tuple[Manifest, ...] = ()
    called: str = ""
    stop_pods: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """Never, as the object stands: nothing is tried again before it is changed. The reason is shown."""

    reason: str


Verdict = Done | Wait | Refuse


@dataclass(frozen=True, slots=True)
class Ruling:
    """A verdict and the plugin it came from."""

    plugin: str
    verdict: Verdict


def decide(rulings: Iterable[Ruling]) -> Ruling | None:
    """The ruling that counts: a refusal before a wait, the shortest wait among several, else None.

    The shortest wait wins because asking again early costs little, and another plugin may have its own wait
    to announce by then.
    """
    chosen: Ruling | None = None
    for ruling in rulings:
        match ruling.verdict:
            case Refuse():
                return ruling
            case Wait(seconds=seconds):
                if chosen is None or (isinstance(chosen.verdict, Wait) and seconds < chosen.verdict.seconds):
                    chosen = ruling
            case Done():
                pass
    return chosen
