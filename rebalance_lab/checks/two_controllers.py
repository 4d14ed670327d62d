"""C2, C3, C7: an election of the controller has two winners, or none (claim E1).

Each creation of `/controller` must raise `/controller_epoch` by exactly one in the same transaction, or by a write of
its own in the forms before 2.1, and nothing else may change that number. That write must come while the znode is there:
a broker that raises the epoch later has a higher one than its successor, and brokers that hear of it obey no other. If
brokers of those forms are taken down, one may end between the two writes, so an election after the trial has begun to
close needs no epoch. The znode must name the broker whose session created it. A broker that believes that it is the
controller must have won the election of its epoch, in the session that it has at that moment, and not believe it
earlier: so no epoch has two controllers, and no broker takes the znode of another, or of its own former session, for
its own (KAFKA-4229). A winner that is in touch with ZooKeeper for `LEAST_US`, or goes on for `ANSWERED_US` after the
answer to its request, must come to believe it. Only the time before the trial began to close counts: a broker that is
being taken down may still win an election.

At rest the broker that has won the last election controls, and no other believes that it does. Looked at then are
registered brokers that have been in touch with ZooKeeper for `LEAST_US`, as a paused controller cannot know that it was
deposed.

Witness: the election and what contradicts it.
"""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lab.checks.elections import (
    Election,
    elections,
    epoch_changes,
    epoch_in,
    raises_in_one_transaction,
    requests,
)
from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted, events_by_actor
from rebalance_lab.checks.in_touch import LEAST_US, in_touch_throughout, in_touch_until
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.phases import closing_us, rests_of
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import KILL, RESTART
from rebalance_lab.history.replicas import CONTROLS, CONTROLS_NO_MORE
from rebalance_lab.history.views import events_of

Wrong = tuple[str, tuple[Event, ...]]

#: A winner that has been answered believes it at once, and so before anything that it records so long after.
ANSWERED_US = 100_000


def judge(history: History) -> Finding:
    """Measures: `count`, contradictions; `elections`; `contested`, elections for which more than one broker asked."""
    found = elections(history)
    wrong = [*_epochs(history, found), *_names(found), *_beliefs(history, found), *_at_rests(history, found)]
    wrong += _silent(history, found)
    contested = sum(len(each.asked) > 1 for each in found)
    measures = {"count": len(wrong), "elections": len(found), "contested": contested}
    if wrong:
        why, witness = wrong[0]
        return violated(why, tuple(event.id for event in witness), measures)
    elected = "1 election" if len(found) == 1 else f"{len(found)} elections"
    why = f"{elected}, each with one winner and an epoch of its own"
    vacuous = None if found else "no controller was elected"
    return not_violated(history, why, measures, vacuous=vacuous, across_layers=True)


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
    without = [each for each in found if each.raised is None and not _may_lack_one(history, each)]
    wrong += [
        (f"/controller was created for broker {each.broker_id}, and no epoch was raised for it", (each.created,))
        for each in without
    ]
    for each in found:
        raised, ended = each.raised, each.ended
        if raised is not None and ended is not None and (raised.zxid or 0) > (ended.zxid or 0):
            why = f"{each.winner} raised the controller epoch to {raised.of('data')} after its /controller had gone"
            wrong.append((why, (ended, raised)))
    return wrong


def _may_lack_one(history: History, election: Election) -> bool:
    closing_at_us, _ = closing_us(history)
    return not raises_in_one_transaction(history) and election.created.at_us >= closing_at_us - TOLERANCE_US


def _names(found: list[Election]) -> list[Wrong]:
    return [
        (f"/controller names broker {each.broker_id}, and broker {each.registered} has created it", (each.created,))
        for each in found
        if each.registered is not None and each.registered != each.broker_id
    ]


def _beliefs(history: History, found: list[Election]) -> list[Wrong]:
    won = {each.epoch: each for each in found if each.epoch is not None}
    sessions: dict[str, str | None] = {}
    wrong: list[Wrong] = []
    for event in events_of(history, Kind.CONNECTED, CONTROLS):
        if event.kind is Kind.CONNECTED:
            sessions[event.actor] = event.session
            continue
        epoch = _epoch_of(event)
        election = won.get(epoch)
        if election is None:
            why = f"{event.member} believes that it controls in epoch {epoch}, which no election has"
            wrong.append((why, (event,)))
            continue
        created, session = election.created, sessions.get(event.actor)
        early_us = created.at_us - event.at_us
        if election.winner != event.actor:
            why = f"{event.member} believes that it controls in epoch {epoch}, which {election.winner} has won"
            wrong.append((why, (created, event)))
        elif created.session != session:
            what = f"{event.member} believes in session {session} that it controls in epoch {epoch}"
            wrong.append((f"{what}, which it has won in session {created.session}", (created, event)))
        elif early_us > TOLERANCE_US and not clock_drifted(history):
            what = f"{event.member} believes that it controls in epoch {epoch} before its election"
            wrong.append((f"{what}, by {seconds(early_us)}", (event, created)))
    return wrong


def _silent(history: History, found: list[Election]) -> list[Wrong]:
    """Winners that never believed that they control, though they were in touch for `LEAST_US` of their reign, or went
    on after they had been answered."""
    if clock_drifted(history):
        return []
    reigned = {(event.actor, _epoch_of(event)) for event in events_of(history, CONTROLS)}
    wrong: list[Wrong] = []
    for each in found:
        if each.epoch is None or each.winner is None or (each.winner, each.epoch) in reigned:
            continue
        begin_us = each.created.at_us
        closing_at_us, _ = closing_us(history)
        end_us = closing_at_us if each.ended is None else min(closing_at_us, each.ended.at_us)
        in_touch_us = in_touch_until(history, each.created.session, each.winner, begin_us, end_us) - begin_us
        if in_touch_us >= LEAST_US or _went_on(history, each, end_us):
            wrong.append((f"{each.winner} has won epoch {each.epoch}, and never controlled in it", (each.created,)))
    return wrong


def _went_on(history: History, election: Election, end_us: int) -> bool:
    """Whether the winner was answered, was not disturbed, and went on for some time: a live process may have had to
    wait for a core, unless it recorded something."""
    asked, created = {event.id for event in requests(history)}, election.created
    for answer in events_of(history, Kind.OK):
        if (answer.actor, answer.of("of")) in asked and answer.zxid == created.zxid:
            until_us = in_touch_until(history, created.session, answer.actor, answer.at_us, end_us)
            if history.trial.world == "simulated":
                return until_us - answer.at_us >= ANSWERED_US
            own = events_by_actor(history)[answer.actor]
            return any(answer.at_us + ANSWERED_US <= each.at_us < until_us for each in own)
    return False


def _at_rests(history: History, found: list[Election]) -> list[Wrong]:
    """Who does not control at a rest though it should, or the other way round."""
    roles: dict[str, Event] = {}
    wrong: list[Wrong] = []
    rests = {event.id for event in rests_of(history)}
    for event in events_of(history, CONTROLS, CONTROLS_NO_MORE, Kind.FAULT_BEGAN, Kind.REST_REACHED):
        if event.kind in (CONTROLS, CONTROLS_NO_MORE):
            roles[event.actor] = event
        elif event.kind is Kind.FAULT_BEGAN and event.of("fault") in (KILL, RESTART):
            roles[str(event.of("target"))] = event
        elif event.id in rests:
            wrong += _at_rest(history, event, found, roles)
    return wrong


def _at_rest(history: History, rest: Event, found: list[Election], roles: Mapping[str, Event]) -> list[Wrong]:
    """`roles`: the last event of each broker that says whether it controls. What has changed in the last `LEAST_US` is
    not looked at."""
    begin_us = rest.at_us - LEAST_US
    changes = [each for election in found for each in (election.created, election.ended) if each is not None]
    past = [each for each in found if each.created.at_us <= begin_us]
    if not past or clock_drifted(history) or any(begin_us < each.at_us <= rest.at_us for each in changes):
        return []
    last = past[-1]
    wrong: list[Wrong] = []
    stands = last.ended is None or last.ended.at_us > rest.at_us
    for broker in in_touch_throughout(history, begin_us, rest.at_us):
        role = roles.get(broker)
        if role is not None and role.at_us > begin_us:
            continue
        if role is None or role.kind is not CONTROLS:
            if stands and last.winner == broker and last.epoch is not None:
                why = f"at rest {broker}, which has won epoch {last.epoch}, does not control"
                wrong.append((why, (last.created, rest)))
        elif _epoch_of(role) != last.epoch:
            what = f"at rest {broker} believes that it controls in epoch {_epoch_of(role)}"
            wrong.append((f"{what}, and epoch {last.epoch} has begun", (role, rest)))
    return wrong


def _epoch_of(belief: Event) -> int:
    return int(str(belief.of("epoch")))


CHECK = Check(
    name="two_controllers",
    compares=(Layer.REGISTRY, Layer.BELIEF),
    meaning="Two brokers took themselves for the controller of one epoch, or an election did not raise the epoch.",
    together="One of them has won the election, and the other acts as if it had.",
    plants=(
        Planted("repeats-controller-epoch", "controller-race", settings={}),
        Planted("resigns-on-reconnect", "idle-controller", settings={"keeps_reign": "true"}),
    ),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=elections,
)
