"""Z10: the same member that only stops, seen by who works beside whom."""

from __future__ import annotations

from counterfeit import Counterfeit
from counterfeit_zombies import stuck, zombie

COUNTERFEIT = Counterfeit(
    claim="Z10",
    check="effect_overlap",
    world="All that a member reports after its pause is that its fetchers stop.",
    false=stuck,
    honest=zombie,
)
