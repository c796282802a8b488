"""Who wrote what and when, or called what at all, from the API server's own audit log.

::

    audit = AuditLog(tmp_path, users=["operator-a", "operator-b"])
    plane = own_cluster(extra_args={"kube-apiserver": audit.arguments()})
    ...
    assert leaders_in_order(audit.writes()) == ["operator-a", "operator-b"]

Each operator needs a user of its own: ``plane.cluster.issue_client_cert(user, groups)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

WRITES: Final = ("create", "update", "patch", "delete", "deletecollection")

#: What election itself writes; everything else is work.
ELECTION: Final = frozenset({"leases", "events"})

FOR_EVER: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Call:
    """One call, whatever became of it. A subresource follows its resource: ``pods/log``."""

    user: str
    verb: str
    group: str
    resource: str
    namespace: str
    code: int


@dataclass(frozen=True, slots=True)
class Write:
    """One write that the API server carried out."""

    user: str
    resource: str
    verb: str
    received: datetime
    finished: datetime


class AuditLog:
    """An audit log in ``folder`` of all writes of some users; with ``reads``, of all their calls."""

    def __init__(self, folder: Path, users: Sequence[str], *, reads: bool = False) -> None:
        self.path = folder / "audit.log"
        self._policy = folder / "audit-policy.yaml"
        verbs = {} if reads else {"verbs": list(WRITES)}
        rules = [{"level": "Metadata", "users": list(users), **verbs}, {"level": "None"}]
        policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"]}
        self._policy.write_text(yaml.safe_dump(policy | {"rules": rules}))

    def arguments(self) -> list[str]:
        """Arguments for the API server."""
        return [
            f"--audit-policy-file={self._policy}",
            f"--audit-log-path={self.path}",
            "--audit-log-mode=blocking",  # an event is in the file before its request is answered
        ]

    def writes(self) -> list[Write]:
        """All writes that were carried out so far, in the order in which they were received."""
        found = (
            Write(
                user=event["user"]["username"],
                resource=event["objectRef"]["resource"],
                verb=event["verb"],
                received=datetime.fromisoformat(event["requestReceivedTimestamp"]),
                finished=datetime.fromisoformat(event["stageTimestamp"]),
            )
            for event in self._events()
            if event["stage"] == "ResponseComplete" and event["responseStatus"]["code"] < 300
        )
        return sorted(found, key=lambda write: write.received)

    def calls(self) -> list[Call]:
        """All calls to resources so far, in the order in which they were answered."""
        return [
            Call(
                user=event["user"]["username"],
                verb=event["verb"],
                group=event["objectRef"].get("apiGroup", ""),
                resource="/".join(
                    event["objectRef"][part]
                    for part in ("resource", "subresource")
                    if part in event["objectRef"]
                ),
                namespace=event["objectRef"].get("namespace", ""),
                code=event["responseStatus"]["code"],
            )
            for event in self._events()
            if "objectRef" in event and "responseStatus" in event
        ]

    def _events(self) -> list[Any]:
        lines = self.path.read_bytes().splitlines(keepends=True) if self.path.exists() else []
        return [orjson.loads(line) for line in lines if line.endswith(b"\n")]


def leaders_in_order(writes: Sequence[Write]) -> list[str]:
    """Who led, in order; fails unless every write lies inside a term of its writer.

    A term begins when the API server receives the leader's first successful write to the lease, and ends
    when it receives the next leader's: by then everything of the old leader must have finished.
    """
    terms: list[tuple[str, datetime]] = []
    for write in writes:
        if write.resource == "leases" and (not terms or terms[-1][0] != write.user):
            terms.append((write.user, write.received))
    ends = [*(begin for _, begin in terms[1:]), FOR_EVER]
    for write in writes:
        if write.resource not in ELECTION:
            inside = (
                user == write.user and begin < write.received and write.finished < end
                for (user, begin), end in zip(terms, ends, strict=True)
            )
            assert any(inside), f"{write} is outside of its writer's terms: {terms}"
    return [user for user, _ in terms]
