"""What can go wrong. The question each answers is: try again, or not?"""

from __future__ import annotations


class GiveUp(Exception):
    """Trying again would not help. Its text is one sentence for people, without secrets."""


class Away(Exception):
    """The dashboard cannot be reached, or is not well; it may be in a moment."""
