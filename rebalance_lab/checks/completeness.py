"""What one layer of a history shows that another should have recorded, and has not.

An actor's own events are counted, so a hole within them shows. The lost end of the registry's log shows only
in what the others recorded; an actor whose events are all lost shows only in the registry's log.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import actor_by_session, events_of, registry

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
