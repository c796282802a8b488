"""Kubernetes quantities (``500m``, ``1Gi``, ``12e6``): exact sums, printed in canonical form.

The value is kept as a whole number of billionths, so nothing is ever rounded after parsing. A quantity also
remembers how it was written: a sum of ``Mi`` prints as ``Mi``, a sum of ``m`` as ``m``. The client library's
``parse_quantity`` gives only the value, which is why this module exists.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Final, Self


class Format(enum.Enum):
    """How a quantity was written, and so how it is printed."""

    DECIMAL = "DecimalSI"
    """``500m``, ``12``, ``1G``."""
    BINARY = "BinarySI"
    """``1Gi``."""
    EXPONENT = "DecimalExponent"
    """``12e6``."""


_QUANTITY: Final = re.compile(
    r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:([KMGTPE]i)|[eE]([+-]?[0-9]+)|([numkMGTPE]?))", re.ASCII
)
_DECIMAL_SUFFIXES: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_DECIMAL_BY_EXPONENT: Final = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_UNIT: Final = 10**9
#: Binary quantities stop here; decimal ones do not.
_BINARY_LIMIT: Final = (2**63 - 1) * _UNIT
#: Far beyond any real amount, and small enough that a hostile ``1e999999999`` costs nothing.
_MAX_EXPONENT: Final = 300
_MAX_LENGTH: Final = 300


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact amount and the way it is written; equal amounts may print differently."""

    nanos: int = 0
    format: Format = Format.DECIMAL

    @classmethod
    def parse(cls, value: str | int) -> Self:
        """Read a quantity as it stands in a manifest; ValueError when it is none.

        More than nine decimals are rounded away from zero: who asks for a little gets a little.
        """
        text = str(value)
        match = _QUANTITY.fullmatch(text) if len(text) <= _MAX_LENGTH else None
        if match is None or abs(int(match[4] or 0)) > _MAX_EXPONENT:
            raise ValueError(f"{text[:80]!r} is not a quantity; write it like 500m, 2 or 1.5Gi")
        sign, number, binary, exponent, suffix = match.groups()
        whole, _, decimals = number.partition(".")
        digits = int(whole + decimals)
        if binary:
            digits <<= 10 * _BINARY_SUFFIXES.index(binary)
            form, power = Format.BINARY, 0
        elif exponent:
            form, power = Format.EXPONENT, int(exponent)
        else:
            form, power = Format.DECIMAL, _DECIMAL_SUFFIXES[suffix]
        shift = power + 9 - len(decimals)
        nanos = digits * 10**shift if shift >= 0 else -(-digits // 10**-shift)
        if form is Format.BINARY:
            nanos = min(nanos, _BINARY_LIMIT)
            if 0 < nanos < _UNIT:
                form = Format.DECIMAL
        return cls(-nanos if sign == "-" else nanos, form)

    def __add__(self, other: Quantity) -> Quantity:
        """The sum, written like the left side unless that is zero."""
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __mul__(self, factor: int) -> Quantity:
        """The amount ``factor`` times, written as before."""
        return Quantity(self.nanos * factor, self.format)

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __str__(self) -> str:
        """Canonical form: no fraction, the largest suffix that needs none, at least 1024 for a binary one."""
        if not self.nanos:
            return "0"
        whole, fraction = divmod(self.nanos, _UNIT)
        if self.format is Format.BINARY and not fraction and abs(whole) >= 1024:
            return _binary(whole)
        mantissa, exponent = self.nanos, -9
        while mantissa % 1000 == 0 and (self.format is Format.EXPONENT or exponent < 18):
            mantissa //= 1000
            exponent += 3
        if self.format is Format.EXPONENT:
            return f"{mantissa}e{exponent}" if exponent else str(mantissa)
        return f"{mantissa}{_DECIMAL_BY_EXPONENT[exponent]}"


def _binary(whole: int) -> str:
    steps = 0
    while whole % 1024 == 0 and steps < len(_BINARY_SUFFIXES) - 1:
        whole //= 1024
        steps += 1
    return f"{whole}{_BINARY_SUFFIXES[steps]}"
