"""Who deleted a znode while its session stood (for claim Z1)?

An id is never deleted: it goes with its session (ZookeeperConsumerConnector.shutdown, Kafka 0.8.2, only
closes the client). An owner znode may be deleted by its own member, which sends the request. So each DELETED
that did not come with the end of a session has the OK of a `delete` with its zxid and path in a process of
that session, or a `delete` of that path without an answer, sent before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted
from rebalance_lab.checks.operations import recorded_singly
from rebalance_lab.checks.znodes import Kill, Violation, Znode, sessions_of
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of


@dataclass(slots=True)
class _Deletes:
    """The `delete` requests of one process. `done`: (zxid, path) of those answered with OK; `open`: n of the
    INVOKED of those without a definite answer."""

    done: set[tuple[int | None, object]] = field(default_factory=set)
    open: dict[object, Event] = field(default_factory=dict)

    def explain(self, deleted: Event, *, drifted: bool) -> bool:
        path = deleted.of("path")
        return (deleted.zxid, path) in self.done or any(
            asked.of("path") == path and (drifted or asked.at_us <= deleted.at_us + TOLERANCE_US)
            for asked in self.open.values()
        )


def unasked(history: History, znodes: Sequence[Znode]) -> list[Violation]:
    """Znodes that went while their session stood, and no process of that session had asked for it; ids that
    went so at all. Of processes whose operations are only counted, ids alone are looked at."""
    sessions = sessions_of(events_of(history, Kind.CONNECTED))
    closed = {event.session: event.zxid or 0 for event in events_of(history, Kind.SESSION_CLOSED)}
    deletes = _deletes(history)
    drifted = clock_drifted(history)
    found: list[Violation] = []
    for znode in _ended_early(znodes):
        deleted = znode.deleted
        assert deleted is not None
        if closed.get(znode.created.session, deleted.zxid or 0) < (deleted.zxid or 0):
            continue  # it outlived its session: a violation in any case
        own = [actor for actor, its in sessions.items() if znode.created.session in its]
        if znode.is_id:
            why = f"{znode.path} was deleted while its session {znode.created.session} stood"
        elif not own or any(actor not in deletes or deletes[actor].explain(deleted, drifted=drifted) for actor in own):
            continue
        else:
            why = f"{znode.path} was deleted in its session {znode.created.session}, and {znode.member} had not asked"
            why += " for it"
        found.append(Violation(why, (znode.created.id, deleted.id), znode.rank))
    return found


def late_deletions(history: History, crashes: Iterable[Kill]) -> list[str]:
    """Znodes that a killed member's session deleted after the kill, where the member's operations are only
    counted: doubts, not violations, as a request may have been under way."""
    deletes = _deletes(history)
    return [
        f"{znode.path} was deleted after {crash.member} was killed, and its operations were not recorded"
        for crash in crashes
        if str(crash.began.of("target")) not in deletes
        for znode in _ended_early(crash.znodes)
        if znode.deleted is not None and znode.deleted.at_us > crash.began.at_us + TOLERANCE_US
    ]


def _ended_early(znodes: Iterable[Znode]) -> list[Znode]:
    """Those that their own session's end did not take along, and no other session deleted (which is a
    violation in any case)."""
    return [
        znode
        for znode in znodes
        if znode.deleted is not None
        and znode.deleted.kind is Kind.DELETED
        and znode.closed is None
        and znode.deleted.session == znode.created.session
    ]


def _deletes(history: History) -> dict[str, _Deletes]:
    """Actor -> its requests, of every process whose operations are recorded one by one."""
    found = {actor: _Deletes() for actor in recorded_singly(history)}
    for event in events_of(history, Kind.INVOKED, Kind.OK, Kind.FAILED_OP):
        its = found.get(event.actor)
        if its is None or event.of("op") != "delete":
            continue
        if event.kind is Kind.INVOKED:
            its.open[event.n] = event
            continue
        its.open.pop(event.of("of"), None)
        if event.kind is Kind.OK:
            its.done.add((event.zxid, event.of("path")))
    return found
