"""Objections of plugins: why a pass goes no further, or not all the way, as condition and event show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from kuberay_op.api import conditions
from kuberay_op.errors import Invalid, OperatorError, Retry
from kuberay_op.hooks.dispatch import PluginError
from kuberay_op.hooks.isolation import Quarantined
from kuberay_op.hooks.verdicts import Refuse, Ruling, Wait
from kuberay_op.plan.actions import Manifest

#: Seconds between two looks at an object that a plugin makes wait, at least.
SOONEST: Final = 1.0

#: Longest message of the condition; the server would take more, people do not.
MESSAGE_LIMIT: Final = 1000


@dataclass(frozen=True, slots=True)
class Hold:
    """One objection."""

    #: Reason of the condition and of the event.
    reason: str
    message: str
    #: When to ask again; None when the object must be changed first.
    seconds: float | None = None
    #: Whether it is a plugin's; if not, what it says stands in the condition Ready only.
    by_plugin: bool = True

    @classmethod
    def of(cls, ruling: Ruling) -> Hold:
        """A plugin's Wait or Refuse."""
        match ruling.verdict:
            case Wait(reason=text, seconds=seconds):
                wait = max(SOONEST, seconds)
                return cls(conditions.PLUGIN_WAITS, f"plugin {ruling.plugin}: {text}", wait)
            case Refuse(reason=text):
                return cls(conditions.PLUGIN_REFUSES, f"plugin {ruling.plugin}: {text}")
        raise ValueError(f"{ruling.verdict} is no objection")

    @classmethod
    def failed(cls, error: Exception, seconds: float | None = None) -> Hold:
        """A plugin's failure; ``error`` names the plugin."""
        return cls(conditions.PLUGIN_FAILED, str(error), seconds)

    @classmethod
    def lacking(cls, sentences: Sequence[str]) -> Hold:
        """APIs that plugins need and the cluster does not have."""
        return cls(conditions.API_MISSING, "; ".join(sentences))

    @staticmethod
    def again(error: PluginError, owner: Manifest) -> bool:
        """Whether a plugin is merely not asked any more, and the owner's condition says already why."""
        said = _agreement(owner) or {}
        return (
            isinstance(error.cause, Quarantined)
            and said.get("reason") == conditions.PLUGIN_FAILED
            and f"plugin {error.plugin!r}: {error.hook}: " in str(said.get("message"))
        )

    def error(self) -> OperatorError:
        """How the pass ends: it is tried again, or waits for an edit."""
        if self.seconds is None:
            return Invalid(self.message)
        return Retry(self.message, after=self.seconds)

    def known(self, owner: Manifest) -> bool:
        """Whether the owner's condition says so already."""
        said = _agreement(owner) or {}
        return (said.get("reason"), said.get("message")) == (self.reason, self.message[:MESSAGE_LIMIT])


def with_agreement(
    owner: Manifest, status: Mapping[str, Any], hold: Hold | None, now: datetime
) -> list[Mapping[str, Any]]:
    """The conditions with ours on plugins: there once a plugin has objected, true again when none does."""
    before = (owner.get("status") or {}).get("conditions") or ()
    own = [c for c in status.get("conditions", before) if c.get("type") != conditions.PLUGINS_AGREE]
    if hold is not None and not hold.by_plugin:
        hold = None
    old = _agreement(owner)
    if hold is None and old is None:
        return own
    truth = conditions.TRUE if hold is None else conditions.FALSE
    since = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if old is not None and old.get("status") == truth:
        since = str(old.get("lastTransitionTime", since))
    return [
        *own,
        {
            "type": conditions.PLUGINS_AGREE,
            "status": truth,
            "reason": conditions.ALL_AGREE if hold is None else hold.reason,
            "message": "" if hold is None else hold.message[:MESSAGE_LIMIT],
            "lastTransitionTime": since,
            "observedGeneration": owner["metadata"].get("generation", 0),
        },
    ]


def _agreement(owner: Manifest) -> Mapping[str, Any] | None:
    for condition in (owner.get("status") or {}).get("conditions") or ():
        if condition.get("type") == conditions.PLUGINS_AGREE:
            return dict(condition)
    return None
