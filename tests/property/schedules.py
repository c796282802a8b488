"""Random schedules, right and wrong ones, for the tests against the reference's cron library."""

from __future__ import annotations

import random
from collections.abc import Sequence


def mutated(rng: random.Random, text: str, alphabet: str) -> str:
    """The text with one character more, less or other."""
    place = rng.randrange(len(text) + 1)
    kind = rng.randrange(3)
    if kind == 0:
        return text[:place] + rng.choice(alphabet) + text[place:]
    return text[:place] + (rng.choice(alphabet) if kind == 1 else "") + text[place + 1 :]


def schedule_field(rng: random.Random, low: int, high: int, names: Sequence[str]) -> str:
    """One field, rarely a wrong one."""

    def number() -> str:
        if names and rng.random() < 0.3:
            return rng.choice(names) if rng.random() < 0.5 else rng.choice(names).upper()
        if rng.random() < 0.03:
            return rng.choice(["+3", "007", "0" * 30 + "1", "9" * 25, "-1", ""])
        return str(rng.randint(low - (rng.random() < 0.02), high + (rng.random() < 0.02)))

    def item() -> str:
        kind = rng.randrange(6)
        span = "*" if kind == 0 else "?" if kind == 1 else number()
        if kind in (4, 5):
            first = rng.randint(low, high)
            span = f"{first}-{rng.randint(first - (rng.random() < 0.1), high)}"
        if rng.random() < 0.02:
            span = rng.choice(["*-5", "*-x-y", "1-2-3", "-", "", "L", "5#2"])
        good, bad = ["/1", "/2", "/5", "/99", "/+2"], ["/0", "/x", "/1/2", "/-1"]
        step = rng.choice(bad if rng.random() < 0.05 else good)
        return span + (step if rng.random() < 0.4 else "")

    return ",".join(item() for _ in range(rng.choice([1, 1, 1, 2, 3])))


def schedule(rng: random.Random) -> str:
    """A schedule; about one in three is wrong."""
    if rng.random() < 0.1:
        words = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "@reboot"]
        spans = ["1h30m", "90s", "0", "-5m", "1.5s", "10ms", "", " 1h", "1d", "1h 2m", "1us", "3.9s"]
        return rng.choice([rng.choice(words), f"@every {rng.choice(spans)}", "@every"])
    months = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
    days = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
    bounds: list[tuple[int, int, Sequence[str]]] = [
        (0, 59, ()), (0, 23, ()), (1, 31, ()), (1, 12, months), (0, 6, days),
    ]  # fmt: skip
    fields = [schedule_field(rng, *bound) for bound in bounds]
    if rng.random() < 0.05:
        fields = fields[:-1] if rng.random() < 0.5 else [*fields, "*"]
    text = rng.choice([" "] * 20 + ["  ", "\t", "\u00a0", "\x1c"]).join(fields)
    if rng.random() < 0.1:
        text = rng.choice([" ", "\n", ""]) + text + rng.choice([" ", "\n", ","])
    return mutated(rng, text, "*?/,-0123456789 ajf") if rng.random() < 0.15 else text
