"""A leader counts as committed what a replica of the ISR does not have (R7: the high watermark of each true ISR).

What is committed is in the log of every replica that the state znode names in the ISR of this leader epoch, so that
each of them may lead next. The end of a replica's log is known from what its broker has written since it took its role.
Each move of a leader's high watermark is compared with it: a follower records what it has written before it asks for
more, and the leader hears of it by that. A state that has just been written, or is just about to be replaced, is left
out, and so is a replica whose broker has been started since it took its role last. A replica that joins the ISR is
compared when the state with it is written: a leader that lets it join too early waits for it afterwards, so no later
move would show that. It must also have what leaders before had committed, as far as this one has it: a new leader may
know late what is committed (KAFKA-7128).

Witness: the state, the end of the log that is too short, and the last move of the high watermark, or the event with
which the leader began.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from rebalance_lab.checks.broker_names import broker_names
from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted
from rebalance_lab.checks.log_ends import LogEnds, end_in, replicated_first
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import Place, Stood, lived, lived_of, lives, place_of, stood
from rebalance_lab.checks.phases import closing_us
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import RESTART
from rebalance_lab.history.replicas import COMMITTED, LEADS, REPLICATED, high_watermark_in
from rebalance_lab.history.views import events_of, grouped
from rebalance_lab.wire.cluster import LeaderIsrAndControllerEpoch


class Ahead(NamedTuple):
    """A leader had committed `by` records that a replica in sync did not have. `state`, `end`, `moved`: the witness."""

    why: str
    by: int
    state: EventId
    end: EventId
    moved: EventId


def judge(history: History) -> Finding:
    """Measures: `count`, moves of a high watermark beyond the log of a replica in sync, and replicas that joined with
    too short a log; `most`, the most records that one lacked; `compared`, ends of logs that were compared, `joins`
    those of replicas that joined."""
    compared, found = _compare(history)
    joins, lacking = _compare_joins(history)
    found += lacking
    measures = {
        "count": len(found),
        "most": max((each.by for each in found), default=0),
        "compared": compared + joins,
        "joins": joins,
    }
    if found:
        first = found[0]
        return violated(first.why, (first.state, first.end, first.moved), measures)
    nothing = None if compared else "nothing was committed beside a state that stood"
    why = f"every replica in sync had what was committed, in {compared + joins} comparisons"
    return not_violated(history, why, measures, vacuous=nothing, across_layers=True)


def _compare(history: History) -> tuple[int, list[Ahead]]:
    if clock_drifted(history):
        return 0, []
    names = broker_names(history)
    states = stood(history, closing_us(history)[0])
    ends = LogEnds()
    compared, found = 0, []
    for event in replicated_first(events_of(history, *LogEnds.KINDS, COMMITTED)):
        ends.take(event)
        state = _state_at(states.get(place_of(event), []), event) if event.kind is COMMITTED else None
        if state is not None:
            for end, ahead in _of_isr(event, state, names, ends):
                compared += end
                found += [] if ahead is None else [ahead]
    return compared, found


def _state_at(states: list[Stood], event: Event) -> Stood | None:
    """The state that surely stood at a move of a high watermark, if it is of the same leader epoch."""
    place = bisect_right([each.event.at_us for each in states], event.at_us - TOLERANCE_US)
    if not place:
        return None
    found = states[place - 1]
    stands = event.at_us + TOLERANCE_US <= found.until_us
    return found if stands and found.state.leader_epoch == event.of("leader_epoch") else None


def _of_isr(
    moved: Event, stood_: Stood, names: Mapping[int, str], ends: LogEnds
) -> Iterator[tuple[bool, Ahead | None]]:
    """Of each replica in sync: whether the end of its log is known, and what is wrong with it."""
    place, offset = place_of(moved), high_watermark_in(moved)
    if names.get(stood_.state.leader) != moved.actor:
        return
    for broker in stood_.state.isr:
        end = ends.of(names.get(broker), place)
        if end is None:
            yield False, None
            continue
        by = offset - end_in(end)
        why = (
            f"{place}: {moved.actor} committed up to offset {offset} in leader epoch {moved.of('leader_epoch')}, and "
            f"the log of broker {broker}, which is in the ISR, ended at {end_in(end)}"
        )
        yield True, Ahead(why, by, stood_.event.id, end.id, moved.id) if by > 0 else None


def _compare_joins(history: History) -> tuple[int, list[Ahead]]:
    """The same of replicas that have joined the ISR, when the state with them was written."""
    if clock_drifted(history):
        return 0, []
    names = broker_names(history)
    ends = grouped(events_of(history, *LogEnds.ENDS), lambda each: (each.actor, place_of(each)))
    marks = grouped(events_of(history, LEADS, COMMITTED), partial(lived_of, history))
    compared, found = 0, []
    for place, event, state, joined in _growths(history):
        until_us = event.at_us + TOLERANCE_US
        committed = _committed(
            marks.get(lived(history, place, event.at_us), []),
            names.get(state.leader),
            state,
            event.at_us - TOLERANCE_US,
        )
        for broker in joined:
            end = _last(ends.get((names.get(broker, ""), place), []), until_us)
            if committed is None or end is None or _started(history, end, until_us):
                continue
            compared += 1
            offset, moved = committed
            why = (
                f"{place}: broker {broker} joined the ISR with a log that ended at {end_in(end)}, and {moved.actor} "
                f"had committed up to offset {high_watermark_in(moved)} in leader epoch {moved.of('leader_epoch')}"
            )
            by = offset - end_in(end)
            found += [Ahead(why, by, event.id, end.id, moved.id)] if by > 0 else []
    return compared, found


def _committed(
    marks: Sequence[Event], leader: str | None, state: LeaderIsrAndControllerEpoch, until_us: int
) -> tuple[int, Event] | None:
    """Up to where the leader of a state, and those of earlier leader epochs, had committed until then, and the event
    that says so. Of what earlier ones had, only what this one began with: it may be unclean. None if it had not
    begun."""
    marks = marks[: bisect_right(marks, until_us, key=lambda each: each.at_us)]
    own = [each for each in marks if each.of("leader_epoch") == state.leader_epoch and each.actor == leader]
    began = next((each for each in own if each.kind is LEADS), None)
    if began is None:
        return None
    earlier = [each for each in marks if int(str(each.of("leader_epoch"))) < state.leader_epoch]
    reached = [(high_watermark_in(each), each) for each in own]
    reached += [(min(high_watermark_in(each), end_in(began)), each) for each in earlier]
    return max(reached, key=lambda each: each[0])


def _growths(history: History) -> Iterator[tuple[Place, Event, LeaderIsrAndControllerEpoch, list[int]]]:
    """The states with which replicas joined the ISR in the leader epoch of the state before, and these replicas."""
    for place, states in lives(history):
        for (_, before), (event, state) in pairwise(states):
            joined = sorted(set(state.isr) - set(before.isr))
            if joined and state.leader_epoch == before.leader_epoch:
                yield place, event, state, joined


def _last(events: Sequence[Event], until_us: int) -> Event | None:
    """The last of some events, in their order, up to a time."""
    place = bisect_right(events, until_us, key=lambda each: each.at_us)
    return events[place - 1] if place else None


def _started(history: History, since: Event, until_us: int) -> bool:
    """Whether the node of an event was started again after it."""
    return any(
        each.of("fault") == RESTART and each.of("target") == since.actor and since.at_us < each.at_us <= until_us
        for each in events_of(history, Kind.FAULT_BEGAN)
    )


def _replicated(history: History) -> list[Event]:
    return events_of(history, REPLICATED)


CHECK = Check(
    name="ahead_of_isr",
    compares=(Layer.REGISTRY, Layer.BELIEF, Layer.EFFECT),
    meaning="A leader had counted records as committed that a replica in the ISR did not have.",
    together="The replica may be elected, because it is in the ISR, and consumers can read what it does not have.",
    plants=(Planted("forgets-last-of-isr", "frozen-isr", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=_replicated,
)
