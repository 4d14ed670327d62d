"""Times in which something was so, by the events that began and ended it; what they have in common, and the rest."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.history.events import Event


class Period(NamedTuple):
    """A time; infinite on the side where the history does not show its end."""

    begin_us: float
    end_us: float

    def overlaps(self, begin_us: float, end_us: float) -> bool:
        """Whether some of it is between two moments, given two clocks."""
        return self.begin_us <= end_us + TOLERANCE_US and self.end_us >= begin_us - TOLERANCE_US


ALWAYS = Period(-math.inf, math.inf)


def periods(events: Iterable[tuple[Event, bool]], *, from_us: float = math.inf) -> list[Period]:
    """When something was so, from events in the order of their times, each with whether it is so from then on.
    `from_us`: since when it is so before the first of them; infinite if it is not."""
    found = []
    for event, is_so in events:
        if is_so:
            from_us = min(from_us, event.at_us)
        elif from_us < math.inf:
            found.append(Period(from_us, event.at_us))
            from_us = math.inf
    return found if from_us == math.inf else [*found, Period(from_us, math.inf)]


def joined(found: Iterable[Period]) -> list[Period]:
    """The same time in disjoint periods, in their order; those that touch become one."""
    out: list[Period] = []
    for each in sorted(found):
        if out and each.begin_us <= out[-1].end_us:
            out[-1] = Period(out[-1].begin_us, max(out[-1].end_us, each.end_us))
        else:
            out.append(each)
    return out


def common(some: Iterable[Period], others: Iterable[Period]) -> list[Period]:
    """The time that is in both, if it is not a single moment."""
    second = list(others)
    pairs = ((max(a.begin_us, b.begin_us), min(a.end_us, b.end_us)) for a in some for b in second)
    return joined(Period(begin_us, end_us) for begin_us, end_us in pairs if begin_us < end_us)


def without(found: Iterable[Period]) -> list[Period]:
    """The time that is in none of them."""
    out, from_us = [], -math.inf
    for each in joined(found):
        if from_us < each.begin_us:
            out.append(Period(from_us, each.begin_us))
        from_us = each.end_us
    return out if from_us == math.inf else [*out, Period(from_us, math.inf)]
