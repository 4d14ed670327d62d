"""All partitions of a topic have one ISR (claim E5c).

The article says that ZooKeeper keeps the in-sync replicas for each topic. Compared are partitions of a topic that have
the same replicas, whatever their order. Their ISRs, as sets, may differ for a moment, because each stands in a znode of
its own; a difference that lasts for a second is none of a moment. Only topics of which an ISR has lost a replica decide
anything.

Witness: the two states that differed for the longest time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import Place, Stood, assignments, partition_states, stood
from rebalance_lab.checks.phases import closing_us
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History

#: Two ISRs that differ for a shorter time may be about to be alike.
LEAST_US = 1_000_000


class Difference(NamedTuple):
    """Two states at once, for so long."""

    one: Stood
    other: Stood
    lasts_us: int


def judge(history: History) -> Finding:
    """Measures: `count`, differences that last; `longest_us`, the longest of all; `pairs` of partitions that were
    compared."""
    pairs = comparable(history)
    states = stood(history, closing_us(history)[0])
    found = [each for pair in pairs for each in _differences(*(states.get(place, []) for place in pair))]
    lasting = [each for each in found if each.lasts_us >= LEAST_US]
    measures = {
        "count": len(lasting),
        "longest_us": max((each.lasts_us for each in found), default=0),
        "pairs": len(pairs),
    }
    if not lasting:
        return not_violated(history, "partitions with the same replicas had the same ISR", measures)
    worst = max(lasting, key=lambda each: each.lasts_us)
    isrs = " and ".join(str(sorted(each.state.isr)) for each in (worst.one, worst.other))
    why = f"for {seconds(worst.lasts_us)} two partitions of a topic had the ISRs {isrs}"
    return violated(why, (worst.one.event.id, worst.other.event.id), measures)


def comparable(history: History) -> list[tuple[Place, Place]]:
    """Pairs of partitions of one topic with the same replicas, of which one has lost a replica from its ISR."""
    replicas = assignments(history)
    shrunk = {
        place
        for place, states in partition_states(history).items()
        if any(len(state.isr) < len(replicas.get(place, ())) for _, state in states)
    }
    return [
        (one, other)
        for one, other in combinations(sorted(replicas), 2)
        if one[0] == other[0] and set(replicas[one]) == set(replicas[other]) and {one, other} & shrunk
    ]


def _differences(ones: list[Stood], others: list[Stood]) -> Iterator[Difference]:
    """Each pair of states that stood at the same time and differ."""
    for one in ones:
        for other in others:
            lasts_us = min(one.until_us, other.until_us) - max(one.event.at_us, other.event.at_us)
            if lasts_us > 0 and set(one.state.isr) != set(other.state.isr):
                yield Difference(one, other, lasts_us)


CHECK = Check(
    name="isr_of_topic",
    compares=(Layer.REGISTRY,),
    meaning="Two partitions of a topic with the same replicas had different in-sync replicas for a second or longer.",
    together="The topic has these replicas, and which of them are in sync depends on the partition.",
    statement="All partitions of a topic have one ISR",
    plants=(Planted("shrinks-first-partition", "isr-per-partition", settings={"trouble": "dies"}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=comparable,
)
