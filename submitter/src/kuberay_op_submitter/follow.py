"""Submit a job once, and follow its log to the end, through restarts of either side."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import connect

from kuberay_op_submitter.dashboard import FINISHED, TIMEOUT, Dashboard
from kuberay_op_submitter.errors import Away, GiveUp

#: Seconds between two attempts: the first pause, and the longest.
SHORTEST: Final = 0.2
LONGEST: Final = 5.0
#: Seconds until a log that ended too early is followed again.
AGAIN: Final = 1.0

T = TypeVar("T")


class Follower:
    """One job on one dashboard. ``patience`` is for how many seconds the dashboard may be away."""

    def __init__(self, dashboard: Dashboard, job: str, *, patience: float) -> None:
        self._dashboard = dashboard
        self._job = job
        self._patience = patience
        self._printed = 0
        self._seen = time.monotonic()
        self._pause = SHORTEST

    def run(self, body: Mapping[str, Any]) -> None:
        """Submit, print the log as it grows, and say how the job ended; raises ``GiveUp``."""
        if self._until_there(lambda: self._dashboard.submit(body)):
            say(f"SUCC -- Job '{self._job}' submitted successfully")
        else:
            say(f"INFO -- Job '{self._job}' has already been submitted, tailing logs.")
        while (status := self._until_there(self._follow_and_look)) not in FINISHED:
            time.sleep(AGAIN)  # the log ended before the job did: the dashboard is being closed
        say(f"{'SUCC' if status == 'SUCCEEDED' else 'INFO'} -- Job '{self._job}' ended: {status}")

    def _follow_and_look(self) -> str:
        self._follow()
        return self._dashboard.status(self._job)

    def _follow(self) -> None:
        """Print the log until the other side says that this was all; raises ``Away`` if it does not."""
        url = self._dashboard.tail_url(self._job)
        skip = self._printed  # Ray sends the log from its beginning each time
        opened: float | None = None
        try:
            with connect(
                url,
                additional_headers=self._dashboard.headers,
                open_timeout=TIMEOUT,
                close_timeout=1.0,
                max_size=None,  # a line of a log may be long
                compression=None,  # Ray's head (2.60) loses messages if it is offered: the log would be empty
                proxy=None,
            ) as socket:
                opened = time.monotonic()
                for message in socket:
                    text = message if isinstance(message, str) else message.decode(errors="replace")
                    fresh, skip = text[skip:], max(0, skip - len(text))
                    sys.stdout.write(fresh)
                    sys.stdout.flush()
                    self._printed += len(fresh)
                    if fresh:
                        self._is_there()
        except InvalidStatus as error:
            self._look_at(error.response.status_code)
        except (OSError, WebSocketException) as error:
            why = error if not isinstance(error, ConnectionClosed) else "the connection broke"
            raise Away(f"the log cannot be followed: {self._dashboard.hide(str(why))}") from None
        finally:
            if opened is not None and time.monotonic() - opened > LONGEST:
                self._is_there()  # until just now: a quiet log is no sign of trouble

    def _look_at(self, status: int) -> None:
        if status == 404:
            self._dashboard.status(self._job)  # raises if the job is not known
        if status in (401, 403):
            raise GiveUp(f"the dashboard refuses the token of RAY_AUTH_TOKEN (status {status})")
        raise Away(f"the log cannot be followed (status {status})")

    def _until_there(self, ask: Callable[[], T]) -> T:
        """The answer, however often it takes to ask; gives up when the dashboard stays away."""
        while True:
            try:
                answer = ask()
            except Away as error:
                away = time.monotonic() - self._seen
                if away >= self._patience:
                    raise GiveUp(f"{error}; gave up after {away:.0f} s") from None
                self._rest()
            else:
                self._is_there()
                return answer

    def _is_there(self) -> None:
        self._seen, self._pause = time.monotonic(), SHORTEST

    def _rest(self) -> None:
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, LONGEST)


def say(line: str) -> None:
    """A line of our own, among those of the job."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
