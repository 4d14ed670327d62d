"""A broker obeys an order that is over: of a deposed controller (C5), or for its own former life (C8).

An order (LeaderAndIsr, StopReplica, UpdateMetadata) names the controller, its epoch, and the broker epoch of the life
for which it is meant. Once a broker has obeyed a controller it obeys none of an earlier epoch, and once it knows the
broker epoch of its registration it obeys no order for an earlier one. The broker that the order names as the controller
has won the election of that epoch. A broker may obey a deposed controller as long as it has heard of no other: it
cannot know better.

Witness: what the broker had obeyed, its registration or the election, and the order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rebalance_lab.checks.broker_lives import in_lives
from rebalance_lab.checks.broker_names import registrations
from rebalance_lab.checks.completeness import lost_transactions
from rebalance_lab.checks.elections import Election, elections
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.history.events import Event, EventId, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import OBEYS
from rebalance_lab.history.views import events_of, grouped
from rebalance_lab.history.writes import REGISTERED, REPORTED

Wrong = tuple[str, tuple[EventId, ...]]

#: The broker epoch of an order for any life.
_ANY_LIFE = -1


@dataclass(slots=True)
class _Knows:
    """What a broker knows in one life. `obeyed`: the order of the newest controller; `registered`: the event in which
    its last registration came to be, once it has heard of it."""

    obeyed: Event | None = None
    registered: Event | None = None


def judge(history: History) -> Finding:
    """Measures: `count`, orders that were obeyed and are over; `orders` that were obeyed; `fenced`, those that named a
    life of the broker."""
    orders = events_of(history, OBEYS)
    wrong = list(_wrong(history))
    fenced = sum(_number(each, "broker_epoch") != _ANY_LIFE for each in orders)
    measures = {"count": len(wrong), "orders": len(orders), "fenced": fenced}
    if wrong:
        why, witness = wrong[0]
        return violated(why, witness, measures)
    return not_violated(history, f"{len(orders)} orders were of the newest controller that was heard of", measures)


def _wrong(history: History) -> Iterator[Wrong]:
    won = grouped(elections(history), lambda each: each.epoch)
    incomplete = bool(lost_transactions(history))
    created = {event.zxid: event for _, event in registrations(history).values()}
    known: dict[str, _Knows] = {}
    for event, ended in in_lives(history, OBEYS, REPORTED):
        if ended is not None:
            known.pop(ended, None)
            continue
        knows = known.setdefault(event.actor, _Knows())
        if event.kind is OBEYS:
            yield from _stale(event, knows)
            if not incomplete:
                yield from _impostor(event, won.get(_number(event, "controller_epoch"), []))
            if knows.obeyed is None or _number(event, "controller_epoch") >= _number(knows.obeyed, "controller_epoch"):
                knows.obeyed = event
        elif event.of("event") == REGISTERED:
            knows.registered = created.get(_number(event, "broker_epoch"))


def _stale(order: Event, knows: _Knows) -> Iterator[Wrong]:
    what = f"{order.actor} obeys {order.of('order')} of controller epoch {order.of('controller_epoch')}"
    before = knows.obeyed
    if before is not None and _number(order, "controller_epoch") < _number(before, "controller_epoch"):
        yield f"{what}, and has obeyed epoch {before.of('controller_epoch')}", (before.id, order.id)
    life, registered = _number(order, "broker_epoch"), knows.registered
    if life != _ANY_LIFE and registered is not None and life < (registered.zxid or 0):
        why = f"{what}, which is for broker epoch {life}, and it has registered in {registered.zxid}"
        yield why, (registered.id, order.id)


def _impostor(order: Event, won: list[Election]) -> Iterator[Wrong]:
    """The broker that an order names as the controller has not won its epoch."""
    epoch, number = _number(order, "controller_epoch"), _number(order, "controller")
    what = f"{order.actor} obeys {order.of('order')} of broker {number} as the controller of epoch {epoch}"
    if not won:
        yield f"{what}, which no election has", (order.id,)
    elif all(each.registered not in {None, number} for each in won):
        yield f"{what}, which broker {won[0].registered} has won", (won[0].created.id, order.id)


def _number(event: Event, name: str) -> int:
    return int(str(event.of(name)))


def _orders(history: History) -> list[Event]:
    return events_of(history, OBEYS)


CHECK = Check(
    name="stale_order",
    compares=(Layer.REGISTRY, Layer.BELIEF),
    meaning="A broker obeyed an order of a deposed controller, or one for its own former life.",
    together="The broker knew of something newer when the order came, and had to refuse it.",
    plants=(Planted("obeys-late-orders", "controller-failover", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=_orders,
)
