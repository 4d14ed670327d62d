"""O10 for controllers: `/controller` went, and a live broker did not look again, or did not compete (claim E2).

Every broker watches `/controller`. When it goes, every other broker that is registered and connected must look at it
anew, which sets the watch for the next time: the reply must come from after the deletion. A broker whose look came
before the next election must ask to create the znode, unless a further read shows it that another one was faster. A
broker has until the next deletion, until a fault disturbs it, until it loses its connection, or until its session or
the trial ends; if that is less than `LEAST_US`, the deletion is not judged for it.

Witness: the deletion, and the broker's last look before it; or, if it did not compete, the look after it.
"""

from __future__ import annotations

import math

from rebalance_lab.checks.broker_registrations import registrations_made
from rebalance_lab.checks.elections import elections, looks, requests
from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted
from rebalance_lab.checks.in_touch import LEAST_US, in_touch_until
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.phases import closing_us
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import actor_by_session, events_of, grouped, once
from rebalance_lab.wire.paths import CONTROLLER


def judge(history: History) -> Finding:
    """Measures: `count`, looks and requests that are missing; `deletions` of `/controller`; `looks` that came;
    `watches`, the notifications of deletions."""
    missed: list[tuple[str, Event]] = []
    idle: list[tuple[str, Event, Event]] = []
    looked = 0
    for deletion, brokers in judged(history):
        for broker, until_us in brokers:
            look = _look_after(history, broker, deletion, until_us)
            if look is None:
                missed.append((broker, deletion))
                continue
            looked += 1
            if not _competes(history, look, deletion, until_us):
                idle.append((broker, deletion, look))
    fired = [event for event in events_of(history, Kind.WATCH_FIRED) if _is_of(event, "deleted")]
    measures = {
        "count": len(missed) + len(idle),
        "deletions": len(judged(history)),
        "looks": looked,
        "watches": len(fired),
    }
    if missed:
        broker, deletion = missed[0]
        last = next((each for each in reversed(looks(history).get(broker, [])) if each.at_us <= deletion.at_us), None)
        why = f"/controller went, and {broker}, which was registered and connected, did not look again"
        return violated(why, (deletion.id, None if last is None else last.id), measures)
    if idle:
        broker, deletion, look = idle[0]
        why = f"/controller went, and {broker} saw that nobody had been elected, and did not ask to create it"
        return violated(why, (deletion.id, look.id), measures)
    why = f"all {looked} looks came that had to follow {len(judged(history))} deletions"
    return not_violated(history, why, measures, across_layers=True)


@once
def judged(history: History) -> list[tuple[Event, list[tuple[str, int]]]]:
    """The deletions of `/controller` that are judged, each with the brokers that had to look and the end of their
    time."""
    if clock_drifted(history):
        return []
    deletions = [each.ended for each in elections(history) if each.ended is not None]
    ends = [*(each.at_us for each in deletions), closing_us(history)[0]]
    found = [(each, _had_to_look(history, each, end_us)) for each, end_us in zip(deletions, ends[1:], strict=True)]
    return [each for each in found if each[1]]


def _had_to_look(history: History, deletion: Event, end_us: int) -> list[tuple[str, int]]:
    found = []
    closed = {event.session: event.at_us for event in events_of(history, Kind.SESSION_CLOSED)}
    zxid = deletion.zxid or 0
    for each in registrations_made(history):
        session = each.created.session
        broker = actor_by_session(history).get(session)
        if broker is None or (each.created.zxid or 0) >= zxid or (each.ended and (each.ended.zxid or 0) < zxid):
            continue
        last_us = min(end_us, closed.get(session, end_us))
        until_us = in_touch_until(history, session, broker, deletion.at_us, last_us)
        if until_us - deletion.at_us >= LEAST_US:
            found.append((broker, until_us))
    return found


def _is_of(event: Event, kind: str) -> bool:
    return (event.of("path"), event.of("event")) == (CONTROLLER, kind)


def _look_after(history: History, broker: str, deletion: Event, end_us: int) -> Event | None:
    """Its first look before `end_us` that saw the tree as it was after the deletion."""
    gone = math.inf if deletion.zxid is None else deletion.zxid
    its = looks(history).get(broker, [])
    return next((each for each in its if (each.zxid or 0) >= gone and each.at_us <= end_us + TOLERANCE_US), None)


def _competes(history: History, look: Event, deletion: Event, end_us: int) -> bool:
    """Whether a broker asked to create `/controller` after a look that came before the next election, or read of that
    election; also if it had less than `LEAST_US` for it."""
    following = (each.created.zxid or 0 for each in elections(history))
    elected = next((zxid for zxid in following if zxid > (deletion.zxid or 0)), math.inf)
    if (look.zxid or 0) >= elected or look.at_us + LEAST_US > end_us:
        return True
    asks = [each for each in requests(history) if each.actor == look.actor]
    sees = [each for each in _reads(history).get(look.actor, []) if (each.zxid or 0) >= elected]
    return any(each.n > look.n and each.at_us <= end_us + TOLERANCE_US for each in [*asks, *sees])


@once
def _reads(history: History) -> dict[str, list[Event]]:
    """The answered reads of `/controller` of each node."""
    answers = events_of(history, Kind.OK)
    return grouped((each for each in answers if each.of("path") == CONTROLLER), lambda each: each.actor)


CHECK = Check(
    name="missed_election",
    compares=(Layer.REGISTRY, Layer.OP),
    meaning="The controller was gone, and a broker that was alive and connected did not look for the next, or stand.",
    together="A watch fires once. A broker that does not watch again learns of no later election, and stands for none.",
    plants=(Planted("watches-controller-once", "controller-failover", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=judged,
)
