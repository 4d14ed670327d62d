"""A partition had no live leader for longer than an election takes, though one of its replicas lived (claim E7).

Whatever the cause. By the rules, because the replica is not in the ISR and unclean elections are not allowed: then the
partition waits until one of the ISR registers. Against the rules, because a controller elects nobody, which
`leaderless_partition` reports. When a partition has no live leader, and which replicas live, is said in `live_leaders`;
how long an election may take, in `leaderless_partition` (`bound_us`). The bound begins when the broker of the replica
registers, which may have to become the controller first. It counts while the broker is in touch with ZooKeeper.

The measure `longest_us` is the time without a live leader, whether replicas lived or not. It begins when ZooKeeper ends
the session of the broker that led: before that nobody can know that it is dead.

Witness: the state that stood; the registration of the replica; and the state, or the registration of a leader, that
ended the time.
"""

from __future__ import annotations

from typing import NamedTuple

from rebalance_lab.checks.broker_registrations import registrations_made
from rebalance_lab.checks.faults import clock_drifted
from rebalance_lab.checks.leaderless_partition import bound_us
from rebalance_lab.checks.live_leaders import leaderless, lived_without, standing, times_in_touch, witness
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import Place
from rebalance_lab.checks.periods import Period, common
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import EventId, Layer
from rebalance_lab.history.files import History


class Unled(NamedTuple):
    """A time in which a partition had no live leader, and the replica of a broker lived."""

    place: Place
    broker: int
    period: Period


def judge(history: History) -> Finding:
    """Measures: `count`, partitions that had no live leader for too long while a replica lived; `longest_us`, the
    longest time for which a partition had no live leader."""
    found = [] if clock_drifted(history) else _too_long(history)
    measures = {
        "count": len({each.place for each in found}),
        "longest_us": max((_length_us(each) for each in _without_leader(history)), default=0),
    }
    if found:
        worst = max(found, key=lambda each: _length_us(each.period))
        (without,) = (
            each
            for each in leaderless(history, worst.place, standing(history)[worst.place])
            if common([each], [worst.period])
        )
        lived = f"broker {worst.broker}, which has a replica, lived for {seconds(_length_us(worst.period))} of it"
        why = f"{worst.place} had no live leader for {seconds(_length_us(without))}, and {lived}"
        return violated(why, _witness(history, worst), measures)
    why = "each partition of which a replica lived had a leader as soon as an election allows"
    return not_violated(history, why, measures, across_layers=True)


def _without_leader(history: History) -> list[Period]:
    """The times in which a partition had no live leader, of all partitions."""
    return [period for place, its in standing(history).items() for period in leaderless(history, place, its)]


def _too_long(history: History) -> list[Unled]:
    limit_us = bound_us(history.trial.world, history.trial.parameters, len(standing(history)))
    found = []
    for place, its in standing(history).items():
        for broker in sorted({broker for each in its for broker in each.replicas}):
            assigned = [each for each in its if broker in each.replicas]
            found += [
                Unled(place, broker, period)
                for period in lived_without(history, place, broker, assigned)
                if any(times_in_touch(history, broker, period, limit_us))
            ]
    return found


def _length_us(period: Period) -> int:
    return int(period.end_us - period.begin_us)


def _witness(history: History, unled: Unled) -> tuple[EventId | None, ...]:
    """With what ended the time: a state, or the registration of the broker that the state names."""
    its, end_us = standing(history)[unled.place], unled.period.end_us
    ended = [each.event.id for each in its if each.period.begin_us == end_us]
    leaders = {each.leader for each in its if each.period.begin_us < end_us <= each.period.end_us}
    ended += [
        each.created.id
        for each in registrations_made(history)
        if each.stands(end_us, end_us) and each.broker in leaders
    ]
    return (*witness(history, unled.place, unled.broker, unled.period.begin_us), *ended[:1])


CHECK = Check(
    name="unavailable_partition",
    compares=(Layer.REGISTRY,),
    meaning="A partition had no live leader for longer than an election takes, though one of its replicas lived.",
    together="The replica has what the partition had, or most of it, and clients can neither read nor write.",
    statement="A partition of which a replica lives has a live leader as soon as an election allows",
    plants=(Planted("waits-for-isr", "all-replicas-down", settings={"unclean": "true"}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=standing,
)
