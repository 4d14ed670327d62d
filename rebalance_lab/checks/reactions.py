"""Who rebalanced after a change, and who had to and did not: for checks of watches.

An effect cannot precede its cause: a member learns of a change from ZooKeeper, so a rebalance can be a
reaction to it only if a notification or a reply at its zxid or later had reached the member before the
rebalance began. The events of one member are in order whatever the clocks say, so this decides where
times cannot: within `TOLERANCE_US` of the change. `Event.cause` of a REBALANCE_BEGAN does not serve: of a
trigger that waited it names the end of the former rebalance, which is what woke the task.

A rebalance that began later than that counts for `missed_watch` even if its member had not heard of the change:
it reads the list of members after the change. For a statement that the change *makes* members rebalance (claims Z7b
and Z15a) that is not enough: a timer, or another change, may have set the rebalance off. There it counts only if,
before it began, the member's watch of a touched path fired or a read that sets this watch was answered at the zxid
of the change or later, and a REBALANCE_TRIGGERED for such a path came after the member's former rebalance began.
Where operations are only counted, this cannot be told, and the times decide there too.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from rebalance_lab.checks.bounds import bounds, lacking
from rebalance_lab.checks.faults import DEEDS, TOLERANCE_US, clock_drifted, faults, not_violated, under_way, violated
from rebalance_lab.checks.lives import Life, lives
from rebalance_lab.checks.model import Finding
from rebalance_lab.checks.scope import closing_us, rests_of
from rebalance_lab.checks.unheard import by_path, watch_answers
from rebalance_lab.checks.znodes import Znode, znodes_of
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import actor_by_session, events_of, once

#: What an actor had heard: the n of each of its notifications and replies, and the latest zxid until then.
_Heard = tuple[list[int], list[int]]


@dataclass(frozen=True, slots=True)
class Reaction:
    """What one member did about one change. `registered`: its id, which stood then. `began`: its first
    REBALANCE_BEGAN after the change (`_follows`), by the deadline or later; None where there is none. A
    rebalance that ended without an attempt does not count: the member changed nothing. `other`: the first
    that began after the change and was not set off by it, where that was asked and `began` is None.
    `missed`: it had to by the deadline, and did not; `known`: that much can be said. `open`: nothing can
    be said, and the member had not left by the deadline."""

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
    """How long a member may take to begin: the rest of a rebalance that goes through all its attempts,
    and some requests, fewer than an attempt's.

    That holds with a topic filter too, where a rebalance for topics runs on the event thread and delays
    the notification. One lock keeps a member's rebalances apart, and whichever begins next after the
    change is a reaction: the one that holds the lock at the change is all there is to wait for. If none
    waits for the lock when it ends, the event thread is free and handles the notification.
    """
    limits = bounds(history)
    return limits.rebalance_us + limits.attempt_us


def reactions(history: History, changes: Iterable[Event], *, group: bool, caused: bool = False) -> list[Reaction]:
    """Of each change each member that was registered before it and that it is not about; with
    `group` only those of the change's group. `caused`: only a rebalance that the change set off counts.

    The deadline is the bound, counted from the change or from the end of what disturbed the group then
    (a server that lags or stands still), or the first rest that comes a quiet time after the change,
    if that is earlier and no fault was under way: then nothing is left that would make the member
    begin. A member must begin only if until then it lived, was connected and undisturbed.
    """
    begun = {life.who: _begun(life) for life in lives(history)}
    registered = _registered(history)
    rests = [rest.at_us for rest in rests_of(history) if not under_way(history, rest)]
    end_us, _ = closing_us(history)
    found = []
    for change in changes:
        deadline_us = _deadline_us(history, change, rests)
        for life in lives(history):
            if life.member == change.member or (group and life.group != change.group):
                continue
            znode = next((one for one in registered.get(life.who, ()) if _there(one, change)), None)
            if znode is None:
                continue
            late = [event for event in _late(begun[life.who], change) if _follows(history, event, change)]
            began = next((event for event in late if not caused or _set_off(history, life, event, change)), None)
            other = late[0] if late and began is None else None
            in_time = began is not None and began.at_us <= deadline_us + TOLERANCE_US
            had_to = deadline_us <= end_us and life.undisturbed(change.at_us, deadline_us)
            known = in_time or had_to
            there = life.left_us is None or life.left_us > deadline_us
            found.append(
                Reaction(change, life, znode, began, other, not in_time and had_to, known, not known and there)
            )
    return found


def judge_reactions(history: History, found: Sequence[Reaction], *, clean: str, nothing: str | None) -> Finding:
    """The finding of a check that members react. `clean`: why it is; `nothing`: why there was
    nothing to look at.

    Measures: `changes` that somebody had to react to; `count`, times a member did not, of `reactions`
    that could be told; `longest_us` from a change to a member's rebalance; `bound_us`.
    """
    missing = lacking(history)
    if missing is not None:
        return not_violated(history, "", {}, vacuous=missing)
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
        path = doubt.change.of("path")
        nothing = f"whether {doubt.life.member} reacted to the change of {path} cannot be told: it was disturbed then"
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


def _deadline_us(history: History, change: Event, rests: Sequence[int]) -> int:
    bound = _undisturbed_from_us(history, change) + bound_us(history)
    index = bisect_right(rests, change.at_us + bounds(history).quiet_us - TOLERANCE_US)
    return min(bound, rests[index]) if index < len(rests) else bound


def _registered(history: History) -> dict[tuple[str, str], list[Znode]]:
    """(actor, member) -> the ids that it made by its sessions: another process may bear its name."""
    found: dict[tuple[str, str], list[Znode]] = {}
    for znode in znodes_of(history)[0]:
        actor = actor_by_session(history).get(znode.created.session)
        if znode.is_id and actor is not None:
            found.setdefault((actor, znode.member), []).append(znode)
    return found


def _undisturbed_from_us(history: History, change: Event) -> int:
    """The change, or the end of the last fault that met the bound after it and was for no member
    (those of members count for these alone); without an end it is the history's."""
    begin_us, end_us = change.at_us, change.at_us + bound_us(history)
    actors = {life.actor for life in lives(history)}
    ends = [begin_us]
    for fault in faults(history):
        began = fault.began
        if began.of("fault") in DEEDS or began.of("target") in actors or began.at_us > end_us:
            continue
        ends.append(history.events[-1].at_us if fault.ended is None else fault.ended.at_us)
    return max(ends)


def _begun(life: Life) -> list[Event]:
    """The REBALANCE_BEGAN of each rebalance in which an attempt was made, or may still be."""
    return [one.began for one in life.rebalances if one.attempts or one.ended is None]


def _late(begun: Sequence[Event], change: Event) -> Iterable[Event]:
    """Those that may have begun after the change, by the two clocks."""
    return islice(begun, bisect_right(begun, change.at_us - TOLERANCE_US, key=lambda event: event.at_us), None)


def _follows(history: History, began: Event, change: Event) -> bool:
    """Whether a rebalance that began no sooner than 2 ms before a change began after it. Where replies
    are not recorded (operations are counted only) the times must do: a simulated server's is the
    beginning of its millisecond, and exact but for that; between real clocks the 2 ms are in doubt."""
    if began.at_us > change.at_us + TOLERANCE_US:
        return True
    heard = _heard(history).get(began.actor)
    if heard is None:
        return history.trial.world != "simulated" or began.at_us >= change.at_us
    index = bisect_left(heard[0], began.n)
    return index > 0 and heard[1][index - 1] >= (change.zxid or 0)


def _set_off(history: History, life: Life, began: Event, change: Event) -> bool:
    """Whether the change can have set off a rebalance that began after it: the module says how."""
    if began.actor not in _heard(history):
        return True
    path = str(change.of("path"))
    touched, former = (path, path.rpartition("/")[0]), -1
    for rebalance in life.rebalances:
        if rebalance.began.n < began.n:
            former = rebalance.began.n
    triggered = any(former < each.n < began.n for each in _of_paths(_triggers(history), began.actor, touched))
    return triggered and any(
        each.n < began.n and _after(each, change) for each in _of_paths(_notices(history), began.actor, touched)
    )


def _after(notice: Event, change: Event) -> bool:
    """Whether a member that had this notification or reply knew of the change."""
    if notice.kind is Kind.WATCH_FIRED:
        return notice.at_us >= change.at_us - TOLERANCE_US
    return (notice.zxid or 0) >= (change.zxid or 0)


def _of_paths(events: Mapping[tuple[str, str], Sequence[Event]], actor: str, paths: Iterable[str]) -> Iterable[Event]:
    return (event for path in paths for event in events.get((actor, path), ()))


@once
def _triggers(history: History) -> dict[tuple[str, str], list[Event]]:
    return by_path(events_of(history, Kind.REBALANCE_TRIGGERED))


@once
def _notices(history: History) -> dict[tuple[str, str], list[Event]]:
    """The watches that fired, and the answers to reads that set one."""
    watches_set = [event for events in watch_answers(history).values() for event in events]
    return by_path([*events_of(history, Kind.WATCH_FIRED), *watches_set])


@once
def _heard(history: History) -> dict[str, _Heard]:
    """Of each actor whose replies are recorded."""
    replies = (Kind.OK, Kind.FAILED_OP)
    answered = {event.actor for event in events_of(history, *replies) if event.zxid is not None}
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
