"""Who rebalanced after a change, and who had to and did not: for checks of watches.

An effect cannot precede its cause: a member learns of a change from ZooKeeper, so a rebalance can be a
reaction to it only if a notification or a reply at its zxid or later had reached the member before the
rebalance began. The events of one member are in order whatever the clocks say, so this decides where
times cannot: within `TOLERANCE_US` of the change. `Event.cause` of a REBALANCE_BEGAN does not serve: of a
trigger that waited it names the end of the former rebalance, which is what woke the task.

A rebalance that began later may have another reason, such as a timer. It is a reaction only if the change set it off
(`causes`): claims Z7a, Z7b and Z15a say that a change *makes* members rebalance.

A rebalance counts only if the member carried it out (`carried_out`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from rebalance_lab.checks.bounds import bounds, lacking
from rebalance_lab.checks.causes import Cause, cause, triggered_since
from rebalance_lab.checks.faults import DEEDS, TOLERANCE_US, clock_drifted, faults, under_way
from rebalance_lab.checks.findings import not_violated, violated
from rebalance_lab.checks.members import Life, lives
from rebalance_lab.checks.model import Finding
from rebalance_lab.checks.operations import recorded_singly
from rebalance_lab.checks.phases import closing_us, rests_of
from rebalance_lab.checks.rebalance_evidence import carried_out
from rebalance_lab.checks.znodes import Znode, znodes_of
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import actor_by_session, events_of, once

#: What an actor had heard: the n of each of its notifications and replies, and the latest zxid until then.
_Heard = tuple[list[int], list[int]]

#: The `by` of rebalances that run on ZkClient's event thread: for topics that come or go, and in a new session.
_ON_EVENT_THREAD = ("topics", "session")


@dataclass(frozen=True, slots=True)
class Reaction:
    """What one member did about one change. `registered`: its id, which stood then. `began`: its first
    REBALANCE_BEGAN after the change (`_follows`) that the change set off, by the deadline or later; None where
    there is none. A rebalance in name only does not count (see the module). `other`: if `began` is None, the
    first that began after the change and that the change did not, or perhaps not, set off. `missed`: it had to by
    the deadline, and did not; `known`: that much can be said. `open`: nothing can be said, and the member had
    not left by the deadline."""

    change: Event
    life: Life
    registered: Znode
    began: Event | None
    other: Event | None
    missed: bool
    known: bool
    open: bool

    @property
    def after_us(self) -> int:
        """From the change to the rebalance; 0 where none began."""
        return 0 if self.began is None else max(0, self.began.at_us - self.change.at_us)


def bound_us(history: History) -> int:
    """How long a member may take to begin once its event thread is free: the rest of a rebalance of its watcher that
    goes through all its attempts, and some requests, fewer than an attempt's."""
    limits = bounds(history)
    return limits.rebalance_us + limits.attempt_us


def reactions(history: History, changes: Iterable[Event], *, group: bool) -> list[Reaction]:
    """Of each change each member that was registered before it and that it is not about; with
    `group` only those of the change's group.

    The deadline is the bound, counted from the change or from the end of what delayed the member then (`_from_us`), or
    the first rest that comes a quiet time after the change, if that is earlier and no fault was under way: then nothing
    is left that would make the member begin. A member must begin only if until then it lived, was connected and
    undisturbed.
    """
    begun = {life.who: _begun(history, life) for life in lives(history)}
    registered = _registered(history)
    rests = [rest.at_us for rest in rests_of(history) if not under_way(history, rest)]
    found = []
    for change in changes:
        for life in lives(history):
            if life.member == change.member or (group and life.group != change.group):
                continue
            znode = next((one for one in registered.get(life.who, ()) if _there(one, change)), None)
            if znode is not None:
                deadline_us = _deadline_us(history, life, change, rests)
                found.append(_reaction(history, life, znode, change, begun[life.who], deadline_us))
    return found


def _reaction(
    history: History, life: Life, registered: Znode, change: Event, begun: Sequence[Event], deadline_us: int
) -> Reaction:
    began, other, unclear = None, None, False
    for event in _late(begun, change):
        if not _follows(history, life, event, change):
            continue
        why = cause(history, life, event, change)
        if why is Cause.CHANGE:
            began, other = event, None
            break
        other, unclear = other or event, unclear or why is Cause.OPEN
    in_time = began is not None and began.at_us <= deadline_us + TOLERANCE_US
    told = began is not None or not unclear
    had_to = told and deadline_us <= closing_us(history)[0] and life.undisturbed(change.at_us, deadline_us)
    there = life.left_us is None or life.left_us > deadline_us
    known = in_time or had_to
    return Reaction(change, life, registered, began, other, had_to and not in_time, known, not known and there)


def judge_reactions(history: History, found: Sequence[Reaction], *, clean: str, nothing: str | None) -> Finding:
    """The finding of a check that members react. `clean`: why it is; `nothing`: why there was
    nothing to look at.

    Measures: `changes` that somebody had to react to; `count`, times a member did not, of `reactions`
    that could be told; `longest_us` from a change to a member's rebalance; `bound_us`.
    """
    missing = lacking(history)
    if missing is not None:
        return not_violated(history, clean, {}, vacuous=missing)
    missed = [] if clock_drifted(history) else [one for one in found if one.missed]
    known = [one for one in found if one.known]
    numbers = {
        "count": len(missed),
        "changes": len({one.change.id for one in found}),
        "reactions": len(known),
        "longest_us": max((one.after_us for one in known), default=0),
        "bound_us": bound_us(history),
    }
    if missed:
        return _violated(missed[0], numbers)
    if found and not known:
        nothing = "of no change it can be told whether a member noticed it"
    doubt = next((one for one in found if one.open), None)
    if nothing is None and doubt is not None:
        why = "it was disturbed then" + ("" if doubt.other is None else ", or what set its rebalance off is not known")
        path = doubt.change.of("path")
        nothing = f"whether {doubt.life.member} reacted to the change of {path} cannot be told: {why}"
    return not_violated(history, clean, numbers, vacuous=nothing, across_layers=True)


def _violated(first: Reaction, numbers: dict[str, int]) -> Finding:
    did = "came" if first.change.kind is Kind.CREATED else "went"
    if first.began is not None:
        late = f"began a rebalance {seconds(first.after_us)} after"
    elif first.other is not None:
        late = f"began a rebalance for another reason {seconds(first.other.at_us - first.change.at_us)} after"
    else:
        late = "began no rebalance after"
    shown = first.began or first.other
    witness = (first.change.id, None if shown is None else shown.id)
    return violated(f"{first.life.member} {late} {first.change.of('path')} {did}", witness, numbers)


def _deadline_us(history: History, life: Life, change: Event, rests: Sequence[int]) -> int:
    bound = _from_us(history, life, change) + bound_us(history)
    index = bisect_right(rests, change.at_us + bounds(history).quiet_us - TOLERANCE_US)
    # A simulated group may be closed in the microsecond of its last rest: members live until just before it.
    return min(bound, rests[index] - 1) if index < len(rests) else bound


def _registered(history: History) -> dict[tuple[str, str], list[Znode]]:
    """(actor, member) -> the ids that it made by its sessions: another process may bear its name."""
    found: dict[tuple[str, str], list[Znode]] = {}
    for znode in znodes_of(history)[0]:
        actor = actor_by_session(history).get(znode.created.session)
        if znode.is_id and actor is not None:
            found.setdefault((actor, znode.member), []).append(znode)
    return found


def _from_us(history: History, life: Life, change: Event) -> int:
    """From when the bound counts: the change, or the end of the last thing that met the bound after it and delayed the
    member. Without an end it is the history's. A fault delays all unless it is of one member: that disturbs this one
    alone. A rebalance of the member's own delays it on ZkClient's event thread, where notifications wait."""
    end_us = history.events[-1].at_us
    actors = {each.actor for each in lives(history)}
    delays = [
        (fault.began, fault.ended)
        for fault in faults(history)
        if fault.began.of("fault") not in DEEDS and fault.began.of("target") not in actors
    ]
    delays += [(each.began, each.ended) for each in life.rebalances if each.began.of("by") in _ON_EVENT_THREAD]
    until_us = change.at_us + bound_us(history)
    ends = [end_us if ended is None else ended.at_us for began, ended in delays if began.at_us <= until_us]
    return max([change.at_us, *ends])


def _begun(history: History, life: Life) -> list[Event]:
    """The REBALANCE_BEGAN of each rebalance that it carried out."""
    return [one.began for one in life.rebalances if carried_out(history, life, one)]


def _late(begun: Sequence[Event], change: Event) -> Iterable[Event]:
    """Those that may have begun after the change, by the two clocks."""
    return islice(begun, bisect_right(begun, change.at_us - TOLERANCE_US, key=lambda event: event.at_us), None)


def _follows(history: History, life: Life, began: Event, change: Event) -> bool:
    """Whether a rebalance that began no sooner than 2 ms before a change began after it. Where replies are not
    recorded (operations are counted only), the times must do and a trigger for the change must have come since. A
    simulated server's time is the beginning of its millisecond, and exact but for that; between real clocks the 2 ms
    are in doubt."""
    if began.at_us > change.at_us + TOLERANCE_US:
        return True
    heard = _heard(history).get(began.actor)
    if heard is None:
        return triggered_since(history, life, began, change)
    index = bisect_left(heard[0], began.n)
    return index > 0 and heard[1][index - 1] >= (change.zxid or 0)


@once
def _heard(history: History) -> dict[str, _Heard]:
    """Of each actor whose replies are recorded."""
    replies = (Kind.OK, Kind.FAILED_OP)
    answered = {event.actor for event in events_of(history, *replies) if event.zxid is not None}
    answered &= recorded_singly(history)
    found: dict[str, _Heard] = {actor: ([], []) for actor in answered}
    for event in sorted(events_of(history, *replies, Kind.WATCH_FIRED), key=lambda event: event.n):
        if event.actor in answered and event.zxid is not None:
            counts, zxids = found[event.actor]
            counts.append(event.n)
            zxids.append(max(event.zxid, zxids[-1] if zxids else 0))
    return found


def _there(znode: Znode, change: Event) -> bool:
    """Whether the id stood when the change was made, by the registry's own order."""
    at = change.zxid or 0
    return znode.rank < at and (znode.deleted is None or (znode.deleted.zxid or 0) > at)
