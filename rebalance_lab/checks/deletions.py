"""Deletions of znodes while their session was open, and whether their member asked for them (for claim Z1).

A member never deletes its id, which goes with its session (`ZookeeperConsumerConnector.shutdown`, Kafka 0.8.2, only
closes the client). A member deletes its owner znodes itself. So each DELETED of an owner znode that did not come with
the end of a session needs a `delete` of that path by a process of that session: one that was answered with OK at the
DELETED's zxid, or one without an answer.

A `delete` without an answer explains one DELETED: the first of its path and session after it was sent. ZooKeeper
executes the writes of a session in the order in which they were sent, also across a reconnect (SessionMovedException).
So a DELETED after the next write of the session that is answered with OK has another reason. A DELETED after the kill
of its member that only such a request explains is a doubt: the request may have been under way.

If the operations of a process are only counted, its attempts must explain the DELETED. A member of Kafka 0.8.2 releases
partitions only in an attempt (`ZKRebalancerListener.rebalance`), so a DELETED outside of its attempts, 2 ms either way,
has another reason. A DELETED in an attempt is a doubt if the process counted fewer `delete` than its sessions had
DELETED, or if ZooKeeper refused with NoNode a write before the attempt's decision: then the member deleted what had
already gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted
from rebalance_lab.checks.members import Attempt, member_lives
from rebalance_lab.checks.operations import WRITES, counted_deletes, only_counted, recorded_singly
from rebalance_lab.checks.znodes import Kill, Violation, Znode, sessions_of
from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import actor_by_session, events_of, once, registry

#: ZooKeeper's error code of a write to a znode that does not exist.
NO_NODE = -101


@dataclass(slots=True)
class _Unanswered:
    """A `delete` without a definite answer. `until`: the zxid of the session's next write with OK; None if there is
    none."""

    asked: Event
    until: int | None = None

    def may_have_done(self, deleted: Event, *, drifted: bool) -> bool:
        asked = self.asked
        return (
            (asked.of("path"), asked.session) == (deleted.of("path"), deleted.session)
            and (self.until is None or (deleted.zxid or 0) < self.until)
            and (drifted or asked.at_us <= deleted.at_us + TOLERANCE_US)
        )


@dataclass(slots=True)
class _Deletes:
    """The `delete` requests of one process. `done`: (zxid, path) of those answered with OK; `open`: those without a
    definite answer, by n of their INVOKED, in the order in which they were sent."""

    done: set[tuple[int | None, object]] = field(default_factory=set)
    open: dict[object, _Unanswered] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Record an INVOKED, OK or FAILED_OP of any operation."""
        if event.kind is Kind.INVOKED:
            if event.of("op") == "delete":
                self.open[event.n] = _Unanswered(event)
            return
        self.open.pop(event.of("of"), None)
        if event.kind is Kind.OK and event.of("op") in WRITES:
            self._close(event)
            if event.of("op") == "delete":
                self.done.add((event.zxid, event.of("path")))

    def _close(self, answer: Event) -> None:
        sent = answer.of("of")
        for one in self.open.values():
            earlier = isinstance(sent, int) and one.asked.n < sent and one.asked.session == answer.session
            if earlier and one.until is None:
                one.until = answer.zxid

    def explain(self, deleted: Event, *, drifted: bool) -> bool | None:
        """Whether an answer shows that the process asked for a deletion; None if it did not ask. This uses up a request
        without an answer."""
        if (deleted.zxid, deleted.of("path")) in self.done:
            return True
        found = [n for n, one in self.open.items() if one.may_have_done(deleted, drifted=drifted)]
        if not found:
            return None
        del self.open[found[0]]
        return False


def unasked(history: History, znodes: Sequence[Znode]) -> list[Violation]:
    """Ids that were deleted while their session was open; and owner znodes for which no process of that session had
    asked, or, if its operations are only counted, was in an attempt."""
    closed = {event.session: event.zxid or 0 for event in events_of(history, Kind.SESSION_CLOSED)}
    recorded, requested = recorded_singly(history), _requested(history)
    found: list[Violation] = []
    for znode in _ended_early(znodes):
        deleted = znode.deleted
        assert deleted is not None
        if closed.get(znode.created.session, deleted.zxid or 0) < (deleted.zxid or 0):
            continue  # it outlived its session: a violation in any case
        own = {actor for actor, its in sessions_of(history).items() if znode.created.session in its}
        counted = own & only_counted(history)
        if znode.is_id:
            why = f"{znode.path} was deleted while its session {znode.created.session} was open"
        elif not own or own - recorded - counted or deleted.id in requested or _in_attempt(history, counted, deleted):
            continue
        else:
            why = f"{znode.path} was deleted in its session {znode.created.session}, but {znode.member} "
            why += "was in no attempt" if counted else "had not asked for it"
        found.append(Violation(why, (znode.created.id, deleted.id), znode.rank, by_time=bool(counted)))
    return found


def doubtful(history: History, znodes: Sequence[Znode]) -> list[str]:
    """Why deletions in attempts need not be the member's own, for processes whose operations are only counted."""
    asked, actors = counted_deletes(history), actor_by_session(history)
    gone = Counter(actors.get(znode.created.session) for znode in _ended_early(znodes) if not znode.is_id)
    found = [
        f"{gone[actor]} owner znodes of {actor} were deleted while its session was open, but it asked for {number}"
        for actor, number in asked.items()
        if gone[actor] > number
    ]
    for event in events_of(history, Kind.FAILED):
        actor = actors.get(event.session)
        if actor is None or actor not in asked or event.of("code") != NO_NODE:
            continue
        if _before_decision(history, actor, event):
            found.append(f"{actor} tried to release what had already gone (refused at zxid {event.zxid or 0:#x})")
    return found


def late_deletions(history: History, crashes: Iterable[Kill]) -> list[str]:
    """Znodes that a killed member's session deleted after the kill, if no answer shows that the member asked for it, or
    if its operations are only counted: doubts, not violations, because a request may have been under way."""
    recorded, requested = recorded_singly(history), _requested(history)
    found: list[str] = []
    for crash in crashes:
        counted = str(crash.began.of("target")) not in recorded
        for znode in _ended_early(crash.znodes):
            deleted = znode.deleted
            if deleted is None or deleted.at_us <= crash.began.at_us + TOLERANCE_US:
                continue
            late = f"{znode.path} was deleted after {crash.member} was killed"
            if counted:
                found.append(f"{late}, and its operations were not recorded")
            elif requested.get(deleted.id) is False:
                found.append(f"{late}, and its delete request had no answer")
    return found


def _ended_early(znodes: Iterable[Znode]) -> list[Znode]:
    """Znodes that neither went with their session nor were deleted by another one (which is always a violation)."""
    return [
        znode
        for znode in znodes
        if znode.deleted is not None
        and znode.deleted.kind is Kind.DELETED
        and znode.closed is None
        and znode.deleted.session == znode.created.session
    ]


@once
def _attempts(history: History) -> Mapping[str, Sequence[Attempt]]:
    """The attempts of each process, in the order of its lives."""
    found: dict[str, list[Attempt]] = {}
    for life in member_lives(history):
        found.setdefault(life.actor, []).extend(life.attempts)
    return found


def _in_attempt(history: History, actors: Iterable[str], deleted: Event) -> bool:
    """Whether one of these processes may have been in an attempt."""
    return any(
        attempt.began.at_us <= deleted.at_us + TOLERANCE_US
        and (attempt.ended is None or attempt.ended.at_us >= deleted.at_us - TOLERANCE_US)
        for actor in actors
        for attempt in _attempts(history).get(actor, ())
    )


def _before_decision(history: History, actor: str, refused: Event) -> bool:
    """Whether a process may have been in an attempt and surely had not decided. (The first claim of a topic may also be
    refused with NoNode, because its parent does not exist yet.)"""
    return any(
        attempt.began.at_us <= refused.at_us + TOLERANCE_US
        and (until is None or until.at_us > refused.at_us + TOLERANCE_US)
        for attempt in _attempts(history).get(actor, ())
        for until in (attempt.decided or attempt.ended,)
    )


@once
def _requested(history: History) -> Mapping[EventId, bool]:
    """The DELETED events that a process of their session asked for -> whether an answer shows it. Only for processes
    whose operations are recorded one by one."""
    recorded, drifted = recorded_singly(history), clock_drifted(history)
    deletes = {actor: _Deletes() for actor in recorded}
    for event in events_of(history, Kind.INVOKED, Kind.OK, Kind.FAILED_OP):
        if event.actor in deletes:
            deletes[event.actor].take(event)
    by_session: dict[str | None, list[_Deletes]] = {}
    for actor, its in sessions_of(history).items():
        for session in its if actor in recorded else ():
            by_session.setdefault(session, []).append(deletes[actor])
    found: dict[EventId, bool] = {}
    for event in registry(history):
        for one in by_session.get(event.session, ()) if event.kind is Kind.DELETED else ():
            if (answered := one.explain(event, drifted=drifted)) is not None:
                found[event.id] = answered
    return found
