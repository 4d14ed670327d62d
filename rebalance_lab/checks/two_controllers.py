"""C2, C3, C7: an election of the controller has two winners, or none (claim E1).

Each creation of `/controller` must raise `/controller_epoch` by exactly one in the same transaction, and nothing else
may change that number. The znode must name the broker whose session created it. A broker that believes that it is the
controller must have won the election of its epoch: so no epoch has two controllers, and no broker takes the znode of
another, or of its own former session, for its own (KAFKA-4229).

Witness: the election and what contradicts it.
"""

from __future__ import annotations

from rebalance_lab.checks.elections import Election, elections, epoch_changes, epoch_in
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.history.events import Event, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import CONTROLS
from rebalance_lab.history.views import events_of

Wrong = tuple[str, tuple[Event, ...]]


def judge(history: History) -> Finding:
    """Measures: `count`, contradictions; `elections`; `contested`, elections for which more than one broker asked."""
    found = elections(history)
    wrong = [*_epochs(history, found), *_names(found), *_beliefs(history, found)]
    contested = sum(len(each.asked) > 1 for each in found)
    measures = {"count": len(wrong), "elections": len(found), "contested": contested}
    if wrong:
        why, witness = wrong[0]
        return violated(why, tuple(event.id for event in witness), measures)
    elected = "1 election" if len(found) == 1 else f"{len(found)} elections"
    why = f"{elected}, each with one winner and an epoch of its own"
    return not_violated(history, why, measures, vacuous=None if found else "no controller was elected")


def _epochs(history: History, found: list[Election]) -> list[Wrong]:
    wrong: list[Wrong] = []
    changes = epoch_changes(history)
    of_elections = {each.raised.id for each in found if each.raised is not None}
    before = 0
    for event in changes:
        epoch = epoch_in(event)
        if event.id not in of_elections:
            wrong.append((f"the controller epoch became {event.of('data')} without an election", (event,)))
        elif epoch != before + 1:
            wrong.append((f"the controller epoch went from {before} to {event.of('data')}", (event,)))
        before = before if epoch is None else epoch
    without = [each for each in found if each.raised is None]
    wrong += [
        (f"broker {each.broker_id} became the controller without an epoch of its own", (each.created,))
        for each in without
    ]
    return wrong


def _names(found: list[Election]) -> list[Wrong]:
    return [
        (f"/controller names broker {each.broker_id}, and broker {each.registered} has created it", (each.created,))
        for each in found
        if each.registered is not None and each.registered != each.broker_id
    ]


def _beliefs(history: History, found: list[Election]) -> list[Wrong]:
    won: dict[object, Election] = {each.epoch: each for each in found if each.epoch is not None}
    wrong: list[Wrong] = []
    for event in events_of(history, CONTROLS):
        election = won.get(event.of("epoch"))
        if election is None:
            wrong.append(
                (
                    f"{event.member} believes that it controls in epoch {event.of('epoch')}, which no election has",
                    (event,),
                )
            )
        elif election.winner != event.actor:
            epoch = event.of("epoch")
            why = f"{event.member} believes that it controls in epoch {epoch}, which {election.winner} has won"
            wrong.append((why, (election.created, event)))
    return wrong


CHECK = Check(
    name="two_controllers",
    compares=(Layer.REGISTRY, Layer.BELIEF),
    meaning="Two brokers took themselves for the controller of one epoch, or an election did not raise the epoch.",
    together="One of them has won the election, and the other acts as if it had.",
    plants=(Planted("repeats-controller-epoch", "controller-race", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=elections,
)
