"""C7 for brokers: a broker takes the znode of another session for its registration, or goes on without one.

`/brokers/ids/<id>` is an ephemeral znode, so it stands for a broker only as long as the session that has created it. A
broker reports its registration with its broker epoch, the zxid of that creation, which it must have made in the session
that it has at that moment, and not in its former one (KAFKA-4229 for `/controller`, KAFKA-7165 for registrations). A
broker that hears that its session has expired must open another one (KAFKA-5473) and register in it (KAFKA-6584), and
what it has registered must not go, or become another session's, while its session lasts. It has a moment for each
(`handover.bound_us`), in which it must be in touch with ZooKeeper; how long a process takes from its start to its first
registration is not judged, and nothing after it has asked to shut down.

Witness: what the broker reported, and the creation that it takes for its own; what shows that it has no session, or no
registration in it; or the creation and the deletion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rebalance_lab.checks.broker_lives import in_lives
from rebalance_lab.checks.broker_registrations import registration_changes, registrations_made
from rebalance_lab.checks.faults import clock_drifted
from rebalance_lab.checks.handover import bound_us
from rebalance_lab.checks.in_touch import beginnings, in_touch_until, undisturbed_until
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.phases import closing_us
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import SHUTS_DOWN
from rebalance_lab.history.views import events_of, once
from rebalance_lab.history.writes import REGISTERED, REPORTED

Wrong = tuple[str, tuple[EventId | None, ...]]


class Gap(NamedTuple):
    """A time for which a session of a broker was without the registration that it should have, or, if `session` is
    None, the broker without a session; `since`: the events that show it. It ends at the latest when the session ends,
    the broker asks to shut down, or the trial is taken down."""

    broker: str
    session: str | None
    begin_us: int
    end_us: int
    since: tuple[EventId, ...]

    @property
    def length_us(self) -> int:
        return self.end_us - self.begin_us


def judge(history: History) -> Finding:
    """Measures: `count`, registrations of other sessions and sessions without one; `registrations`, those that brokers
    have reported; `longest_us`, the longest time that a broker took to register in a session that followed another, or
    went without it."""
    gaps = [] if clock_drifted(history) else [*_without_session(history), *_without_any(history), *_gone(history)]
    wrong = [*_of_others(history), *_too_long(history, gaps)]
    measures = {
        "count": len(wrong),
        "registrations": len(reported(history)),
        "longest_us": max((gap.length_us for gap in gaps), default=0),
    }
    if wrong:
        why, witness = wrong[0]
        return violated(why, witness, measures)
    why = "each broker was registered in the session that it had"
    return not_violated(history, why, measures, across_layers=True)


@once
def reported(history: History) -> list[tuple[Event, str | None]]:
    """Each registration that a broker has reported, and the session that it had."""
    sessions: dict[str, str | None] = {}
    found = []
    for event in events_of(history, Kind.CONNECTED, REPORTED):
        if event.kind is Kind.CONNECTED:
            sessions[event.actor] = event.session
        elif event.of("event") == REGISTERED:
            found.append((event, sessions.get(event.actor)))
    return found


def _of_others(history: History) -> Iterator[Wrong]:
    """Registrations that the broker has not created in the session that it had."""
    created = {event.zxid: event for _, event in registration_changes(history) if event.kind is Kind.CREATED}
    for event, session in reported(history):
        epoch = event.of("broker_epoch")
        registered = created.get(epoch if isinstance(epoch, int) else None)
        what = f"{event.actor} takes itself for registered with broker epoch {epoch}"
        if registered is None:
            yield f"{what}, and no registration has it", (event.id,)
        elif registered.of("ephemeral") is False:
            yield f"{what}, whose znode is not ephemeral", (registered.id, event.id)
        elif registered.session != session:
            yield f"{what}, of session {registered.session}, and is in session {session}", (registered.id, event.id)


def _without_session(history: History) -> Iterator[Gap]:
    """From the moment at which a broker hears that its session has expired to its connection in another one, if it was
    registered before in the same life."""
    expired: dict[str, Event] = {}
    registered: set[str] = set()
    for event, ended in in_lives(history, Kind.EXPIRED, Kind.CONNECTED, REPORTED):
        if ended is not None:
            registered.discard(ended)
            expired.pop(ended, None)
        elif event.kind is Kind.EXPIRED and event.actor in registered:
            expired[event.actor] = event
        elif event.kind is Kind.CONNECTED and event.actor in expired:
            begin = expired.pop(event.actor)
            yield _gap(history, event.actor, None, begin, event, (begin.id,))
        elif event.of("event") == REGISTERED:
            registered.add(event.actor)
    for broker, event in expired.items():
        yield _gap(history, broker, None, event, None, (event.id,))


def _without_any(history: History) -> Iterator[Gap]:
    """From the connection of each session to its registration, if its broker was registered before in the same life."""
    first = {each.created.session: each.created for each in reversed(registrations_made(history))}
    sessions: dict[str, str | None] = {}
    registered: set[str] = set()
    for event, ended in in_lives(history, Kind.CONNECTED, REPORTED):
        if ended is not None:
            registered.discard(ended)
        elif event.kind is not Kind.CONNECTED:
            registered |= {event.actor} if event.of("event") == REGISTERED else set()
        elif sessions.get(event.actor) != event.session:
            sessions[event.actor] = event.session
            made = first.get(event.session)
            if event.actor in registered and (made is None or made.at_us > event.at_us):
                yield _gap(history, event.actor, event.session, event, made, (event.id,))


def _gone(history: History) -> Iterator[Gap]:
    """From the end of each registration that did not go with its session to the next one of that session."""
    actors = {event.of("broker_epoch"): event.actor for event, _ in reported(history)}
    made = registrations_made(history)
    for _, created, ended in made:
        broker = actors.get(created.zxid)
        if broker is not None and ended is not None and ended.of("with_session") is not True:
            its = (each.created for each in made if each.created.session == created.session)
            again = next((each for each in its if (each.zxid or 0) > (ended.zxid or 0)), None)
            yield _gap(history, broker, created.session, ended, again, (created.id, ended.id))


def _gap(
    history: History, broker: str, session: str | None, begin: Event, end: Event | None, since: tuple[EventId, ...]
) -> Gap:
    ends_us = [event.at_us for event in events_of(history, SHUTS_DOWN) if event.actor == broker]
    if session is not None:
        ends_us += [event.at_us for event in events_of(history, Kind.SESSION_CLOSED) if event.session == session]
    ends_us += [closing_us(history)[0] if end is None else end.at_us]
    later_us = [each for each in ends_us if each >= begin.at_us]
    return Gap(broker, session, begin.at_us, min(later_us, default=begin.at_us), since)


def _too_long(history: History, gaps: list[Gap]) -> Iterator[Wrong]:
    limit_us = bound_us(history.trial.world)
    for gap in gaps:
        in_touch_us = (_in_touch_us(history, gap, each) for each in beginnings(history, gap.begin_us, gap.end_us))
        if gap.length_us <= limit_us or all(each <= limit_us for each in in_touch_us):
            continue
        if gap.session is None:
            what = f"{gap.broker} had heard that its session has expired, and had no other"
            yield f"{what} for {seconds(gap.length_us)}", gap.since
        else:
            what = f"{gap.broker} was in session {gap.session} without a registration"
            yield f"{what} for {seconds(gap.length_us)}, and in touch", gap.since


def _in_touch_us(history: History, gap: Gap, begin_us: int) -> int:
    """For how long from a moment on the broker was, or could have been, in touch with ZooKeeper."""
    if gap.session is None:
        return undisturbed_until(history, gap.broker, begin_us, gap.end_us) - begin_us
    return in_touch_until(history, gap.session, gap.broker, begin_us, gap.end_us) - begin_us


CHECK = Check(
    name="lost_registration",
    compares=(Layer.REGISTRY, Layer.OP),
    meaning="A broker took the registration of another session for its own, or went on without one.",
    together="The broker works as before, and for the controller and all others it is dead.",
    plants=(Planted("keeps-registration", "controller-failover", settings={"fault": "expire"}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=reported,
)
