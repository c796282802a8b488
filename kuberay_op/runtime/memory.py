"""Memory manners of a process that holds a big cache.

Python looks for garbage in cycles whenever enough objects were made, and looks at *all* objects in the end:
with ten thousand Pods cached that holds the event loop for 100 ms, and finds nothing, since JSON has no
cycles. And the C library keeps what reading the first lists needed for itself.
"""

from __future__ import annotations

import ctypes
import gc
from typing import Final

#: Objects made (less those freed) between two looks at the young ones, and how many looks at one generation
#: make one at the next. Cycles are still found, after some seconds instead of at once.
THRESHOLDS: Final = (50_000, 20, 20)


def tune() -> None:
    """Look for garbage seldom; call it at the start of the process."""
    gc.set_threshold(*THRESHOLDS)


def settle() -> None:
    """Call it when the caches are filled: look no more at what is there now, and give back what is free."""
    gc.freeze()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # only glibc has it, and only glibc needs it
        trim(0)
