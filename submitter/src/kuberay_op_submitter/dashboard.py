"""The three questions that are put to a Ray dashboard over HTTP.

Straight to the address, without proxies or redirects: the token must not end up elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import quote, urlsplit

from kuberay_op_submitter.errors import Away, GiveUp

#: Seconds until an answer must be there.
TIMEOUT: Final = 10.0
#: Bytes of an answer that are read, and characters of it that are shown.
READ: Final = 1_000_000
SHOWN: Final = 500
#: How Ray says that it knows the submission id already.
KNOWN: Final = "Please use a different submission_id"
FINISHED: Final = frozenset({"STOPPED", "SUCCEEDED", "FAILED"})
HIDDEN: Final = "***"


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A dashboard by its URL, with the token it wants, and texts that must not be shown."""

    url: str
    token: str = field(default="", repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    @classmethod
    def at(cls, address: str, *, token: str = "", secrets: Iterable[str] = ()) -> Dashboard:
        """The dashboard at ``host:port`` or at a URL."""
        url = address if address.startswith(("http://", "https://")) else f"http://{address}"
        try:
            parts = urlsplit(url)
            known = bool(parts.hostname) and parts.port != 0
        except ValueError:  # a port that is no number
            known = False
        if not known:
            raise GiveUp(
                f"RAY_DASHBOARD_ADDRESS is {address!r}, which is no address; write it like host:8265"
            )
        return cls(url.rstrip("/"), token, frozenset(text for text in (token, *secrets) if text))

    @property
    def headers(self) -> dict[str, str]:
        """What every request carries."""
        return {"X-Ray-Authorization": f"Bearer {self.token}"} if self.token else {}

    def tail_url(self, job: str) -> str:
        """Where the log of a job can be followed, as a WebSocket."""
        return f"ws{self.url.removeprefix('http')}/api/jobs/{quote(job, safe='')}/logs/tail"

    def submit(self, body: Mapping[str, Any]) -> bool:
        """Hand in a job; False when it has been handed in before."""
        status, text = self._ask("POST", "/api/jobs/", json.dumps(body).encode())
        if 200 <= status < 300:
            # A page of some proxy says 200 as well; only Ray repeats the id.
            if body["submission_id"] not in (_field(text, "submission_id"), _field(text, "job_id")):
                raise Away(f"the answer of {self.url} is not one of a Ray dashboard")
            return True
        if KNOWN in text:
            return False
        raise self._refusal(status, f"the job was not accepted: {self._last_line(text)}")

    def status(self, job: str) -> str:
        """How far a job is: PENDING, RUNNING, STOPPED, SUCCEEDED or FAILED."""
        status, text = self._ask("GET", f"/api/jobs/{quote(job, safe='')}")
        if status == 404:
            raise GiveUp(f"the cluster does not know job '{job}' any more: it has been restarted")
        if status != 200:
            raise self._refusal(status, f"the job cannot be looked at: {self._last_line(text)}")
        found = _field(text, "status")
        if not isinstance(found, str):
            raise Away(f"the answer of {self.url} is not one of a Ray dashboard")
        return found

    def hide(self, text: str) -> str:
        """The text without what must not be shown."""
        for secret in sorted(self.secrets, key=len, reverse=True):  # so that no part of a longer one is left
            text = text.replace(secret, HIDDEN)
        return text

    def _ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, str]:
        parts = urlsplit(self.url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=TIMEOUT)
        headers = {**self.headers, "Content-Type": "application/json"} if body else self.headers
        try:
            connection.request(method, parts.path + path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read(READ).decode(errors="replace")
        except (OSError, HTTPException) as error:
            raise Away(
                f"{self.url} does not answer: {self.hide(str(error) or type(error).__name__)}"
            ) from None
        finally:
            connection.close()

    def _refusal(self, status: int, problem: str) -> GiveUp | Away:
        if status in (401, 403):
            return GiveUp(f"the dashboard refuses the token of RAY_AUTH_TOKEN (status {status})")
        kind = Away if status >= 500 or status == 429 else GiveUp
        return kind(f"{problem} (status {status})")

    def _last_line(self, text: str) -> str:
        """What a traceback comes to."""
        lines = [line for line in text.splitlines() if line.strip()]
        return self.hide(lines[-1].strip())[:SHOWN] if lines else "no reason was given"


def _field(text: str, name: str) -> Any:
    """A field of a JSON object; None when there is no such thing."""
    try:
        return json.loads(text)[name]
    except (ValueError, KeyError, TypeError):
        return None
