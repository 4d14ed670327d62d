"""A controller elected a leader or shrank an ISR, and nothing had happened that asks for it (claim E4).

A leader changes the ISR within its leader epoch; whoever raises a partition's leader epoch is a controller
(`PartitionStateMachine` and `ReplicaStateMachine`, Kafka 3.9.1). Each election interrupts the partition's clients, so a
controller elects only

- if there is no leader, or it is gone: its broker is not registered, has asked to shut down, or has lost the disk;
- to have the first of the assignment lead, which is in sync (whether anybody has asked for that is not judged);
- if the partition is being reassigned.

It takes a replica out of the ISR only if that one is gone, or the partition is being reassigned. What has happened
counts from the time when the writer of the state before last asked who is registered; if its requests are not recorded,
from the trial's beginning. A controller that has lost its connection since it wrote last is not judged: it may not know
that its write was done, and elects again.

Witness: the last state that a controller has written before, and the election.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

from rebalance_lab.checks.broker_absences import Span, absences, replica_absences, spans
from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import Place, assigned, lives, replicas_at
from rebalance_lab.checks.phases import before_closing
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import actor_by_session, events_of, grouped, once
from rebalance_lab.wire.cluster import NO_LEADER, LeaderIsrAndControllerEpoch, read_assignment
from rebalance_lab.wire.paths import BROKER_IDS, REASSIGNMENT


class Raised(NamedTuple):
    """A leader epoch that was raised. `former`: the write of the epoch before; `before`, `after`: the states around the
    change. `since_us`: from when on what has happened counts."""

    partition: Place
    former: Event
    event: Event
    before: LeaderIsrAndControllerEpoch
    after: LeaderIsrAndControllerEpoch
    since_us: float


def judge(history: History) -> Finding:
    """Measures: `count`, elections and changes of ISRs for nothing; `raised`, leader epochs that were raised."""
    every = raised(history)
    wrong = [(each, why) for each in every for why in [_needless(history, each)] if why is not None]
    measures = {"count": len(wrong), "raised": len(every)}
    if wrong:
        first, why = wrong[0]
        return violated(f"{first.partition}: {why}", (first.former.id, first.event.id), measures)
    why = f"something had happened before each of {len(every)} elections that asks for it"
    return not_violated(history, why, measures)


@once
def raised(history: History) -> list[Raised]:
    """All of the trial, but for those by a controller that has lost its connection."""
    found = []
    for place, states in lives(history):
        former = states[0][0]
        for (_, before), (event, after) in pairwise(states):
            if after.leader_epoch <= before.leader_epoch:
                continue
            if before_closing(history, event) and not _may_repeat(history, former, event):
                found.append(Raised(place, former, event, before, after, _known_since_us(history, former)))
            former = event
    return found


def _needless(history: History, each: Raised) -> str | None:
    """What was done for nothing; None if all of it had a cause."""
    if _is_reassigned(history, each):
        return None
    leader, isr = each.before.leader, each.before.isr
    dropped = [broker for broker in isr if broker not in each.after.isr]
    for broker in dropped:
        if not _gone(history, each, broker):
            return f"broker {broker} is taken out of the ISR {list(isr)}, {_WAS_THERE}"
    stays = leader == each.after.leader
    if (stays and dropped) or leader == NO_LEADER or _gone(history, each, leader) or _is_preferred(history, each):
        return None
    did = f"leader {leader} is elected again" if stays else f"broker {each.after.leader} replaces leader {leader}"
    return f"{did}, {_WAS_THERE}"


_WAS_THERE = "which was registered all the time, and had not asked to shut down"


def _gone(history: History, each: Raised, broker: int) -> bool:
    """Whether a broker, or its replica, was absent at some time of which the controller may have known."""
    known = absences(history).get(broker)
    if known is None:
        return True
    times = [*known, *replica_absences(history, broker, each.partition)]
    return any(one.overlaps(each.since_us, each.event.at_us) for one in times)


def _is_preferred(history: History, each: Raised) -> bool:
    replicas = replicas_at(history, each.partition, each.event)
    first = each.after.leader
    return replicas[:1] == (first,) and first in each.before.isr and first != each.before.leader


# -- what the controller may know ---------------------------------------------------------------


def _known_since_us(history: History, former: Event) -> float:
    """When the writer of a state asked for the last time before it who is registered."""
    its = _looks(history).get(actor_by_session(history).get(former.session), [])
    return max((each.at_us for each in its if each.at_us <= former.at_us), default=-math.inf)


@once
def _looks(history: History) -> dict[str | None, list[Event]]:
    """The requests of each node to list `/brokers/ids`."""
    asked = (each for each in events_of(history, Kind.INVOKED) if (each.of("op"), each.of("path")) == _LOOK)
    return grouped(asked, lambda each: each.actor)


_LOOK = ("children", BROKER_IDS)


def _may_repeat(history: History, former: Event, event: Event) -> bool:
    """Whether the writer of both states has lost its connection between them."""
    if former.session != event.session:
        return False
    return any(
        each.session == event.session and former.at_us - TOLERANCE_US <= each.at_us <= event.at_us + TOLERANCE_US
        for each in events_of(history, Kind.DISCONNECTED)
    )


# -- reassignments ------------------------------------------------------------------------------


def _is_reassigned(history: History, each: Raised) -> bool:
    """Whether the partition was being reassigned, or its replicas changed, at some time since the former write."""
    if replicas_at(history, each.partition, each.former) != replicas_at(history, each.partition, each.event):
        return True
    spans = [*_requests(history), *_under_way(history).get(each.partition, [])]
    return any(span.overlaps(each.former.at_us, each.event.at_us) for span in spans)


@once
def _requests(history: History) -> list[Span]:
    """When `/admin/reassign_partitions` was there."""
    events = events_of(history, Kind.CREATED, Kind.DELETED)
    its = ((each, each.kind is Kind.CREATED) for each in events if each.of("path") == REASSIGNMENT)
    return spans(its)


@once
def _under_way(history: History) -> dict[Place, list[Span]]:
    """When each partition's assignment had replicas that were being added or removed."""
    return {
        place: spans((event, _changes_replicas(place, event)) for event, _ in writes)
        for place, writes in assigned(history).items()
    }


def _changes_replicas(place: Place, event: Event) -> bool:
    found = read_assignment(place.topic, str(event.of("data")).encode())
    return str(place.partition) in {*found.adding_replicas, *found.removing_replicas}


CHECK = Check(
    name="needless_election",
    compares=(Layer.REGISTRY,),
    meaning="A controller elected a leader or shrank an ISR, and nothing had happened that asks for it.",
    together="Nothing has happened between the two writes that asks for the second.",
    plants=(Planted("elects-anew", "controller-failover", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=raised,
)
