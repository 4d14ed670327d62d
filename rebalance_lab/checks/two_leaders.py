"""R4, R5: a broker leads in a leader epoch that is not its own.

A leader epoch belongs to the broker that the state znode names with it. A broker may believe that it leads, and take
records from clients, in its own epochs only, and not before the state is written. A leader that was deposed, and does
not know it yet, goes on in its old epoch, which stays its own, also if the topic has been created anew. But if it
begins to lead again after that, the epoch is one of the new topic. `stale_role` says what must be true at rest.

If the registry has lost transactions, epochs that it does not have are left out.

Witness: the state of this epoch, if there is one, and the belief or the append.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from rebalance_lab.checks.broker_lives import in_lives
from rebalance_lab.checks.broker_names import broker_names
from rebalance_lab.checks.completeness import lost_transactions
from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import Place, creations, lives, place_of
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import APPENDED, LEADS
from rebalance_lab.history.views import events_of


class _Began(NamedTuple):
    """The first state of a leader epoch with a leader. `life`: of the topic; a later one has a higher number."""

    event: Event
    leader: int
    life: int


def judge(history: History) -> Finding:
    """Measures: `count`, beliefs and appends in an epoch of another broker, or of none; `leaders`, beliefs that were
    looked at; `appends`, batches that were."""
    wrong = list(_wrong(history))
    leaders, appends = events_of(history, LEADS), events_of(history, APPENDED)
    measures = {"count": len(wrong), "leaders": len(leaders), "appends": len(appends)}
    if wrong:
        why, state, event = wrong[0]
        return violated(why, (None if state is None else state.id, event.id), measures)
    why = f"leader epochs were led by the brokers to which the state znode gave them; beliefs: {len(leaders)}"
    return not_violated(history, why, measures, vacuous=None if leaders else "no broker led", across_layers=True)


def _wrong(history: History) -> Iterator[tuple[str, Event | None, Event]]:
    """Why, the state and what contradicts it."""
    numbers = {name: number for number, name in broker_names(history).items()}
    epochs = _epochs(history)
    incomplete, drifted = bool(lost_transactions(history)), clock_drifted(history)
    led: dict[tuple[str, Place, int], int] = {}
    for event, ended in in_lives(history, LEADS, APPENDED):
        if ended is not None:
            led = {each: life for each, life in led.items() if each[0] != ended}
            continue
        place, epoch = place_of(event), int(str(event.of("leader_epoch")))
        given = epochs.get((place, epoch), [])
        own = [each for each in given if each.leader == numbers.get(event.actor)]
        known = led.get((event.actor, place, epoch))
        if known is not None:
            least = known if event.kind is APPENDED else max(known, _life_at(history, place, event))
            own = [each for each in own if each.life >= least]
        if own and event.kind is LEADS:
            led[event.actor, place, epoch] = own[0].life
        does = "leads" if event.kind is LEADS else "appends"
        what = f"{place}: {event.actor} {does} in leader epoch {epoch}"
        if not given:
            if not incomplete:
                yield f"{what}, which the state znode gives to nobody", None, event
        elif not own:
            yield f"{what}, which the state znode gives to broker {given[-1].leader}", given[-1].event, event
        elif own[0].event.at_us - event.at_us > TOLERANCE_US and not drifted:
            early = seconds(own[0].event.at_us - event.at_us)
            yield f"{what}, {early} before the state znode says so", own[0].event, event


def _epochs(history: History) -> dict[tuple[Place, int], list[_Began]]:
    """To whom the state znodes gave each leader epoch first, in each life of the topic."""
    found: dict[tuple[Place, int], list[_Began]] = {}
    for place, states in lives(history):
        births = [each.zxid or 0 for each in creations(history).get(place.topic, ())]
        life = bisect_right(births, states[0][0].zxid or 0)
        first: dict[int, _Began] = {}
        for event, state in states:
            if state.leader >= 0:
                first.setdefault(state.leader_epoch, _Began(event, state.leader, life))
        for epoch, began in first.items():
            found.setdefault((place, epoch), []).append(began)
    return found


def _life_at(history: History, place: Place, event: Event) -> int:
    """The number of the topic's life at an event, if the clocks tell."""
    born_us = [each.at_us + TOLERANCE_US for each in creations(history).get(place.topic, ())]
    return bisect_right(born_us, event.at_us)


CHECK = Check(
    name="two_leaders",
    compares=(Layer.REGISTRY, Layer.BELIEF, Layer.EFFECT),
    meaning="A broker led a partition, or took records for it, in a leader epoch that was not its own.",
    together="The leader epoch belongs to one broker, and another one acts as if it were its own.",
    plants=(Planted("leads-as-first-of-isr", "isr-election", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
)
