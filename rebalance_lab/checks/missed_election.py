"""O10 for controllers: `/controller` went, and a live broker did not look again (claim E2).

Every broker watches `/controller`. When it goes, every other broker that is registered and connected must look at it
anew, which sets the watch for the next time: the reply must come from after the deletion. A broker has until the next
deletion, until a fault disturbs it, until it loses its connection, or until its session or the trial ends; if that is
less than `LEAST_US`, the deletion is not judged for it.

Witness: the deletion, and the broker's last look before it.
"""

from __future__ import annotations

import math

from rebalance_lab.checks.broker_names import registrations
from rebalance_lab.checks.elections import elections
from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted, faults
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.phases import closing_us
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import actor_by_session, events_of, once
from rebalance_lab.wire.paths import CONTROLLER

#: A broker that has not looked by then had time enough: a notification and a request take some milliseconds.
LEAST_US = 1_000_000


def judge(history: History) -> Finding:
    """Measures: `count`, looks that are missing; `deletions` of `/controller`; `looks` that came; `watches`, the
    notifications of deletions."""
    missed: list[tuple[str, Event]] = []
    looked = 0
    for deletion, brokers in judged(history):
        for broker, until_us in brokers:
            if _looks_after(history, broker, deletion, until_us):
                looked += 1
            else:
                missed.append((broker, deletion))
    fired = [event for event in events_of(history, Kind.WATCH_FIRED) if _is_of(event, "deleted")]
    measures = {
        "count": len(missed),
        "deletions": len(judged(history)),
        "looks": looked,
        "watches": len(fired),
    }
    if missed:
        broker, deletion = missed[0]
        last = next((each for each in reversed(_looks(history).get(broker, [])) if each.at_us <= deletion.at_us), None)
        why = f"/controller went, and {broker}, which was registered and connected, did not look again"
        return violated(why, (deletion.id, None if last is None else last.id), measures)
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
    for session, (_, registered) in registrations(history).items():
        broker = actor_by_session(history).get(session)
        if broker is None or (registered.zxid or 0) >= (deletion.zxid or 0):
            continue
        last_us = min(end_us, closed.get(session, end_us))
        connected_us = _connected_until(history, session, deletion.at_us, last_us)
        until_us = _undisturbed_until(history, broker, deletion.at_us, connected_us)
        if until_us - deletion.at_us >= LEAST_US:
            found.append((broker, until_us))
    return found


def _connected_until(history: History, session: str | None, begin_us: int, end_us: int) -> int:
    """When the session lost its connection; `begin_us` if it had none then."""
    lost_us = end_us
    for event in events_of(history, Kind.CONNECTED, Kind.DISCONNECTED):
        if event.session != session or event.at_us > end_us:
            continue
        if event.at_us <= begin_us:
            lost_us = end_us if event.kind is Kind.CONNECTED else begin_us
        elif event.kind is Kind.DISCONNECTED:
            return min(lost_us, event.at_us)
    return lost_us


def _undisturbed_until(history: History, broker: str, begin_us: int, end_us: int) -> int:
    """When the first fault of the broker, or of a server, began; `begin_us` if one was under way then."""
    nodes = set(actor_by_session(history).values())
    began_us = [
        max(fault.began.at_us, begin_us)
        for fault in faults(history)
        if fault.began.at_us <= end_us
        and fault.end_us >= begin_us
        and (fault.began.of("target") == broker or fault.began.of("target") not in nodes)
    ]
    return min([end_us, *began_us])


@once
def _looks(history: History) -> dict[str, list[Event]]:
    """The answered looks of each node at `/controller` that set a watch."""
    asked = {event.id for event in events_of(history, Kind.INVOKED) if _is_look(event)}
    found: dict[str, list[Event]] = {}
    for event in events_of(history, Kind.OK):
        if (event.actor, event.of("of")) in asked:
            found.setdefault(event.actor, []).append(event)
    return found


def _is_look(event: Event) -> bool:
    return (event.of("op"), event.of("path"), event.of("watch")) == ("exists", CONTROLLER, True)


def _is_of(event: Event, kind: str) -> bool:
    return (event.of("path"), event.of("event")) == (CONTROLLER, kind)


def _looks_after(history: History, broker: str, deletion: Event, end_us: int) -> bool:
    """Whether it looked before `end_us`, and saw the tree as it was after the deletion."""
    gone = math.inf if deletion.zxid is None else deletion.zxid
    looks = _looks(history).get(broker, [])
    return any((each.zxid or 0) >= gone and each.at_us <= end_us + TOLERANCE_US for each in looks)


CHECK = Check(
    name="missed_election",
    compares=(Layer.REGISTRY, Layer.OP),
    meaning="The controller was gone, and a broker that was alive and connected did not look for the next one.",
    together="A watch fires once. A broker that does not watch again learns of no later election, and stands for none.",
    plants=(Planted("watches-controller-once", "controller-failover", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=judged,
)
