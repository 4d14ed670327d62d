"""Z5a: a member keeps what it will keep, and claims the rest in another session, a new one for each rebalance."""

from __future__ import annotations

from bisect import bisect_right

import z5a_keeps_what_it_will_keep_anyway as keeps
from counterfeit import Counterfeit
from msgspec.structs import replace

from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.files import History, merge
from rebalance_lab.history.views import registry


def _false(seed: int) -> History:
    """Forged: the owner znodes of each attempt are moved to a session of that attempt. All stay open, and the member
    reports each."""
    history = keeps.COUNTERFEIT.false(seed)
    connected = {
        event.session: event for event in history.events if event.kind is Kind.CONNECTED and event.actor.startswith("m")
    }
    standing: dict[object, str] = {}
    sessions: dict[EventId, str] = {}
    made: dict[str, Event] = {}
    for event in registry(history):
        path = event.of("path")
        if event.partition is None:
            continue
        if event.kind is Kind.CREATED and event.session in connected:
            by = connected[event.session]
            session = f"{event.session}{bisect_right(_attempts_us(history, by.actor), event.at_us):x}"
            standing[path] = sessions[event.id] = session
            made[session] = by
        elif event.kind is Kind.DELETED and path in standing:
            session = standing.pop(path)
            if event.of("with_session") is not True:
                sessions[event.id] = session
    moved = [replace(each, session=sessions.get(each.id, each.session)) for each in history.events]
    return History(history.trial, merge([*moved, *_reports(history, made)]))


def _attempts_us(history: History, actor: str) -> list[int]:
    return [event.at_us for event in history.events if event.kind is Kind.ATTEMPT_BEGAN and event.actor == actor]


def _reports(history: History, made: dict[str, Event]) -> list[Event]:
    """A CONNECTED for each session, after all else."""
    count = {event.actor: event.n for event in sorted(history.events, key=lambda event: event.n)}
    found = []
    for session, former in made.items():
        count[former.actor] += 1
        n, at_us = count[former.actor], history.events[-1].at_us
        found.append(replace(former, session=session, n=n, at_us=at_us, cause=None))
    return found


COUNTERFEIT = Counterfeit(
    claim="Z5a",
    check="order_in_rebalance",
    world="Members release only what their next share lacks, and claim the rest in another session of their own, a new "
    "one for each rebalance. What they keep stands in older sessions, which are all open.",
    false=_false,
    honest=keeps.walkthrough,
)
