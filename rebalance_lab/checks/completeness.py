"""Why a history without a violation may prove no absence.

A check that found nothing is *clean* only if the history could have shown something. The causes listed here turn clean
into unknown; a violation that was seen stays a violation. One cause is an incomplete history: an actor's own events are
counted, so a hole within them shows. The lost end of the registry's log shows only in what others recorded, and an
actor whose events are all lost shows only in the registry's log.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rebalance_lab.checks.faults import clock_drifted, events_by_actor, faults
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.fault_kinds import kind_of
from rebalance_lab.history.files import History
from rebalance_lab.history.views import actor_by_session, events_of, gave_up, once, registry


def unknown_causes(history: History, *, across_layers: bool = False) -> list[str]:
    """Why this history proves no absence; empty if it may be called clean.

    `across_layers`: the check compares the registry's times with another layer's, so a drifted clock is a cause. It is
    a cause for every check if a fault had to outlast its session, because such times show that.
    """
    causes = list(_incomplete(history))
    boots = sorted(set(history.trial.boot_ids))
    if len(boots) > 1:
        causes.append(f"its processes ran under {len(boots)} boot ids: their clocks are not comparable")
    missed = [event for event in events_of(history, Kind.REST_MISSED) if event.of("gave_up") is not True]
    if missed:
        causes.append(f"rest was missed: {missed[0].of('why')}")
    elif not events_of(history, Kind.REST_REACHED):
        causes.append("the group never came to rest")
    tried = faults(history)
    causes.extend(why for fault in tried if (why := fault.why_not_bitten) is not None)
    if clock_drifted(history) and (across_layers or any(fault.must_outlast_session for fault in tried)):
        drift_us = history.trial.wall_drift_us
        causes.append(f"the wall clock drifted by {drift_us} us: registry times are not comparable with other times")
    return causes


@once
def _incomplete(history: History) -> list[str]:
    """What the history lacks: an event, its end, or the fault of its scenario."""
    counts = {actor: sorted(event.n for event in its) for actor, its in events_by_actor(history).items()}
    causes = [why for actor, ns in sorted(counts.items()) if (why := _not_whole(actor, ns)) is not None]
    causes += lost_transactions(history) + strangers(history)
    stopped = gave_up(history)
    if stopped is not None:
        causes.append(f"the runner gave up: {stopped}")
    elif not events_of(history, Kind.TRIAL_ENDED):
        causes.append("the runner did not record the end of the trial")
    if not history.trial.control and not events_of(history, Kind.FAULT_BEGAN):
        causes.append("it is not a control, but no fault began")
    if history.trial.control:
        harms = [event for event in events_of(history, Kind.FAULT_BEGAN) if not kind_of(event).in_controls]
        causes += [f"it is a control, but a fault began: {event.of('fault')}" for event in harms[:1]]
    return causes


def _not_whole(actor: str, ns: list[int]) -> str | None:
    """The first n (of `ns`, ascending) that is missing or repeated."""
    for expected, n in enumerate(ns):
        if n > expected:
            return f"{actor}'s event {expected} is missing"
        if n < expected:
            return f"{actor}'s event {n} was recorded more than once"
    return None


# -- incomplete histories ------------------------------------------------------------------------

#: The lower bits of a zxid; the leader's epoch is above them. The first zxid of an epoch has 0 here: it is the
#: election, not a transaction.
EPOCH_BITS = 32

#: Fields of `detail` that name a transaction.
_ZXIDS = frozenset({"members_zxid", "owners_zxid"})


def lost_transactions(history: History) -> list[str]:
    """The first transactions that are missing from the registry's events: between two of them, or one that another
    actor saw. ZooKeeper numbers the transactions of an epoch (the upper 32 bits) without gaps; those without an event
    are counted in the next one's detail `passed`. A reply carries the zxid of the last transaction that its server
    knew."""
    recorded = registry(history)
    for one, other in pairwise(recorded):
        first, second = one.zxid or 0, other.zxid or 0
        lost = second - first - 1 - _passed(other)
        if lost > 0 and first >> EPOCH_BITS == second >> EPOCH_BITS:
            return [f"{lost} of the registry's transactions between {first:#x} and {second:#x} are missing"]
    zxids = [event.zxid or 0 for event in recorded]
    known: set[int | None] = {None}  # many events name the same transaction
    for event in history.events:
        if event.zxid in known and (event.detail is None or _ZXIDS.isdisjoint(event.detail)):
            continue
        for zxid in _seen(event):
            if _known(zxid, zxids, recorded):
                known.add(zxid)
            else:
                return [f"the registry's transaction {zxid:#x} is missing: {event.actor}'s event {event.n} saw it"]
    return []


def strangers(history: History) -> list[str]:
    """The first id or owner znode whose session no process of its member recorded: the events of some process are
    missing, or one process uses the session of another. Then nothing is known of every member, because its session
    shows whose a znode is."""
    started = {(event.actor, event.member) for event in events_of(history, Kind.MEMBER_STARTED)}
    sessions = actor_by_session(history)
    member: str | None
    for event in events_of(history, Kind.CREATED):
        match str(event.of("path")).split("/"):
            case ["", "consumers", _, "ids", name]:
                member, what = name, f"{name} is registered by"
            case ["", "consumers", _, "owners", topic, partition]:
                member, what = event.member, f"{topic}/{partition} is claimed for {event.member} in"
            case _:
                continue
        if event.session not in sessions:
            return [f"{what} session {event.session}, which no process recorded"]
        if (sessions[event.session], member) not in started:
            actor = sessions[event.session]
            return [f"{what} session {event.session} of {actor}, but {actor} did not start {member}"]
    return []


def _passed(event: Event) -> int:
    """How many transactions without an event came directly before an event of the registry."""
    passed = event.of("passed")
    return passed if isinstance(passed, int) else 0


def _known(zxid: int, zxids: Sequence[int], recorded: Sequence[Event]) -> bool:
    """Whether the registry has this transaction, counts it as one without an event, or began after it. Those that the
    first event of an epoch counts may belong to the end of the former epoch."""
    if not zxid & ((1 << EPOCH_BITS) - 1) or not zxids or zxid < zxids[0]:
        return True
    place = bisect_left(zxids, zxid)
    if place == len(zxids):
        return False
    passed = _passed(recorded[place])
    return zxids[place] - passed <= zxid or zxid <= zxids[place - 1] + passed


def _seen(event: Event) -> Iterator[int]:
    """The transactions that an event names."""
    if event.zxid is not None:
        yield event.zxid
    if event.detail is not None:
        for name in sorted(_ZXIDS):
            if isinstance(zxid := event.detail.get(name), int):
                yield zxid
