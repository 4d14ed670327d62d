"""A partition has no live leader, a replica could lead, and the controller does not elect it (liveness).

A partition has no live leader if its state znode names none, or a broker that is not registered, or if it is assigned
and has no state yet. A replica could lead if its broker is registered, has not asked to shut down and has its disk, and
if it is in the ISR, or assigned to a partition without a state. A controller that is in touch with ZooKeeper hears of
the broker that went or came, and elects within a moment (`handover.bound_us`), whichever broker was the controller
before. So a leader must stand in the state znode within that bound after the last of these conditions began. The time
counts only while the broker of the replica and the controller are in touch. Not judged are topics that are to be
deleted, for which Kafka elects nobody (`PartitionStateMachine`, Kafka 3.9.1), and replicas outside the ISR, which need
not lead.

Witness: the state that stood, or the assignment; the broker's registration; the controller's election.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from rebalance_lab.checks.broker_absences import absences, replica_absences, unregistered
from rebalance_lab.checks.broker_names import broker_names, registrations
from rebalance_lab.checks.elections import Election, elections
from rebalance_lab.checks.faults import clock_drifted
from rebalance_lab.checks.handover import bound_us
from rebalance_lab.checks.in_touch import beginnings, in_touch_throughout
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import Place, assigned, deletion_requests, stood, topic_writes
from rebalance_lab.checks.periods import ALWAYS, Period, common, joined, without
from rebalance_lab.checks.phases import closing_us
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import once
from rebalance_lab.wire.cluster import NO_LEADER


class Stands(NamedTuple):
    """What ZooKeeper says of a partition for some time: `leader`, and the brokers that may follow it. `event`: the
    write of the state, or of the assignment if there is no state."""

    event: Event
    period: Period
    leader: int
    candidates: tuple[int, ...]


class Wait(NamedTuple):
    """A time in which the replica of a broker could have been elected by the controller of an election."""

    place: Place
    broker: int
    period: Period
    election: Election

    @property
    def length_us(self) -> int:
        return int(self.period.end_us - self.period.begin_us)


def judge(history: History) -> Finding:
    """Measures: `count`, times for which a partition waited too long; `longest_us`, the longest time for which one
    waited; `partitions`."""
    found = [] if clock_drifted(history) else waits(history)
    wrong = [each for each in found if _is_too_long(history, each)]
    measures = {
        "count": len(wrong),
        "longest_us": max((each.length_us for each in found), default=0),
        "partitions": len(standing(history)),
    }
    if wrong:
        worst = max(wrong, key=lambda each: each.length_us)
        why = f"{worst.place} had no leader for {seconds(worst.length_us)}, broker {worst.broker} could have led, and "
        why += f"{worst.election.winner} controlled"
        return violated(why, _witness(history, worst), measures)
    return not_violated(history, "each partition got a leader as soon as one could lead", measures, across_layers=True)


@once
def standing(history: History) -> dict[Place, list[Stands]]:
    """What ZooKeeper says of each partition that is assigned, in the order of the times. Raises KafkaException for a
    malformed znode."""
    end_us, _ = closing_us(history)
    states = stood(history, end_us)
    found: dict[Place, list[Stands]] = {}
    for place, writes in _assignments(history, end_us).items():
        is_assigned = joined(period for _, _, period in writes)
        its = states.get(place, [])
        has_state = [Period(each.event.at_us, each.until_us) for each in its]
        found[place] = sorted(
            [
                *(
                    Stands(each.event, period, each.state.leader, tuple(each.state.isr))
                    for each, stands in zip(its, has_state, strict=True)
                    for period in common([stands], is_assigned)
                ),
                *(
                    Stands(event, period, NO_LEADER, replicas)
                    for event, replicas, assigned_for in writes
                    for period in common([assigned_for], without(has_state))
                ),
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


@once
def waits(history: History) -> list[Wait]:
    """Every time in which a replica could have been elected, and was not yet."""
    end_us, _ = closing_us(history)
    reigns = [
        (each, Period(each.created.at_us, end_us if each.ended is None else each.ended.at_us))
        for each in elections(history)
        if each.winner is not None
    ]
    found = []
    for place, its in standing(history).items():
        for broker in sorted({broker for each in its for broker in each.candidates}):
            could_lead = _could_lead(history, place, broker, its)
            found += [
                Wait(place, broker, period, election)
                for election, reign in reigns
                for period in common(could_lead, [reign])
            ]
    return found


def _could_lead(history: History, place: Place, broker: int, its: Iterable[Stands]) -> list[Period]:
    """When there was no live leader, and the replica of a broker could have been elected."""
    leaderless = [
        period
        for each in its
        if broker in each.candidates
        for period in common([each.period], unregistered(history).get(each.leader, [ALWAYS]))
    ]
    not_usable = [
        *absences(history).get(broker, [ALWAYS]),
        *replica_absences(history, broker, place),
        *deletion_requests(history).get(place.topic, []),
    ]
    return common(joined(leaderless), without(not_usable))


def _is_too_long(history: History, wait: Wait) -> bool:
    """Whether the broker and the controller have been in touch for long enough in that time."""
    limit_us = bound_us(history.trial.world)
    if wait.length_us <= limit_us:
        return False
    needed = {wait.election.winner, broker_names(history).get(wait.broker)}
    return any(
        needed <= set(in_touch_throughout(history, begin_us, begin_us + limit_us))
        for begin_us in beginnings(history, math.ceil(wait.period.begin_us), math.floor(wait.period.end_us))
        if begin_us + limit_us < wait.period.end_us
    )


def _witness(history: History, wait: Wait) -> tuple[tuple[str, int] | None, ...]:
    stands = [each for each in standing(history)[wait.place] if each.period.begin_us <= wait.period.begin_us]
    registered = [
        event
        for broker, event in registrations(history).values()
        if broker == wait.broker and event.at_us <= wait.period.begin_us
    ]
    return (
        stands[-1].event.id if stands else None,
        registered[-1].id if registered else None,
        wait.election.created.id,
    )


CHECK = Check(
    name="leaderless_partition",
    compares=(Layer.REGISTRY,),
    meaning="A partition had no live leader, a replica could lead, and the controller elected none.",
    together="Clients of the partition can neither read nor write until somebody elects a leader by hand.",
    plants=(Planted("resigns-on-reconnect", "idle-controller", settings={"keeps_reign": "true"}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=standing,
)
