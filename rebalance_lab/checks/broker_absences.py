"""When a controller may not count on a broker, or on one of its replicas: what asks it for another leader or ISR."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from rebalance_lab.checks.broker_names import broker_names
from rebalance_lab.checks.broker_registrations import registration_changes
from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.partition_states import Place, place_of
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import FOLLOWS, LEADS, REPLICA_ENDED, SHUTS_DOWN
from rebalance_lab.history.views import events_of, grouped, once

#: The role of a replica whose disk has failed, in a REPLICA_ENDED.
_OFFLINE = "offline"


class Period(NamedTuple):
    """A time; infinite on the side where the history does not show its end."""

    begin_us: float
    end_us: float

    def overlaps(self, begin_us: float, end_us: float) -> bool:
        """Whether some of it is between two moments, given two clocks."""
        return self.begin_us <= end_us + TOLERANCE_US and self.end_us >= begin_us - TOLERANCE_US


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


@once
def absences(history: History) -> dict[int, list[Period]]:
    """Of each broker that has ever registered: when it was not registered, or had asked to shut down."""
    asked = grouped(events_of(history, SHUTS_DOWN), lambda each: each.actor)
    found = {}
    for broker, changes in grouped(registration_changes(history), lambda each: each[0]).items():
        its = [event for _, event in changes if event.kind is not Kind.CHANGED] + asked.get(
            broker_names(history).get(broker, ""), []
        )
        its.sort(key=lambda each: each.at_us)
        found[broker] = periods(((each, each.kind is not Kind.CREATED) for each in its), from_us=-math.inf)
    return found


def replica_absences(history: History, broker: int, place: Place) -> list[Period]:
    """When the replica of a broker could not be used, because its disk had failed."""
    roles = _roles(history).get((broker_names(history).get(broker, ""), place), [])
    return periods((each, each.of("role") == _OFFLINE) for each in roles)


@once
def _roles(history: History) -> dict[tuple[str, Place], list[Event]]:
    return grouped(events_of(history, LEADS, FOLLOWS, REPLICA_ENDED), lambda each: (each.actor, place_of(each)))
