"""A controller elected a leader, or left a replica out of an ISR, without cause.

A leader changes the ISR within its leader epoch; whoever raises a partition's leader epoch is a controller
(`PartitionStateMachine` and `ReplicaStateMachine`, Kafka 3.9.1). Each election interrupts the partition's clients, so a
controller elects only

- if there is no leader, or it is gone: its broker is not registered, has asked to shut down, or has lost the disk;
- to have the first of the assignment lead, which is in sync (whether anybody has asked for that is not judged);
- if the partition is being reassigned.

It takes a replica out of the ISR only if that one is gone, or the partition is being reassigned, and leaves out of the
first ISR of a partition only what is gone. The absence must be news to the controller: the broker is still gone at the
controller's last listing of `/brokers/ids`, or went after the listing before that. If listings are not recorded, any
earlier absence counts. Not judged are topics that are being deleted, whose ISRs Kafka shrinks first, and a controller
whose last write of the state was not answered: it may not know that it was done, and elects again.

Witness: the last state that a controller has written before, or the assignment of a partition that had none, and the
election.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from rebalance_lab.checks.broker_absences import absences, replica_absences
from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import (
    Place,
    assigned,
    deletion_requests,
    lives,
    replicas_at,
)
from rebalance_lab.checks.periods import Period, periods
from rebalance_lab.checks.phases import before_closing
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import actor_by_session, events_of, once
from rebalance_lab.wire.cluster import NO_LEADER, LeaderIsrAndControllerEpoch, read_assignment, read_reassignment
from rebalance_lab.wire.paths import BROKER_IDS, REASSIGNMENT, partition_of_state


class Raised(NamedTuple):
    """A leader epoch that was raised. `former`: the write of the epoch before; `before`, `after`: the states around the
    change."""

    partition: Place
    former: Event
    event: Event
    before: LeaderIsrAndControllerEpoch
    after: LeaderIsrAndControllerEpoch


def judge(history: History) -> Finding:
    """Measures: `count`, elections and changes of ISRs for nothing; `raised`, leader epochs that were raised."""
    every = raised(history)
    wrong: list[tuple[str, tuple[EventId, ...]]] = [
        (f"{each.partition}: {why}", (each.former.id, each.event.id))
        for each in every
        for why in [_needless(history, each)]
        if why is not None
    ]
    wrong += _left_out(history)
    measures = {"count": len(wrong), "raised": len(every)}
    if wrong:
        why, witness = wrong[0]
        return violated(why, witness, measures)
    why = "no replica was left out for nothing"
    if every:
        why += f", and something had happened before each of {len(every)} elections that asks for it"
    return not_violated(history, why, measures, across_layers=True)


@once
def raised(history: History) -> list[Raised]:
    """Those of the trial that are judged."""
    found = []
    for place, states in lives(history):
        former = states[0][0]
        for (_, before), (event, after) in pairwise(states):
            if after.leader_epoch <= before.leader_epoch:
                continue
            each = Raised(place, former, event, before, after)
            if before_closing(history, event) and not _is_deleted(history, each) and not _may_repeat(history, each):
                found.append(each)
            former = event
    return found


def _needless(history: History, each: Raised) -> str | None:
    """What was done for nothing; None if all of it had a cause."""
    if _is_reassigned(history, each):
        return None
    leader, isr = each.before.leader, each.before.isr
    dropped = [broker for broker in isr if broker not in each.after.isr]
    for broker in dropped:
        if not _gone(history, each.partition, each.event, broker):
            return f"broker {broker} is taken out of the ISR {list(isr)}, {_WAS_THERE}"
    stays = leader == each.after.leader
    if (stays and dropped) or leader == NO_LEADER or _is_preferred(history, each):
        return None
    if _gone(history, each.partition, each.event, leader):
        return None
    did = f"leader {leader} is elected again" if stays else f"broker {each.after.leader} replaces leader {leader}"
    return f"{did}, {_WAS_THERE}"


_WAS_THERE = "which was registered all the time, and had not asked to shut down"


class Born(NamedTuple):
    """The first state of a partition, and the write of its assignment."""

    partition: Place
    assignment: Event
    event: Event
    state: LeaderIsrAndControllerEpoch


@once
def born(history: History) -> list[Born]:
    """Those of the trial that are judged."""
    found = []
    for place, states in lives(history):
        event, state = states[0]
        written = [write for write, _ in assigned(history).get(place, ()) if (write.zxid or 0) <= (event.zxid or 0)]
        if event.kind is Kind.CREATED and written and before_closing(history, event):
            found.append(Born(place, written[-1], event, state))
    return found


def _left_out(history: History) -> Iterator[tuple[str, tuple[EventId, ...]]]:
    """Replicas that the first state of a partition does not have in its ISR."""
    for place, assignment, event, state in born(history):
        for broker in replicas_at(history, place, event):
            if broker not in state.isr and not _gone(history, place, event, broker):
                why = f"broker {broker} is left out of the first ISR {list(state.isr)}, {_WAS_THERE}"
                yield f"{place}: {why}", (assignment.id, event.id)


def _gone(history: History, place: Place, event: Event, broker: int) -> bool:
    """Whether a broker, or its replica, is or was gone at the write of a state, and that is news to the controller."""
    known = absences(history).get(broker)
    if known is None:
        return True
    last_us, before_us = _looks_before(history, event)
    slack_us = 0 if history.trial.world == "simulated" else TOLERANCE_US
    return any(
        one.begin_us <= event.at_us + slack_us
        and (one.end_us >= last_us - slack_us or one.begin_us >= before_us - slack_us)
        for one in [*known, *replica_absences(history, broker, place)]
    )


def _is_preferred(history: History, each: Raised) -> bool:
    replicas = replicas_at(history, each.partition, each.event)
    first = each.after.leader
    return replicas[:1] == (first,) and first in each.before.isr and first != each.before.leader


# -- what the controller knows ------------------------------------------------------------------


class _Look(NamedTuple):
    """A request to list `/brokers/ids`. `seen_us`: up to when its answer has all registrations: a server that lags may
    answer with less than there was when it was asked."""

    asked_us: float
    seen_us: float


def _looks_before(history: History, event: Event) -> tuple[float, float]:
    """Up to when the writer of a state knew who is registered, from its last look before it and from the look before
    that. A new controller has looked once. If its requests are not recorded, at the trial's beginning."""
    its = [each.seen_us for each in _looks(history).get(event.session, []) if each.asked_us <= event.at_us]
    if not its:
        return -math.inf, -math.inf
    return its[-1], its[-2] if len(its) > 1 else math.inf


@once
def _looks(history: History) -> dict[str | None, list[_Look]]:
    """Of each session."""
    asked = [each for each in events_of(history, Kind.INVOKED) if (each.of("op"), each.of("path")) == _LOOK]
    answers = {(each.actor, each.of("of")): each.zxid for each in events_of(history, Kind.OK)}
    registered = [
        each
        for each in events_of(history, Kind.CREATED, Kind.DELETED)
        if str(each.of("path")).startswith(f"{BROKER_IDS}/")
    ]
    found: dict[str | None, list[_Look]] = {}
    for each in asked:
        zxid = answers.get((each.actor, each.n))
        later = [] if zxid is None else [one.at_us for one in registered if (one.zxid or 0) > zxid]
        found.setdefault(each.session, []).append(_Look(each.at_us, min([each.at_us, *(us - 1 for us in later)])))
    return found


_LOOK = ("children", BROKER_IDS)


def _may_repeat(history: History, each: Raised) -> bool:
    """Whether the writer has asked for another write of this state before, and that was not answered."""
    writer = actor_by_session(history).get(each.event.session)
    its = [one for one in _writes(history).get((writer, each.partition), []) if one.at_us <= each.event.at_us]
    return len(its) > 1 and (its[-2].actor, its[-2].n) not in _answered(history)


@once
def _writes(history: History) -> dict[tuple[str | None, Place], list[Event]]:
    """The requests of each node to write a state."""
    found: dict[tuple[str | None, Place], list[Event]] = {}
    for event in events_of(history, Kind.INVOKED):
        parts = event.of("parts")
        paths = [str(part[-1]) for part in parts] if isinstance(parts, list | tuple) else [str(event.of("path"))]
        if event.of("op") in ("set", "multi"):
            for named in filter(None, map(partition_of_state, paths)):
                found.setdefault((event.actor, Place(*named)), []).append(event)
    return found


@once
def _answered(history: History) -> set[tuple[str, object]]:
    return {(event.actor, event.of("of")) for event in events_of(history, Kind.OK, Kind.FAILED_OP)}


# -- deletions ----------------------------------------------------------------------------------


def _is_deleted(history: History, each: Raised) -> bool:
    """Whether the topic was to be deleted at some time since the former write."""
    asked = deletion_requests(history).get(each.partition.topic, [])
    return any(period.overlaps(each.former.at_us, each.event.at_us) for period in asked)


# -- reassignments ------------------------------------------------------------------------------


def _is_reassigned(history: History, each: Raised) -> bool:
    """Whether the partition was being reassigned, or its replicas changed, at some time since the former write."""
    if replicas_at(history, each.partition, each.former) != replicas_at(history, each.partition, each.event):
        return True
    times = [*_requests(history).get(each.partition, []), *_under_way(history).get(each.partition, [])]
    return any(period.overlaps(each.former.at_us, each.event.at_us) for period in times)


@once
def _requests(history: History) -> dict[Place, list[Period]]:
    """When `/admin/reassign_partitions` named each partition."""
    events = events_of(history, Kind.CREATED, Kind.CHANGED, Kind.DELETED)
    its = [(each, _named_in(each)) for each in events if each.of("path") == REASSIGNMENT]
    places = {place for _, named in its for place in named}
    return {place: periods((each, place in named) for each, named in its) for place in places}


def _named_in(event: Event) -> set[Place]:
    if event.kind is Kind.DELETED:
        return set()
    return {Place(*named) for named in read_reassignment(str(event.of("data")).encode())}


@once
def _under_way(history: History) -> dict[Place, list[Period]]:
    """When each partition's assignment had replicas that were being added or removed."""
    return {
        place: periods((event, _changes_replicas(place, event)) for event, _ in writes)
        for place, writes in assigned(history).items()
    }


def _changes_replicas(place: Place, event: Event) -> bool:
    found = read_assignment(place.topic, str(event.of("data")).encode())
    return place.partition in {*found.adding_replicas, *found.removing_replicas}


CHECK = Check(
    name="needless_election",
    compares=(Layer.REGISTRY, Layer.OP, Layer.BELIEF),
    meaning="A controller elected a leader, or left a replica out of an ISR, without cause.",
    together="Nothing has happened between the two writes that asks for the second.",
    plants=(Planted("elects-anew", "controller-failover", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=lambda history: [*born(history), *raised(history)],
)
