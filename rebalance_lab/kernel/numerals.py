"""Numbers as people type them: ASCII digits only. Python's `int` and `float` also take `1_0`, `３`, ` 3` and `nan`."""

from __future__ import annotations

import re

#: More digits than any number has that this lab can use.
_MOST_DIGITS = 400

_WHOLE = re.compile(rf"[+-]?[0-9]{{1,{_MOST_DIGITS}}}")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


def whole_number(text: str) -> int:
    """Raises ValueError."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text} is not a whole number")
    return int(text)


def number(text: str) -> float:
    """A number, with or without a decimal point and an exponent. It may be too large for anything but infinity. Raises
    ValueError."""
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"{text} is not a number")
    return float(text)
