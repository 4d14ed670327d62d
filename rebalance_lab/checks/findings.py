"""How checks make findings, and why a history without a violation may prove no absence.

A check that found nothing is *clean* only if the history could have shown something. The causes listed here turn clean
into unknown; a violation that was seen stays a violation. One cause is an incomplete history: an actor's own events are
counted, so a hole within them shows. The lost end of the registry's log shows only in what others recorded, and an
actor whose events are all lost shows only in the registry's log.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rebalance_lab.checks.faults import DEEDS_OF_CONTROLS, clock_drifted, events_by_actor, faults
from rebalance_lab.checks.model import Finding, Outcome
from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import actor_by_session, events_of, gave_up, once, registry


def unknown_causes(history: History, *, across_layers: bool = False) -> list[str]:
    """Why this history proves no absence; empty when it may be called clean.

    `across_layers`: the check compares the registry's times with another layer's, so that a
    clock that drifted is a cause. It is one for every check where a fault had to outlast its
    session: that is shown by comparing such times.
    """
    causes = list(_incomplete(history))
    boots = sorted(set(history.trial.boot_ids))
    if len(boots) > 1:
        causes.append(f"its processes ran under {len(boots)} boot ids: their clocks do not compare")
    missed = [event for event in events_of(history, Kind.REST_MISSED) if event.of("gave_up") is not True]
    if missed:
        causes.append(f"rest was missed: {missed[0].of('why')}")
    elif not events_of(history, Kind.REST_REACHED):
        causes.append("it never came to rest")
    tried = faults(history)
    causes.extend(why for fault in tried if (why := fault.why_not_bitten) is not None)
    if clock_drifted(history) and (across_layers or any(fault.must_outlast_session for fault in tried)):
        drift_us = history.trial.wall_drift_us
        causes.append(f"its wall clock drifted by {drift_us} us: registry times cannot be mapped to the others")
    return causes


@once
def _incomplete(history: History) -> list[str]:
    """What the history lacks to be whole: an event, its end, or the fault it is about."""
    counts = {actor: sorted(event.n for event in its) for actor, its in events_by_actor(history).items()}
    causes = [why for actor, ns in sorted(counts.items()) if (why := _not_whole(actor, ns)) is not None]
    causes += lost_transactions(history) + strangers(history)
    stopped = gave_up(history)
    if stopped is not None:
        causes.append(f"the runner gave up: {stopped}")
    elif not events_of(history, Kind.TRIAL_ENDED):
        causes.append("the runner never said that the trial ended")
    if not history.trial.control and not events_of(history, Kind.FAULT_BEGAN):
        causes.append("it is no control, and no fault ever began")
    if history.trial.control:
        began = [event for event in events_of(history, Kind.FAULT_BEGAN) if event.of("fault") not in DEEDS_OF_CONTROLS]
        causes.extend(f"it is a control, and a fault began: {event.of('fault')}" for event in began[:1])
    return causes


def _not_whole(actor: str, ns: list[int]) -> str | None:
    """The first n (of `ns`, ascending) that is missing or repeated."""
    for expected, n in enumerate(ns):
        if n > expected:
            return f"{actor}'s event {expected} is missing"
        if n < expected:
            return f"{actor}'s event {n} is there more than once"
    return None


def violated(why: str, witness: tuple[EventId | None, ...], measures: dict[str, int]) -> Finding:
    """A violation; the witness keeps the order given, each id once (None is the history's end)."""
    ids = tuple(dict.fromkeys(event for event in witness if event is not None))
    return Finding(Outcome.VIOLATED, why, ids, measures)


def not_violated(
    history: History,
    why: str,
    measures: dict[str, int],
    *,
    vacuous: str | None = None,
    across_layers: bool = False,
) -> Finding:
    """Clean, or unknown with every cause. `vacuous`: why the check had nothing to look at;
    `across_layers`: see `unknown_causes`."""
    causes = unknown_causes(history, across_layers=across_layers)
    if vacuous is not None:
        causes.append(vacuous)
    if causes:
        return Finding(Outcome.UNKNOWN, "; ".join(causes), (), measures)
    return Finding(Outcome.CLEAN, why, (), measures)


def unknown(history: History, cause: str) -> Finding:
    """Unknown for this cause and every other; for checks that can measure nothing."""
    return Finding(Outcome.UNKNOWN, "; ".join([*unknown_causes(history), cause]))


# -- incomplete histories ------------------------------------------------------------------------

#: Of a zxid, below the leader's epoch. An epoch's first zxid has 0 there: it is the election, and no transaction.
EPOCH_BITS = 32

#: Fields of `detail` that name a transaction that somebody saw.
_ZXIDS = ("members_zxid", "owners_zxid")


def lost_transactions(history: History) -> list[str]:
    """The first transactions that the registry's events leave out: between two of them, or one that another
    actor saw. ZooKeeper numbers the transactions of an epoch (the upper 32 bits) without a gap; those that yield
    no event are counted in the next one's detail `passed`. A reply carries the zxid of the last transaction
    that its server knew."""
    recorded = registry(history)
    for one, other in pairwise(recorded):
        first, second = one.zxid or 0, other.zxid or 0
        lost = second - first - 1 - _passed(other)
        if lost > 0 and first >> EPOCH_BITS == second >> EPOCH_BITS:
            return [f"{lost} of the registry's transactions between {first:#x} and {second:#x} are missing"]
    zxids = [event.zxid or 0 for event in recorded]
    for event in history.events:
        for zxid in _seen(event):
            if not _known(zxid, zxids, recorded):
                return [f"the registry's transaction {zxid:#x} is missing: {event.actor}'s event {event.n} saw it"]
    return []


def strangers(history: History) -> list[str]:
    """The first id or owner znode in the registry that is in a session which no process of its member recorded: the
    events of some process are missing, or one uses the session of another. Nothing can be said of what every member
    does, as a znode is known for a member's by its session."""
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
            return [f"{what} session {event.session}, and no process recorded this"]
        if (sessions[event.session], member) not in started:
            actor = sessions[event.session]
            return [f"{what} session {event.session} of {actor}, and {actor} did not start {member}"]
    return []


def _passed(event: Event) -> int:
    """How many transactions without an event of their own came right before an event of the registry."""
    passed = event.of("passed")
    return passed if isinstance(passed, int) else 0


def _known(zxid: int, zxids: Sequence[int], recorded: Sequence[Event]) -> bool:
    """Whether the registry has this transaction, or counts it as one without an event, or began after it. Those
    that a new epoch's first event counts may be of the end of the former epoch."""
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
        for name in _ZXIDS:
            if isinstance(zxid := event.detail.get(name), int):
                yield zxid
