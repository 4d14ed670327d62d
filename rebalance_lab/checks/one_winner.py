"""Brokers compete for `/controller`, and exactly one wins (claim E1).

Looked at are contested elections only: those for which more than one broker has asked, or has seen before that there
was no controller. Each broker that has seen it, and stays in touch with ZooKeeper for a second, asks for the election,
unless it reads first who has won. A controller that is deposed sees it as well, and resigns: its next look counts. Of
all brokers one at most may believe that it is the controller in the epoch of such an election, and it is the one that
has created the znode. `two_controllers` says what must be true of every election, also of those that nobody contests.

Witness: the election, and the belief that contradicts it, or the look after which a broker did not ask.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from rebalance_lab.checks.elections import Election, looks, openings, requests
from rebalance_lab.checks.in_touch import LEAST_US, in_touch_until
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.phases import closing_us
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import CONTROLS
from rebalance_lab.history.views import events_of, grouped
from rebalance_lab.wire.paths import CONTROLLER


def judge(history: History) -> Finding:
    """Measures: `count`, brokers that reign in the epoch of another's election, or did not ask for one; `contested`,
    elections that were looked at; `rivals`, the most brokers that asked for one."""
    found = contested(history)
    believed = grouped(events_of(history, CONTROLS), lambda event: event.of("epoch"))
    wrong = [
        (each, belief)
        for each in found
        if each.epoch is not None
        for belief in believed.get(each.epoch, ())
        if belief.actor != each.winner
    ]
    aside = list(_aside(history))
    measures = {
        "count": len(wrong) + len(aside),
        "contested": len(found),
        "rivals": max(len(each.asked) for each in found),
    }
    if wrong:
        election, belief = wrong[0]
        why = f"{election.winner} won the election of epoch {election.epoch}, and {belief.actor} reigns in it as well"
        return violated(why, (election.created.id, belief.id), measures)
    if aside:
        election, look = aside[0]
        why = f"{look.actor} saw before the election of epoch {election.epoch} that nobody controlled, and did not ask"
        return violated(why, (look.id, election.created.id), measures)
    return not_violated(history, f"{len(found)} elections were contested, and each had one winner", measures)


def contested(history: History) -> list[Election]:
    """Elections for which more than one broker has asked, or has seen that there was no controller."""
    return [each for each, saw in openings(history) if len(each.asked | {look.actor for look in saw}) > 1]


def _aside(history: History) -> Iterator[tuple[Election, Event]]:
    """Brokers that have seen that there was no controller, and did not ask: the election, and their look."""
    asks = grouped(requests(history), lambda event: event.actor)
    reads = grouped((event for event in events_of(history, Kind.OK) if _is_read(event)), lambda event: event.actor)
    end_us, _ = closing_us(history)
    for election, saw in openings(history):
        won = election.created.zxid or 0
        for look in saw:
            following = _next_look(history, look)
            next_look = math.inf if following is None else following.n
            asked = any(look.n < each.n < next_look for each in asks.get(look.actor, ()))
            read = any(each.n > look.n and (each.zxid or 0) >= won for each in reads.get(look.actor, ()))
            until_us = in_touch_until(history, look.session, look.actor, look.at_us, end_us)
            if not asked and not read and until_us - look.at_us >= LEAST_US:
                yield election, look


def _next_look(history: History, look: Event) -> Event | None:
    return next((each for each in looks(history)[look.actor] if each.n > look.n), None)


def _is_read(event: Event) -> bool:
    """Whether a broker was answered what `/controller` holds."""
    return event.of("path") == CONTROLLER and event.of("op") != "exists"


CHECK = Check(
    name="one_winner",
    compares=(Layer.REGISTRY, Layer.BELIEF, Layer.OP),
    meaning="Several brokers competed for /controller, and more than one reigned in its epoch, or one did not ask.",
    together="Every broker asks, ZooKeeper lets one create the znode, and no other acts as if it had.",
    plants=(Planted("repeats-controller-epoch", "controller-race", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=contested,
)
