"""Z7a: as `z7a_by_the_clock`, where operations are only counted."""

from dataclasses import replace

import z7a_by_the_clock
from counterfeit_counted import counted

_SINGLY = z7a_by_the_clock.COUNTERFEIT

COUNTERFEIT = replace(
    _SINGLY,
    world="As `z7a_by_the_clock`; operations are only counted, so that no read shows what a member heard.",
    false=counted(_SINGLY.false),
    honest=counted(_SINGLY.honest),
)
