"""A partition has no live leader, a replica could lead, and the controller does not elect it (liveness).

A partition has no live leader if its state znode names none, or a broker that is not registered or has lost the disk,
or if it is assigned and has no state yet. A replica could lead if its broker is registered, has not asked to shut down
and has its disk, and if it is in the ISR, or assigned to a partition without a state. A controller that is in touch
with ZooKeeper hears of the broker that went or came, and elects within a moment (`bound_us`). So a leader must stand in
the state znode within that bound after the last of these conditions began; and within twice the bound, if one
controller after another gives up. The time counts only while the broker of the replica and the controller are in touch.
Not judged are topics that are to be deleted, for which Kafka elects nobody (`PartitionStateMachine`, Kafka 3.9.1), and
replicas outside the ISR, which need not lead.

Witness: the state that stood, or the assignment; the broker's registration; the controller's election.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from rebalance_lab.checks import handover
from rebalance_lab.checks.broker_absences import absences, replica_absences, unregistered
from rebalance_lab.checks.broker_names import broker_names
from rebalance_lab.checks.broker_registrations import registrations_made
from rebalance_lab.checks.elections import Election, elections
from rebalance_lab.checks.faults import clock_drifted
from rebalance_lab.checks.in_touch import LEAST_US, beginnings, in_touch_throughout, in_touch_until
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


class Reign(NamedTuple):
    """The elections of controllers that follow one another because each gives up; mostly one. `period`: of them all."""

    elections: tuple[Election, ...]
    period: Period

    def __str__(self) -> str:
        first, *more = self.elections
        if not more:
            return f"{first.winner} controlled"
        return f"{len(self.elections)} controllers gave up, one after another"


class Wait(NamedTuple):
    """A time in which the replica of a broker could have been elected in a reign."""

    place: Place
    broker: int
    period: Period
    reign: Reign

    @property
    def length_us(self) -> int:
        return int(self.period.end_us - self.period.begin_us)


#: How often a message to ZooKeeper or back may take the longest time in an election.
MESSAGES = 25

#: The form of the controller that sends one request at a time to ZooKeeper.
_ONE_AT_A_TIME = "0.8.2"

#: How long a controller may take for each partition that sends one request at a time to ZooKeeper, as up to 1.0.
ONE_AT_A_TIME_US = 10_000


def bound_us(world: str, parameters: Mapping[str, object], partitions: int = 0) -> int:
    """How long an election may take, of a trial with these parameters and so many partitions."""
    latency_us = parameters.get("latency_max_us") if world == "simulated" else 0
    found = handover.bound_us(world) + MESSAGES * (latency_us if isinstance(latency_us, int) else 0)
    one_at_a_time = parameters.get("form") == _ONE_AT_A_TIME
    return found + (ONE_AT_A_TIME_US * partitions if one_at_a_time else 0)


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
        why += str(worst.reign)
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
    found = []
    for place, its in standing(history).items():
        for broker in sorted({broker for each in its for broker in each.candidates}):
            could_lead = _could_lead(history, place, broker, its)
            found += [
                Wait(place, broker, period, reign)
                for reign in _reigns(history)
                for period in common(could_lead, [reign.period])
            ]
    return found


@once
def _reigns(history: History) -> list[Reign]:
    """Each reign of one controller, and each row of them of which all but the last give up."""
    end_us, _ = closing_us(history)
    single = [
        Reign((each,), Period(each.created.at_us, end_us if each.ended is None else each.ended.at_us))
        for each in elections(history)
        if each.winner is not None
    ]
    rows = single[:1]
    for before, after in pairwise(single):
        if _gives_up(before.elections[0]) and after.period.begin_us - before.period.end_us <= LEAST_US:
            last = rows.pop()
            rows.append(Reign((*last.elections, *after.elections), Period(last.period.begin_us, after.period.end_us)))
        else:
            rows.append(after)
    return [*single, *(each for each in rows if len(each.elections) > 1)]


def _gives_up(election: Election) -> bool:
    """Whether a controller has deleted its own `/controller`."""
    ended = election.ended
    if ended is None:
        return False
    return ended.session == election.created.session and ended.of("with_session") is not True


def _could_lead(history: History, place: Place, broker: int, its: Iterable[Stands]) -> list[Period]:
    """When there was no live leader, and the replica of a broker could have been elected."""
    leaderless = [
        period
        for each in its
        if broker in each.candidates
        for period in common(
            [each.period],
            [*unregistered(history).get(each.leader, [ALWAYS]), *replica_absences(history, each.leader, place)],
        )
    ]
    not_usable = [
        *absences(history).get(broker, [ALWAYS]),
        *replica_absences(history, broker, place),
        *deletion_requests(history).get(place.topic, []),
    ]
    return common(joined(leaderless), without(not_usable))


def _is_too_long(history: History, wait: Wait) -> bool:
    """Whether the broker and the controllers have been in touch for long enough in that time."""
    trial = history.trial
    limit_us = bound_us(trial.world, trial.parameters, len(standing(history)))
    limit_us *= 1 if len(wait.reign.elections) == 1 else 2
    begin_us, end_us = math.ceil(wait.period.begin_us), math.floor(wait.period.end_us)
    return wait.length_us > limit_us and any(
        _in_touch(history, wait, each, each + limit_us)
        for each in beginnings(history, begin_us, end_us)
        if each + limit_us < end_us
    )


def _in_touch(history: History, wait: Wait, begin_us: int, end_us: int) -> bool:
    if broker_names(history).get(wait.broker) not in in_touch_throughout(history, begin_us, end_us):
        return False
    for each in wait.reign.elections:
        from_us = max(begin_us, each.created.at_us)
        until_us = end_us if each.ended is None else min(end_us, each.ended.at_us)
        assert each.winner is not None, "others are left out"
        if from_us < until_us and (
            in_touch_until(history, each.created.session, each.winner, from_us, until_us) < until_us
        ):
            return False
    return True


def _witness(history: History, wait: Wait) -> tuple[tuple[str, int] | None, ...]:
    stands = [each for each in standing(history)[wait.place] if each.period.begin_us <= wait.period.begin_us]
    registered = [
        each.created
        for each in registrations_made(history)
        if each.broker == wait.broker and each.created.at_us <= wait.period.begin_us
    ]
    return (
        stands[-1].event.id if stands else None,
        registered[-1].id if registered else None,
        wait.reign.elections[0].created.id,
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
