"""A partition has no live leader, a replica could lead, and the controller does not elect it (liveness).

When a partition has no live leader, and which replicas live, is said in `live_leaders`. A live replica could lead if it
is in the ISR, or assigned to a partition without a state; any could while unclean elections are allowed
(`unclean_elections`). A controller that is in touch with ZooKeeper hears of the broker that went or came, and elects
within a moment (`bound_us`). So a leader must stand in the state znode within that bound after the last of these
conditions began; and within twice the bound, if one controller after another gives up. The time counts only while the
broker of the replica and the controller are in touch. Replicas that are not allowed to lead need not: for how long a
partition waits for others is what `unavailable_partition` asks.

Witness: the state that stood, or the assignment; the broker's registration; the controller's election.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from rebalance_lab.checks import handover
from rebalance_lab.checks.elections import Election, elections
from rebalance_lab.checks.faults import clock_drifted
from rebalance_lab.checks.in_touch import LEAST_US, in_touch_until
from rebalance_lab.checks.live_leaders import Stands, lived_without, standing, times_in_touch, witness
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import Place
from rebalance_lab.checks.periods import Period, common
from rebalance_lab.checks.phases import closing_us
from rebalance_lab.checks.unclean_elections import unclean_allowed
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import EventId, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import once


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
def waits(history: History) -> list[Wait]:
    """Every time in which a replica could have been elected, and was not yet."""
    found = []
    for place, its in standing(history).items():
        for broker in sorted({broker for each in its for broker in (*each.in_sync, *each.replicas)}):
            could_lead = lived_without(history, place, broker, _allowed_to_lead(history, place, broker, its))
            found += [
                Wait(place, broker, period, reign)
                for reign in _reigns(history)
                for period in common(could_lead, [reign.period])
            ]
    return found


def _allowed_to_lead(history: History, place: Place, broker: int, its: Iterable[Stands]) -> Iterator[Stands]:
    """What stood of a partition while the replica of a broker might have been elected, had it lived."""
    for each in its:
        if broker in each.in_sync:
            yield each
        elif broker in each.replicas:
            for period in common([each.period], unclean_allowed(history, place.topic)):
                yield each._replace(period=period)


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


def _is_too_long(history: History, wait: Wait) -> bool:
    """Whether the broker and the controllers have been in touch for long enough in that time."""
    trial = history.trial
    limit_us = bound_us(trial.world, trial.parameters, len(standing(history)))
    limit_us *= 1 if len(wait.reign.elections) == 1 else 2
    return any(
        _in_touch(history, wait.reign, begin_us, end_us)
        for begin_us, end_us in times_in_touch(history, wait.broker, wait.period, limit_us)
    )


def _in_touch(history: History, reign: Reign, begin_us: int, end_us: int) -> bool:
    for each in reign.elections:
        from_us = max(begin_us, each.created.at_us)
        until_us = end_us if each.ended is None else min(end_us, each.ended.at_us)
        assert each.winner is not None, "others are left out"
        if from_us < until_us and (
            in_touch_until(history, each.created.session, each.winner, from_us, until_us) < until_us
        ):
            return False
    return True


def _witness(history: History, wait: Wait) -> tuple[EventId | None, ...]:
    found = witness(history, wait.place, wait.broker, wait.period.begin_us)
    return *found, wait.reign.elections[0].created.id


CHECK = Check(
    name="leaderless_partition",
    compares=(Layer.REGISTRY,),
    meaning="A partition had no live leader, a replica could lead, and the controller elected none.",
    together="Clients of the partition can neither read nor write until somebody elects a leader by hand.",
    plants=(
        Planted("resigns-on-reconnect", "idle-controller", settings={"keeps_reign": "true"}),
        Planted("waits-for-isr", "all-replicas-down", settings={"unclean": "true"}),
    ),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=standing,
)
