"""How long to wait after the n-th failure in a row."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

#: Doubling stops here; by then every cap is reached, and ``2**n`` stays a small number.
_MOST_DOUBLINGS = 40


@dataclass(frozen=True, slots=True)
class Backoff:
    """Doubling delays from ``base`` up to ``cap`` seconds.

    Up to ``jitter`` of each delay is taken off by chance, so that keys which failed together do not come
    back together. A delay is never longer than ``cap``.
    """

    base: float = 0.005
    cap: float = 1000.0
    jitter: float = 0.2

    def delay(self, failures: int, rng: Random) -> float:
        """Seconds to wait after ``failures`` failures in a row (1 is the first)."""
        doublings = min(max(failures - 1, 0), _MOST_DOUBLINGS)
        return min(self.base * 2.0**doublings, self.cap) * (1.0 - self.jitter * rng.random())
