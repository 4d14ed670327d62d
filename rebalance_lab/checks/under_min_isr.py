"""A leader acknowledges, or commits, while fewer replicas are in sync than `min.insync.replicas` asks for.

From Kafka 3.7 on a leader's high watermark does not rise while its ISR is too small (KAFKA-15583), not even if it has
asked for a larger one. So each rise is compared with the ISR that the leader knew last; both are events of one process,
so their order is certain. The state znode may hold another ISR: a smaller one of which the leader has not heard, in
spite of which all whom it counts have the record (`ahead_of_assumed_isr`), or a larger one that does not count yet.
`assumed_isr` and `frozen_isr` compare these two.

Up to 3.6 (the trial's `commits_under_min_isr`) it may rise. In every version a leader refuses a write with acks=all
while its ISR is too small, and looks again when the record is committed (NOT_ENOUGH_REPLICAS_AFTER_APPEND). An
acknowledgement may be on its way while the ISR shrinks. So it is wrong if the ISR, with what the leader had asked for
(KIP-497), was too small from the commit on until the client had the acknowledgement; if nobody had committed the
record, from the beginning of the attempt on. Who acknowledged is not recorded: any leader that had committed up to
that offset may have.

How many must be in sync comes from the trial, the topic's own settings and its replicas in ZooKeeper (`LeastInSync`),
not from brokers.

Witness: the leader's view of its ISR, and the rise; or the attempt, the view, and the acknowledgement.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.leader_beliefs import Belief, LeaderBeliefs
from rebalance_lab.checks.least_in_sync import LeastInSync, commits_below
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import Place, place_of
from rebalance_lab.history.events import Event, EventId, Kind, Layer, order
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import COMMITTED, LEADS, high_watermark_in, largest_isr
from rebalance_lab.history.views import events_of, once
from rebalance_lab.history.writes import PRODUCE, acknowledged

#: A leader and a partition.
_Who = tuple[str, Place]

#: A moment in the order of a history.
_Moment = tuple[float, str, int]

_NEVER: _Moment = (float("inf"), "", 0)


class View(NamedTuple):
    """A broker leads with the ISR of `event`, a LEADS or ISR_ASSUMED, until the moment `end`. `needed`: so many must be
    in sync; 0 if that is not known."""

    event: Event
    end: _Moment
    needed: int

    @property
    def known(self) -> int:
        """How many are in sync, as far as the leader knows."""
        isr = self.event.of("isr")
        assert isinstance(isr, list | tuple)
        return len(isr)

    @property
    def largest(self) -> int:
        """The same with those that it has asked for."""
        return len(largest_isr(self.event))


class Judged(NamedTuple):
    """A rise of a high watermark, or an acknowledgement (`acknowledged`), beside a leader's view, with so many in the
    `isr`."""

    acknowledged: bool
    wrong: bool
    why: str
    witness: tuple[EventId, ...]
    isr: int


def judge(history: History) -> Finding:
    """Measures: `count`, rises of a high watermark and acknowledgements while too few were in sync; `acknowledged`,
    these acknowledgements; `compared`, all that were looked at; `least`, the smallest ISR beside one."""
    judged = _judged(history)
    found = [each for each in judged if each.wrong]
    measures = {
        "count": len(found),
        "acknowledged": sum(each.acknowledged for each in found),
        "compared": len(judged),
        "least": min((each.isr for each in judged), default=0),
    }
    if found:
        return violated(found[0].why, found[0].witness, measures)
    nothing = None if judged else "nothing was committed or acknowledged by a leader that needs more than itself"
    why = f"enough replicas were in sync at each of {len(judged)} commits and acknowledgements"
    return not_violated(history, why, measures, vacuous=nothing)


@once
def _judged(history: History) -> list[Judged]:
    """Those for which one replica in sync is not enough."""
    return [*_answers(history), *_rises(history)]


def _rises(history: History) -> Iterator[Judged]:
    """Each rise of a high watermark, beside what its leader knew of its ISR."""
    if commits_below(history):
        return
    views = _views(history)
    for event in events_of(history, COMMITTED):
        its = views.get((event.actor, place_of(event)), [])
        at = bisect_right(its, order(event), key=lambda each: order(each.event)) - 1
        if at < 0 or order(event) > its[at].end or its[at].needed < 2:
            continue
        view = its[at]
        why = (
            f"{place_of(event)}: {event.actor} committed up to offset {high_watermark_in(event)} in leader epoch "
            f"{event.of('leader_epoch')} with {view.known} in sync, and {view.needed} must be"
        )
        yield Judged(False, view.known < view.needed, why, (view.event.id, event.id), view.known)


def _answers(history: History) -> Iterator[Judged]:
    """Each acknowledgement of acks=all, beside the largest ISR that a leader had while it may have sent it."""
    passed = _passed(history)
    asked = {each.id: each for each in events_of(history, Kind.INVOKED) if each.of("op") == PRODUCE}
    for event in acknowledged(history):
        began = asked.get((event.actor, int(str(event.of("of")))))
        if began is None or began.of("acks") is not None or event.of("offset") is None:
            continue
        beside = list(_beside(history, passed, began, event))
        if not any(each.needed > 1 for each in beside):
            continue
        best = max(beside, key=lambda each: each.largest - each.needed)
        why = (
            f"{place_of(event)}: {event.actor} got an acknowledgement of number {event.of('number')} at offset "
            f"{event.of('offset')} from {best.event.actor}, which had {best.largest} in sync, and {best.needed} must be"
        )
        witness = began.id, best.event.id, event.id
        yield Judged(True, best.largest < best.needed, why, witness, best.largest)


def _beside(
    history: History, passed: dict[_Who, list[tuple[int, Event]]], began: Event, answer: Event
) -> Iterator[View]:
    """What leaders knew of their ISRs while one of them may have sent an acknowledgement: since its high watermark had
    passed the offset, or since the attempt began if that of none had."""
    place, until_us, offset = place_of(answer), answer.at_us + TOLERANCE_US, int(str(answer.of("offset")))
    attempt: _Moment = (began.at_us, "", 0)
    since: dict[_Who, _Moment] = {}
    for who, marks in passed.items():
        first = bisect_right(marks, offset, key=lambda each: each[0]) if who[1] == place else len(marks)
        if first < len(marks) and marks[first][1].at_us <= until_us:
            since[who] = max(order(marks[first][1]), attempt)
    views = _views(history)
    for who in since or [each for each in views if each[1] == place]:
        its = views.get(who, [])
        first = bisect_right(its, since.get(who, attempt), key=lambda each: each.end)
        yield from takewhile(lambda each: each.event.at_us <= until_us, its[first:])


def _passed(history: History) -> dict[_Who, list[tuple[int, Event]]]:
    """Of each leader the high watermarks that exceeded all before, with the event that says so first."""
    found: dict[_Who, list[tuple[int, Event]]] = {}
    for event in events_of(history, LEADS, COMMITTED):
        marks = found.setdefault((event.actor, place_of(event)), [])
        if not marks or high_watermark_in(event) > marks[-1][0]:
            marks.append((high_watermark_in(event), event))
    return found


@once
def _views(history: History) -> dict[_Who, list[View]]:
    """What each leader knew of its ISR, in the order of the events."""
    least = LeastInSync(history)
    leads: dict[_Who, Event] = {}
    found: dict[_Who, list[View]] = {}

    def ended(belief: Belief, end: _Moment) -> None:
        who = belief.actor, belief.place
        needed = least.during(leads[who], end[0]) if who in leads else 0
        found.setdefault(who, []).append(View(belief.event, end, needed))

    beliefs = LeaderBeliefs()
    for event in events_of(history, *LeaderBeliefs.KINDS):
        for each in beliefs.take(event):
            ended(each, order(event))
        if event.kind is LEADS:
            leads[event.actor, place_of(event)] = event
    for each in beliefs.all:
        ended(each, _NEVER)
    return found


CHECK = Check(
    name="under_min_isr",
    compares=(Layer.REGISTRY, Layer.BELIEF, Layer.OP),
    meaning="A leader acknowledged or committed records while fewer replicas were in sync than min.insync.replicas.",
    together="The leader had to wait for more replicas, or to refuse, and it did not.",
    plants=(Planted("ignores-min-isr", "committed-data", settings={"fault": "kill", "min_isr": "3"}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=_judged,
)
