"""Ending in good order: the first signal asks, the second insists.

After SIGTERM or SIGINT the manager takes no more keys, lets running passes finish, gives the lease back and
returns. A second signal ends the process at once; running passes are cut off, which they must survive
anyway.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kuberay_op.logs import get_logger

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

#: Seconds for running passes to finish. With flushing and releasing it stays below the 30 s that a Pod gets
#: before it is killed.
GRACE: Final = 20.0

_log = get_logger("shutdown")


@contextmanager
def stop_on_signals(stop: asyncio.Event) -> Iterator[None]:
    """Set ``stop`` at the first signal, leave at the second, while the context lasts."""
    loop = asyncio.get_running_loop()

    def received(number: signal.Signals) -> None:
        if stop.is_set():
            # No clean-up, no atexit: whoever sends a second signal wants the process gone.
            os._exit(128 + number)
        _log.info("shutting down; a second signal ends the process at once", signal=number.name)
        stop.set()

    for number in SIGNALS:
        loop.add_signal_handler(number, received, number)
    try:
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
