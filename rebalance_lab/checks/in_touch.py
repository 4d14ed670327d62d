"""For how long a broker can hear of what happens in ZooKeeper."""

from __future__ import annotations

import math

from rebalance_lab.checks.broker_registrations import registrations_made
from rebalance_lab.checks.faults import Fault, faults
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import KILL, RESTART
from rebalance_lab.history.views import actor_by_session, events_of

#: A broker that is in touch for so long has had time for a notification and some requests, which take milliseconds.
LEAST_US = 1_000_000


def in_touch_until(history: History, session: str | None, broker: str, begin_us: int, end_us: int) -> int:
    """Until when a broker, from `begin_us` on, keeps the connection of its session and no fault disturbs it or a
    server; `end_us` at most, and `begin_us` if it has none then, or is disturbed."""
    return undisturbed_until(history, broker, begin_us, _connected_until(history, session, begin_us, end_us))


def in_touch_throughout(history: History, begin_us: int, end_us: int) -> list[str]:
    """The brokers that were registered, and heard of ZooKeeper, for all of this time."""
    found = []
    for each in registrations_made(history):
        session = each.created.session
        broker = actor_by_session(history).get(session)
        if broker is None or not each.stands(begin_us, end_us):
            continue
        if in_touch_until(history, session, broker, begin_us, end_us) >= end_us:
            found.append(broker)
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


def undisturbed_until(history: History, broker: str, begin_us: int, end_us: int) -> int:
    """When the first fault of the broker, or of a server, began; `begin_us` if one was under way then. A link between
    two brokers is none with ZooKeeper."""
    nodes = set(actor_by_session(history).values())
    began_us = [
        max(fault.began.at_us, begin_us)
        for fault in faults(history)
        if fault.began.at_us <= end_us
        and fault.began.of("peer") is None
        and _disturbs_until(history, fault) >= begin_us
        and (fault.began.of("target") == broker or fault.began.of("target") not in nodes)
    ]
    return min([end_us, *began_us])


def _disturbs_until(history: History, fault: Fault) -> float:
    """A process that was killed hears of nothing until it is started again, though its session goes on for a while."""
    if fault.began.of("fault") != KILL:
        return fault.end_us
    restarts = (
        each.end_us
        for each in faults(history)
        if each.began.of("fault") == RESTART
        and each.began.of("target") == fault.began.of("target")
        and each.began.at_us >= fault.began.at_us
    )
    return min(restarts, default=math.inf)


def beginnings(history: History, begin_us: int, end_us: int) -> list[int]:
    """The moments in a time at which a broker may have come to be in touch: its beginning, the ends of faults, and
    connections."""
    ends = [_disturbs_until(history, fault) + 1 for fault in faults(history)]
    ends += [event.at_us for event in events_of(history, Kind.CONNECTED)]
    return sorted({begin_us, *(int(each) for each in ends if begin_us < each < end_us)})
