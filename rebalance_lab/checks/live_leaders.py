"""When partitions had no live leader, and which of their replicas lived meanwhile.

A partition has no live leader if its state znode names none, or a broker that is not registered or has lost the disk,
or if it is assigned and has no state yet. A replica lives if its broker is registered, has not asked to shut down and
has its disk. Topics that are to be deleted are left out: Kafka elects nobody for them (`PartitionStateMachine`, Kafka
3.9.1).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from rebalance_lab.checks.broker_absences import absences, replica_absences, unregistered
from rebalance_lab.checks.broker_names import broker_names
from rebalance_lab.checks.broker_registrations import registrations_made
from rebalance_lab.checks.in_touch import beginnings, in_touch_throughout
from rebalance_lab.checks.partition_states import Place, assigned, deletion_requests, stood, topic_writes
from rebalance_lab.checks.periods import ALWAYS, Period, common, joined, without
from rebalance_lab.checks.phases import closing_us
from rebalance_lab.history.events import Event, EventId
from rebalance_lab.history.files import History
from rebalance_lab.history.views import once
from rebalance_lab.wire.cluster import NO_LEADER


class Stands(NamedTuple):
    """What ZooKeeper says of a partition for some time: `leader`; the brokers in sync, or all replicas if there is no
    state; and all `replicas`. `event`: the write of the state, or of the assignment if there is no state."""

    event: Event
    period: Period
    leader: int
    in_sync: tuple[int, ...]
    replicas: tuple[int, ...]


@once
def standing(history: History) -> dict[Place, list[Stands]]:
    """What ZooKeeper says of each partition that is assigned, in the order of the times. Raises KafkaException for a
    malformed znode."""
    end_us, _ = closing_us(history)
    states = stood(history, end_us)
    found: dict[Place, list[Stands]] = {}
    for place, writes in _assignments(history, end_us).items():
        its = [(each, Period(each.event.at_us, each.until_us)) for each in states.get(place, [])]
        no_state = without(period for _, period in its)
        found[place] = sorted(
            [
                stands
                for event, replicas, assigned_for in writes
                for stands in (
                    *(
                        Stands(each.event, period, each.state.leader, tuple(each.state.isr), replicas)
                        for each, has_state in its
                        for period in common([has_state], [assigned_for])
                    ),
                    *(
                        Stands(event, period, NO_LEADER, replicas, replicas)
                        for period in common([assigned_for], no_state)
                    ),
                )
            ],
            key=lambda each: each.period,
        )
    return found


def _assignments(history: History, end_us: int) -> dict[Place, list[tuple[Event, tuple[int, ...], Period]]]:
    """Each write of a partition's replicas, with the time until its topic's znode was written again or deleted."""
    until_us = {
        before.id: after.at_us for writes in topic_writes(history).values() for before, after in pairwise(writes)
    }
    return {
        place: [
            (event, replicas, Period(event.at_us, min(until_us.get(event.id, end_us), end_us)))
            for event, replicas in writes
        ]
        for place, writes in assigned(history).items()
    }


def leaderless(history: History, place: Place, its: Iterable[Stands]) -> list[Period]:
    """When a partition had no live leader, of the times in which these stood."""
    found = [
        period
        for each in its
        for period in common(
            [each.period],
            [*unregistered(history).get(each.leader, [ALWAYS]), *replica_absences(history, each.leader, place)],
        )
    ]
    return common(joined(found), without(deletion_requests(history).get(place.topic, [])))


def lived_without(history: History, place: Place, broker: int, its: Iterable[Stands]) -> list[Period]:
    """When the replica of a broker lived and there was no live leader, of the times in which these stood."""
    not_usable = [*absences(history).get(broker, [ALWAYS]), *replica_absences(history, broker, place)]
    return common(leaderless(history, place, its), without(not_usable))


def times_in_touch(history: History, broker: int, period: Period, limit_us: int) -> Iterator[tuple[int, int]]:
    """The times of this length in a period, each with its beginning and end, for which a broker was in touch with
    ZooKeeper. They begin where it may have come to be in touch."""
    begin_us, end_us = math.ceil(period.begin_us), math.floor(period.end_us)
    name = broker_names(history).get(broker)
    for each in beginnings(history, begin_us, end_us):
        if each + limit_us < end_us and name in in_touch_throughout(history, each, each + limit_us):
            yield each, each + limit_us


def witness(history: History, place: Place, broker: int, begin_us: float) -> tuple[EventId | None, EventId | None]:
    """What stood of a partition at a time, and the last registration of a broker until then."""
    stands = [each for each in standing(history)[place] if each.period.begin_us <= begin_us]
    registered = [
        each.created for each in registrations_made(history) if each.broker == broker and each.created.at_us <= begin_us
    ]
    return stands[-1].event.id if stands else None, registered[-1].id if registered else None
