"""Random streams: one for each purpose, so that a new draw in one place does not change the draws in another."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, MutableSequence
from typing import Any


class RandomStream:
    """Reproducible random bits for one (trial seed, actor, purpose), under any PYTHONHASHSEED."""

    __slots__ = ("bits",)

    def __init__(self, seed: int | str, actor: str, purpose: str) -> None:
        digest = hashlib.blake2b(f"{seed}\0{actor}\0{purpose}".encode(), digest_size=16).digest()
        #: `bits(count)`: that many random bits as a number. An attribute, for speed.
        self.bits: Callable[[int], int] = random.Random(int.from_bytes(digest, "big")).getrandbits

    def below(self, limit: int) -> int:
        """A random number in [0, limit). Raises ValueError if the limit is not positive."""
        if limit <= 0:
            raise ValueError(f"no number below {limit}")
        width = limit.bit_length()
        draw = self.bits(width)
        while draw >= limit:  # ends: each draw has a chance above one half
            draw = self.bits(width)
        return draw

    def hex(self, digits: int) -> str:
        """`digits` random hexadecimal digits in lower case."""
        return f"{self.bits(4 * digits):0{digits}x}"

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Shuffle in place (Fisher and Yates)."""
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]
