"""Z10: a member that is paused past its session only stops when it wakes."""

from __future__ import annotations

from counterfeit import Counterfeit
from counterfeit_zombies import stuck, zombie

COUNTERFEIT = Counterfeit(
    claim="Z10",
    check="zombie_overlap",
    world="All that a member reports after its pause is that its fetchers stop.",
    false=stuck,
    honest=zombie,
)
