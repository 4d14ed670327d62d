"""A deposed controller is obeyed (C4, C5): by ZooKeeper, or by a broker.

The epoch of the controller stands in `/controller_epoch`, and each state of a partition names the epoch of the
controller that wrote it. C4: a state is written in another epoch than the one that stands there at that moment, or in
another session than that of the last election: by a broker that was deposed, or never elected. The same holds for the
deletion of a topic or a state, which only controllers delete. Others write topics' assignments as well, and what is
below `/admin`: of these, only what a deposed controller writes is wrong. Reports of ISRs and of failed log folders, and
settings of topics are looked at when they are deleted; brokers and clients write them. From Kafka 2.1 on a controller
writes states, assignments and deletions only together with a check of the epoch's znode (KAFKA-6082). `/feature` is
left out: Kafka writes it without that check. C5: a broker leads by a state of an earlier epoch than that of a state by
which it has led the same partition before. A leader that writes its ISR itself (up to 2.6) writes the epoch of the
controller that chose it, which may be over: such states, in which only the ISR changes, are left out.

Witness: the election, or the earlier leadership, and what came later from an earlier epoch.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from rebalance_lab.checks.elections import elections, epoch_changes, epoch_in
from rebalance_lab.checks.isr_writers import leaders_write_isrs
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import Place, partition_states, place_of
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import RESTART
from rebalance_lab.history.replicas import LEADS
from rebalance_lab.history.views import actor_by_session, events_of, once
from rebalance_lab.wire.cluster import LeaderIsrAndControllerEpoch

Wrong = tuple[str, Event, Event]

#: A topic's znode; that, or the state of one of its partitions.
_TOPIC = re.compile(r"/brokers/topics/[^/]+")
_OF_A_TOPIC = re.compile(rf"{_TOPIC.pattern}(/partitions/\d+/state)?")

#: What a controller writes beside that: all of the first, and deletions of the second.
_WRITTEN = re.compile(rf"/admin/.+|{_TOPIC.pattern}/partitions(/\d+)?")
_DELETED = re.compile(r"/config/topics/.+|/(isr_change|log_dir_event)_notification/.+")


def judge(history: History) -> Finding:
    """Measures: `count`, stale writes, assignments, deletions, other writes and roles; `writes`, `assignments`,
    `deletions`, `others` and `roles` that were looked at."""
    writes, stale_writes = _writes(history)
    assignments, stale_assignments = _assignments(history)
    deletions, stale_deletions = _deletions(history)
    others, stale_others = _others(history)
    roles, stale_roles = _roles(history)
    stale = [*stale_writes, *stale_assignments, *stale_deletions, *stale_others, *stale_roles]
    wrong = sorted(stale, key=lambda each: each[2].at_us)
    measures = {
        "count": len(wrong),
        "writes": writes,
        "assignments": assignments,
        "deletions": deletions,
        "others": others,
        "roles": roles,
    }
    if wrong:
        why, before, event = wrong[0]
        return violated(why, (before.id, event.id), measures)
    nothing = None if writes else "no partition has a state"
    return not_violated(history, "nobody obeyed a controller whose epoch was over", measures, vacuous=nothing)


def _writes(history: History) -> tuple[int, list[Wrong]]:
    """The number of states that controllers have to write, and those that the controller did not, or in another epoch
    than its own. The order is ZooKeeper's."""
    by_leaders = leaders_write_isrs(history.trial.parameters)
    looked_at, wrong = 0, []
    for place, states in partition_states(history).items():
        leader_epoch: int | None = None
        for event, state in states:
            only_isr, leader_epoch = state.leader_epoch == leader_epoch, state.leader_epoch
            if only_isr and by_leaders:
                continue
            looked_at += 1
            what = f"the state of leader epoch {state.leader_epoch} was written"
            found = _of_another_epoch(history, event, state) or _of_another_session(history, event, what)
            if found is not None:
                why, election = found
                wrong.append((f"{place}: {why}", election, event))
    return looked_at, wrong


@once
def _epochs(history: History) -> list[Event]:
    """The changes of `/controller_epoch` to a number."""
    return [each for each in epoch_changes(history) if epoch_in(each) is not None]


def _of_another_epoch(history: History, event: Event, state: LeaderIsrAndControllerEpoch) -> tuple[str, Event] | None:
    """What is wrong with the epoch of a state, and the change that made the one that stood."""
    changes = _epochs(history)
    place = bisect_left(changes, event.zxid or 0, key=lambda each: each.zxid or 0)
    stood = epoch_in(changes[place - 1]) if place else None
    if stood is None or stood == state.controller_epoch:
        return None
    when = f"epoch {stood} had begun" if state.controller_epoch < stood else f"epoch {stood} stood"
    what = f"a state of leader epoch {state.leader_epoch} was written in controller epoch {state.controller_epoch}"
    return f"{what}, when {when}", changes[place - 1]


@once
def _winners(history: History) -> set[str]:
    """The brokers that were ever elected."""
    return {str(_broker(history, each.created)) for each in elections(history)}


def _broker(history: History, event: Event) -> str | None:
    """The process in whose session a znode was written, else the session."""
    return actor_by_session(history).get(event.session, event.session)


def _assignments(history: History) -> tuple[int, list[Wrong]]:
    """The number of changes of topics' assignments, and those by a broker that has been elected, in another session
    than that of the last election. A controller of 0.8.2 writes on in its next session."""
    its = [each for each in events_of(history, Kind.CHANGED) if _TOPIC.fullmatch(str(each.of("path")))]
    return len(its), _by_deposed(history, its, "written")


def _others(history: History) -> tuple[int, list[Wrong]]:
    """The number of other writes and deletions that controllers make, and those by brokers that were deposed."""
    written = events_of(history, Kind.CREATED, Kind.CHANGED)
    its = [each for each in written if _WRITTEN.fullmatch(str(each.of("path")))]
    gone = [
        each
        for each in events_of(history, Kind.DELETED)
        if _WRITTEN.fullmatch(str(each.of("path"))) or _DELETED.fullmatch(str(each.of("path")))
    ]
    return len(its) + len(gone), [*_by_deposed(history, its, "written"), *_by_deposed(history, gone, "deleted")]


def _by_deposed(history: History, events: Sequence[Event], done: str) -> list[Wrong]:
    """Those of the events that are the work of a broker which has been elected, and is not the controller."""
    found = []
    for each in events:
        if _broker(history, each) in _winners(history):
            wrong = _of_another_session(history, each, f"{each.of('path')} was {done}")
            found += [(wrong[0], wrong[1], each)] if wrong is not None else []
    return found


def _deletions(history: History) -> tuple[int, list[Wrong]]:
    """The number of deletions of topics and states, and those by another session than the controller's."""
    its = [each for each in events_of(history, Kind.DELETED) if _OF_A_TOPIC.fullmatch(str(each.of("path")))]
    found = ((each, _of_another_session(history, each, f"{each.of('path')} was deleted")) for each in its)
    return len(its), [(why, election, each) for each, wrong in found if wrong is not None for why, election in [wrong]]


def _of_another_session(history: History, event: Event, what: str) -> tuple[str, Event] | None:
    """What is wrong with the writer, and the last election. A controller may write until the next one."""
    found = elections(history)
    place = bisect_left(found, event.zxid or 0, key=lambda each: each.created.zxid or 0)
    if not place or found[place - 1].created.session == event.session:
        return None
    election = found[place - 1]
    writer, controller = (
        actor_by_session(history).get(session, f"session {session}")
        for session in (event.session, election.created.session)
    )
    return f"{what} by {writer}, and the controller was {controller}", election.created


def _roles(history: History) -> tuple[int, list[Wrong]]:
    """The number of leaderships, and those by a state of an earlier epoch. What a broker has heard is gone with its
    process."""
    heard: dict[tuple[str, Place], Event] = {}
    looked_at, wrong = 0, []
    for event in events_of(history, LEADS, Kind.FAULT_BEGAN):
        if event.kind is Kind.FAULT_BEGAN:
            if event.of("fault") == RESTART:
                heard = {each: found for each, found in heard.items() if each[0] != event.of("target")}
            continue
        looked_at += 1
        before = heard.get((event.actor, place_of(event)))
        if before is not None and _epoch(event) < _epoch(before):
            why = (
                f"{place_of(event)}: {event.actor} leads by a state of controller epoch {_epoch(event)}, and "
                f"has led by one of epoch {_epoch(before)}"
            )
            wrong.append((why, before, event))
        else:
            heard[event.actor, place_of(event)] = event
    return looked_at, wrong


def _epoch(event: Event) -> int:
    return int(str(event.of("controller_epoch")))


CHECK = Check(
    name="stale_controller",
    compares=(Layer.REGISTRY, Layer.BELIEF),
    meaning="A state was written, or an order obeyed, that is not of the controller of that time.",
    together="Another broker had been elected, and what this one decided took effect.",
    plants=(Planted("writes-last-epoch", "controller-failover", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
)
