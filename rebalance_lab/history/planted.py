"""Planted bugs: each makes a check report a violation. A trial names the one that it plants; all others are off."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class PlantedBug(StrEnum):
    """The planted bugs of one part of the lab, by name: a subclass of this, where the part is.

    A member is written as `name, meaning`. `meaning`: the part, and what it does with the bug.
    """

    meaning: str

    def __new__(cls, name: str, meaning: str) -> Self:
        bug = str.__new__(cls, name)
        bug._value_ = name
        bug.meaning = meaning
        return bug
