"""Z7a: as `z7a_begins_just_before_the_change`, where operations are only counted."""

from dataclasses import replace

import z7a_begins_just_before_the_change
from counterfeit_counted import counted

_SINGLY = z7a_begins_just_before_the_change.COUNTERFEIT

COUNTERFEIT = replace(
    _SINGLY,
    world="As `z7a_begins_just_before_the_change`; operations are only counted, so that no reply shows whether the "
    "member knew of the change when it began.",
    false=counted(_SINGLY.false),
    honest=counted(_SINGLY.honest),
)
