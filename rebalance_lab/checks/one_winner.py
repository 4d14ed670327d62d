"""Brokers compete for `/controller`, and exactly one wins (claim E1).

Looked at are contested elections only: those for which more than one broker has asked. Of all brokers one at most may
believe that it is the controller in the epoch of such an election, and it is the one that has created the znode.
`two_controllers` says what must be true of every election, also of those that nobody contests.

Witness: the election, and the belief that contradicts it.
"""

from __future__ import annotations

from rebalance_lab.checks.elections import Election, elections
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import CONTROLS
from rebalance_lab.history.views import events_of, grouped


def judge(history: History) -> Finding:
    """Measures: `count`, brokers that reign in the epoch of another's election; `contested`, elections that were looked
    at; `rivals`, the most brokers that asked for one."""
    found = contested(history)
    believed = grouped(events_of(history, CONTROLS), lambda event: event.of("epoch"))
    wrong = [
        (each, belief)
        for each in found
        if each.epoch is not None
        for belief in believed.get(each.epoch, ())
        if belief.actor != each.winner
    ]
    measures = {"count": len(wrong), "contested": len(found), "rivals": max(len(each.asked) for each in found)}
    if wrong:
        election, belief = wrong[0]
        why = f"{election.winner} won the election of epoch {election.epoch}, and {belief.actor} reigns in it as well"
        return violated(why, (election.created.id, belief.id), measures)
    return not_violated(history, f"{len(found)} elections were contested, and each had one winner", measures)


def contested(history: History) -> list[Election]:
    """Elections for which more than one broker has asked."""
    return [each for each in elections(history) if len(each.asked) > 1]


CHECK = Check(
    name="one_winner",
    compares=(Layer.REGISTRY, Layer.BELIEF),
    meaning="Several brokers competed for /controller, and more than one reigned in the epoch of this election.",
    together="ZooKeeper let one broker create the znode, and another one acts as if it had.",
    plants=(Planted("repeats-controller-epoch", "controller-race", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=contested,
)
