"""Reactions of members to changes, for checks of watches: which members rebalanced, and which had to and did not.

A member learns of a change from ZooKeeper. So a rebalance can be a reaction only if a notification or a reply at the
change's zxid or later had reached the member before the rebalance began. The events of one member are in order whatever
the clocks say, so this decides where times cannot: within `TOLERANCE_US` of the change. `Event.cause` of a
REBALANCE_BEGAN cannot decide it: if the trigger waited, it names the end of the former rebalance, which woke the task.

A rebalance that began later may have another reason, such as a timer. It is a reaction only if the change triggered it
(`causes`): claims Z7a, Z7b and Z15a say that a change *makes* members rebalance. And it counts only if the member
carried it out (`rebalance_evidence`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rebalance_lab.checks.bounds import bounds, lacking
from rebalance_lab.checks.causes import Cause, cause, triggered_since
from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted, lasting_faults, under_way
from rebalance_lab.checks.members import MemberLife, member_lives
from rebalance_lab.checks.model import Finding, not_violated, violated
from rebalance_lab.checks.operations import recorded_singly
from rebalance_lab.checks.phases import closing_us, rests_of
from rebalance_lab.checks.rebalance_evidence import carried_out
from rebalance_lab.checks.znodes import Znode, znodes_of
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import actor_by_session, events_of, once

#: The n of each notification and reply of an actor, and the latest zxid by then.
_Heard = tuple[list[int], list[int]]

#: The `by` of rebalances that run on ZkClient's event thread: for topics that come or go, and in a new session.
_ON_EVENT_THREAD = ("topics", "session")


@dataclass(frozen=True, slots=True)
class Reaction:
    """The reaction of one member to one change.

    `registered`: its id, which existed then. `began`: its first REBALANCE_BEGAN after the change (`_follows`) that the
    change triggered, by the deadline or later; None if there is none. `other`: if `began` is None, its first
    REBALANCE_BEGAN after the change that the change did not trigger, or perhaps not. `missed`: it had to react by the
    deadline and did not. `known`: this is certain. `open`: it is not, and the member had not left by the deadline.
    """

    change: Event
    life: MemberLife
    registered: Znode
    began: Event | None
    other: Event | None
    missed: bool
    known: bool
    open: bool

    @property
    def after_us(self) -> int:
        """From the change to the rebalance; 0 if none began."""
        return 0 if self.began is None else max(0, self.began.at_us - self.change.at_us)


def bound_us(history: History) -> int:
    """How long a member may take to begin once its event thread is free: a rebalance of its watcher with all attempts
    may be under way, and some requests follow, fewer than an attempt's."""
    limits = bounds(history)
    return limits.rebalance_us + limits.attempt_us


def reactions(history: History, changes: Iterable[Event], *, group: bool) -> list[Reaction]:
    """The reactions to each change of all other members that were registered before it; with `group` only those of the
    change's group.

    The deadline is the bound, counted from the change or from the end of what delayed the member (`_from_us`); or, if
    earlier, the first rest a quiet time after the change at which no fault was under way: then nothing is left that
    would make the member begin. A member must begin only if it was alive, connected and undisturbed until then.
    """
    begun = {
        life.key: [one.began for one in life.rebalances if carried_out(history, life, one)]
        for life in member_lives(history)
    }
    registered = _registered(history)
    rests = [rest.at_us for rest in rests_of(history) if not under_way(history, rest)]
    found = []
    for change in changes:
        for life in member_lives(history):
            if life.member == change.member or (group and life.group != change.group):
                continue
            znode = next((one for one in registered.get(life.key, ()) if _there(one, change)), None)
            if znode is not None:
                deadline_us = _deadline_us(history, life, change, rests)
                found.append(_reaction(history, life, znode, change, begun[life.key], deadline_us))
    return found


def _reaction(
    history: History, life: MemberLife, registered: Znode, change: Event, begun: Sequence[Event], deadline_us: int
) -> Reaction:
    began, other, unclear = None, None, False
    first = bisect_right(begun, change.at_us - TOLERANCE_US, key=lambda event: event.at_us)
    for event in begun[first:]:
        if not _follows(history, life, event, change):
            continue
        why = cause(history, life, event, change)
        if why is Cause.CHANGE:
            began, other = event, None
            break
        other, unclear = other or event, unclear or why is Cause.OPEN
    in_time = began is not None and began.at_us <= deadline_us + TOLERANCE_US
    clear = began is not None or not unclear
    had_to = clear and deadline_us <= closing_us(history)[0] and life.undisturbed(change.at_us, deadline_us)
    there = life.left_us is None or life.left_us > deadline_us
    known = in_time or had_to
    return Reaction(change, life, registered, began, other, had_to and not in_time, known, not known and there)


def judge_reactions(history: History, found: Sequence[Reaction], *, clean: str, nothing: str | None) -> Finding:
    """The finding of a check that members react. `clean`: the reason if they do; `nothing`: why nothing was looked at.

    Measures: `changes` that members had to react to; `reactions` that are known; `count`, those that were missed;
    `longest_us` from a change to a member's rebalance; `bound_us`.
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
        nothing = "the history does not show for any change whether a member noticed it"
    doubt = next((one for one in found if one.open), None)
    if nothing is None and doubt is not None:
        why = "it was disturbed then" + ("" if doubt.other is None else ", or its rebalance had an unknown trigger")
        path = doubt.change.of("path")
        nothing = f"it is not known whether {doubt.life.member} reacted to the change of {path}: {why}"
    return not_violated(history, clean, numbers, vacuous=nothing, across_layers=True)


def _violated(first: Reaction, numbers: dict[str, int]) -> Finding:
    change = f"{first.change.of('path')} {'came' if first.change.kind is Kind.CREATED else 'went'}"
    if first.began is not None:
        did = f"began a rebalance only {seconds(first.after_us)} after {change}"
    elif first.other is not None:
        after_us = first.other.at_us - first.change.at_us
        did = f"began a rebalance {seconds(after_us)} after {change}, but for another reason"
    else:
        did = f"did not rebalance after {change}"
    shown = first.began or first.other
    witness = (first.change.id, None if shown is None else shown.id)
    return violated(f"{first.life.member} {did}", witness, numbers)


def _deadline_us(history: History, life: MemberLife, change: Event, rests: Sequence[int]) -> int:
    bound = _from_us(history, life, change) + bound_us(history)
    index = bisect_right(rests, change.at_us + bounds(history).quiet_us - TOLERANCE_US)
    # A simulated group may be closed in the microsecond of its last rest: members live until just before it.
    return min(bound, rests[index] - 1) if index < len(rests) else bound


def _registered(history: History) -> dict[tuple[str, str], list[Znode]]:
    """(actor, member) -> the ids that it created in its sessions: another process may use its name."""
    found: dict[tuple[str, str], list[Znode]] = {}
    for znode in znodes_of(history)[0]:
        actor = actor_by_session(history).get(znode.created.session)
        if znode.is_id and actor is not None:
            found.setdefault((actor, znode.member), []).append(znode)
    return found


def _from_us(history: History, life: MemberLife, change: Event) -> int:
    """The beginning of the bound: the change, or the end of the last thing that delayed the member before the bound had
    passed (the history's end if it did not end). Lasting faults delay all members, except faults of one member, which
    disturb only that one. A member's own rebalance delays it on ZkClient's event thread, where notifications wait."""
    actors = {each.actor for each in member_lives(history)}
    delays = [(one.began, one.ended) for one in lasting_faults(history) if one.began.of("target") not in actors]
    delays += [(each.began, each.ended) for each in life.rebalances if each.began.of("by") in _ON_EVENT_THREAD]
    until_us, last = change.at_us + bound_us(history), history.events[-1]
    ends = [(ended or last).at_us for began, ended in delays if began.at_us <= until_us]
    return max([change.at_us, *ends])


def _follows(history: History, life: MemberLife, began: Event, change: Event) -> bool:
    """Whether a rebalance that began at most 2 ms before a change, by the two clocks, began after it. If replies are
    not recorded (operations are only counted), a trigger for the change must have come since."""
    if began.at_us > change.at_us + TOLERANCE_US:
        return True
    heard = _heard(history).get(began.actor)
    if heard is None:
        return triggered_since(history, life, began, change)
    index = bisect_left(heard[0], began.n)
    return index > 0 and heard[1][index - 1] >= (change.zxid or 0)


@once
def _heard(history: History) -> dict[str, _Heard]:
    """Notifications and replies of each actor whose replies are recorded."""
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
    """Whether the id existed at the change, by the registry's own order."""
    at = change.zxid or 0
    return znode.rank < at and (znode.deleted is None or (znode.deleted.zxid or 0) > at)
