"""Members that are there and not registered, for Z1: alive and connected at rest, without an id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rebalance_lab.checks.lives import Life, lives
from rebalance_lab.checks.scope import rests_of
from rebalance_lab.checks.znodes import Violation, Znode
from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of


def unregistered(history: History, ids: Sequence[Znode]) -> list[Violation]:
    """Each living member once that was connected at a rest, before the phase `closing`, while its
    session held no id of it in its group. A rest follows a quiet time: a registration is no longer under way."""
    sessions = {event.id: event.session for event in events_of(history, Kind.CONNECTED)}
    by_member: dict[tuple[str, str], list[Znode]] = {}
    for znode in ids:
        by_member.setdefault((znode.group, znode.member), []).append(znode)
    found = []
    for life in lives(history):
        for rest in rests_of(history):
            session = _session_at(life, rest, sessions)
            own = by_member.get((life.group, life.member), ())
            if session is None or _holds(own, session, rest):
                continue
            found.append(_violation(life, rest, session, own))
            break
    return found


def _session_at(life: Life, rest: Event, sessions: Mapping[EventId, str | None]) -> str | None:
    """The session in which it was connected at the rest; None where it was not, or had left."""
    if life.left_us is not None and life.left_us < rest.at_us:  # what is as late as the rest follows it
        return None
    begins = [one.begin for one in life.connected if one.begin_us <= rest.at_us <= one.end_us]
    return next((sessions.get(begin) for begin in begins if begin is not None), None)


def _holds(ids: Iterable[Znode], session: str, rest: Event) -> bool:
    return any(one.created.session == session and one.maybe_there_at(rest) for one in ids)


def _violation(life: Life, rest: Event, session: str, ids: Iterable[Znode]) -> Violation:
    """Names what stands in its way, if anything does (defect F4)."""
    other = next((one for one in ids if one.maybe_there_at(rest)), None)
    why = f"{life.member} ({life.actor}, session {session}) lived at rest, and was not registered"
    if other is None:
        return Violation(why, (life.started.id, rest.id), 0, by_time=True)
    why += f": its id is held by session {other.created.session}"
    return Violation(why, (life.started.id, other.created.id, rest.id), other.rank, by_time=True)
