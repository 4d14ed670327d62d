"""A leader acknowledges with acks=all what no leader has committed.

The acknowledgement means that every replica in sync has the record, so that it outlives the leader (claim E6). By then
a leader's high watermark has passed the offset, and that leader has recorded it before it answers. If no leader fails
in the moment between, nothing is lost, and `lost_write` finds nothing. Which leader answers does not matter: an
idempotent producer may send again what an earlier one has committed.

In live trials a leader may record its commit a little late (`NOTED_LATE_US`): in a broker of Kafka one thread moves the
high watermark, and another may answer before the first has logged it.

Witness: the attempt, and the acknowledgement.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_lab.checks.early_shrink import NOTED_LATE_US
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import Place, place_of
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import COMMITTED, LEADS, high_watermark_in
from rebalance_lab.history.views import events_of, once
from rebalance_lab.history.writes import PRODUCE, acknowledged


def judge(history: History) -> Finding:
    """Measures: `count`, acknowledgements of what was not committed; `compared`, all that were looked at."""
    asked = asked_of_all(history)
    found = list(_early(history, asked))
    measures = {"count": len(found), "compared": len(asked)}
    if found:
        began, answer = found[0]
        why = (
            f"{place_of(answer)}: {answer.actor} got an acknowledgement of number {answer.of('number')} at offset "
            f"{answer.of('offset')}, which no leader had committed"
        )
        return violated(why, (began.id, answer.id), measures)
    why = f"what was acknowledged had been committed, in {len(asked)} comparisons"
    return not_violated(history, why, measures)


@once
def asked_of_all(history: History) -> list[tuple[Event, Event]]:
    """The attempts with acks=all that were acknowledged at an offset, and these answers, in the order of the
    answers."""
    asked = {each.id: each for each in events_of(history, Kind.INVOKED) if each.of("op") == PRODUCE}
    answered = [(asked.get((each.actor, int(str(each.of("of"))))), each) for each in acknowledged(history)]
    return [
        (began, answer)
        for began, answer in answered
        if began is not None and began.of("acks") is None and answer.of("offset") is not None
    ]


def _early(history: History, asked: list[tuple[Event, Event]]) -> Iterator[tuple[Event, Event]]:
    late_us = 0 if history.trial.world == "simulated" else NOTED_LATE_US
    marks = iter(events_of(history, LEADS, COMMITTED))
    mark = next(marks, None)
    passed: dict[Place, int] = {}
    for began, answer in asked:
        while mark is not None and mark.at_us <= answer.at_us + late_us:
            place = place_of(mark)
            passed[place] = max(passed.get(place, 0), high_watermark_in(mark))
            mark = next(marks, None)
        if passed.get(place_of(answer), 0) <= int(str(answer.of("offset"))):
            yield began, answer


CHECK = Check(
    name="early_ack",
    compares=(Layer.BELIEF, Layer.OP),
    meaning="A leader acknowledged a record with acks=all that no leader had committed.",
    together="The client takes the record for safe, and a replica that may lead next may lack it.",
    plants=(Planted("acks-before-replication", "committed-data", control=True, settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=asked_of_all,
)
