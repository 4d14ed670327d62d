"""Z10: the same fenced member, seen by who works beside whom."""

from __future__ import annotations

from counterfeit import Counterfeit
from counterfeit_zombies import fenced, zombie

COUNTERFEIT = Counterfeit(
    claim="Z10",
    check="effect_overlap",
    world="A member is paused past its session, believes on when it wakes, and is fenced: it does no work.",
    false=fenced,
    honest=zombie,
)
