"""Z7b: as `z7b_decides_in_name_only`, where operations are only counted."""

from dataclasses import replace

import z7b_decides_in_name_only
from counterfeit_counted import counted

_SINGLY = z7b_decides_in_name_only.COUNTERFEIT

COUNTERFEIT = replace(
    _SINGLY,
    world="As `z7b_decides_in_name_only`; operations are only counted. They are fewer than an attempt must make.",
    false=counted(_SINGLY.false),
    honest=counted(_SINGLY.honest),
)
