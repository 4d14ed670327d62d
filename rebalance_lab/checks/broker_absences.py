"""When a controller may not count on a broker, or on one of its replicas: what asks it for another leader or ISR."""

from __future__ import annotations

import math

from rebalance_lab.checks.broker_names import broker_names
from rebalance_lab.checks.broker_registrations import registration_changes
from rebalance_lab.checks.partition_states import Place, place_of
from rebalance_lab.checks.periods import Period, periods
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import FOLLOWS, LEADS, REPLICA_ENDED, SHUTS_DOWN
from rebalance_lab.history.views import events_of, grouped, once

#: The role of a replica whose disk has failed, in a REPLICA_ENDED.
_OFFLINE = "offline"


@once
def unregistered(history: History) -> dict[int, list[Period]]:
    """Of each broker that has ever registered: when it was not registered."""
    return {
        broker: periods(((each, each.kind is Kind.DELETED) for each in its), from_us=-math.inf)
        for broker, its in _changes(history).items()
    }


@once
def absences(history: History) -> dict[int, list[Period]]:
    """Of each broker that has ever registered: when it was not registered, or had asked to shut down."""
    asked = grouped(events_of(history, SHUTS_DOWN), lambda each: each.actor)
    found = {}
    for broker, changes in _changes(history).items():
        its = [*changes, *asked.get(broker_names(history).get(broker, ""), [])]
        its.sort(key=lambda each: each.at_us)
        found[broker] = periods(((each, each.kind is not Kind.CREATED) for each in its), from_us=-math.inf)
    return found


@once
def _changes(history: History) -> dict[int, list[Event]]:
    """The creations and deletions of each registration."""
    changes = [each for each in registration_changes(history) if each[1].kind is not Kind.CHANGED]
    return {broker: [event for _, event in its] for broker, its in grouped(changes, lambda each: each[0]).items()}


def replica_absences(history: History, broker: int, place: Place) -> list[Period]:
    """When the replica of a broker could not be used, because its disk had failed: until it has a role again, or its
    broker registers anew (as Kafka's controller forgets failed disks then)."""
    its = [
        *_roles(history).get((broker_names(history).get(broker, ""), place), []),
        *(each for each in _changes(history).get(broker, []) if each.kind is Kind.CREATED),
    ]
    its.sort(key=lambda each: each.at_us)
    return periods((each, each.of("role") == _OFFLINE) for each in its)


@once
def _roles(history: History) -> dict[tuple[str, Place], list[Event]]:
    return grouped(events_of(history, LEADS, FOLLOWS, REPLICA_ENDED), lambda each: (each.actor, place_of(each)))
