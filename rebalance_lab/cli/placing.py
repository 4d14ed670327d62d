"""What `whatif place` answers: where Kafka would place the replicas of a topic that one line of JSON describes."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Annotated, Any

import msgspec

from controller.placement import Assignment, PlacementError, Start, place, rack_alternated

#: More than any cluster has. A larger number is a typing error, and would fill the memory.
MOST_BROKERS = 10_000
MOST_PARTITIONS = 1_000_000
MOST_STEPS = 20_000_000

Broker = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Position = Annotated[int, msgspec.Meta(ge=-1, le=2**31 - 1)]


class Topic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A topic to place, or partitions to add to one.

    - `brokers`: ids, in the order in which Kafka would list them.
    - `racks`: the rack of each broker, in the order of `brokers`.
    - `fixed_start_index`: position of the first leader, and the first shift; -1 or no value: both are drawn.
    - `next_replica_shift`: the first shift, if it is not `fixed_start_index`.
    - `start_partition_id`: id of the first new partition.
    - `seed`: of what is drawn, so that it can be drawn again.
    """

    brokers: Annotated[tuple[Broker, ...], msgspec.Meta(min_length=1, max_length=MOST_BROKERS)]
    partitions: Annotated[int, msgspec.Meta(le=MOST_PARTITIONS)]
    replication: int
    racks: tuple[str | None, ...] | None = None
    fixed_start_index: Position = -1
    next_replica_shift: Position = -1
    start_partition_id: Position = -1
    seed: int | None = None


_decoder = msgspec.json.Decoder(Topic)


def answer_place(line: bytes) -> dict[str, Any]:
    """The answer to one line: `{"assignment": …}`, or `{"error": …}` if Kafka refuses the topic.

    Raises msgspec's errors for a line that is not a topic.
    """
    topic = _decoder.decode(line)
    wrong = _contradiction(topic)
    if wrong:
        return {"error": wrong}
    racks = _racks(topic)
    start = _start(topic)
    try:
        assignment = place(topic.brokers, topic.partitions, topic.replication, start, racks)
    except PlacementError as error:
        return {"error": str(error)}
    answer: dict[str, Any] = {"assignment": {str(partition): replicas for partition, replicas in assignment.items()}}
    if racks:
        answer["rack_alternated"] = rack_alternated(racks)
    return answer | {
        "fixed_start_index": start.index,
        "next_replica_shift": start.shift,
        "leaders": _counted(topic, assignment, leaders_only=True),
        "replicas": _counted(topic, assignment, leaders_only=False),
    }


def _contradiction(topic: Topic) -> str | None:
    """What no cluster can have, and what to write."""
    twice = sorted(broker for broker, times in Counter(topic.brokers).items() if times > 1)
    if twice:
        return f"broker {twice[0]} occurs more than once in `brokers`; each id may occur only once"
    if topic.racks is not None and len(topic.racks) != len(topic.brokers):
        return f"`racks` has {len(topic.racks)} entries for {len(topic.brokers)} brokers; write one for each, or null"
    steps = topic.partitions * (len(topic.brokers) if topic.racks else max(1, topic.replication))
    if steps > MOST_STEPS and topic.replication <= len(topic.brokers):
        return f"the topic needs up to {steps} steps; the limit is {MOST_STEPS}: ask for fewer partitions"
    return None


def _racks(topic: Topic) -> dict[int, str]:
    given = topic.racks or (None,) * len(topic.brokers)
    return {broker: rack for broker, rack in zip(topic.brokers, given, strict=True) if rack is not None}


def _start(topic: Topic) -> Start:
    """What is not given is drawn, index and shift each for itself, as Kafka does for a new topic."""
    draw = Random(topic.seed)
    drawn_index, drawn_shift = (draw.randrange(len(topic.brokers)) for _ in range(2))
    index = topic.fixed_start_index if topic.fixed_start_index >= 0 else drawn_index
    fallback = topic.fixed_start_index if topic.fixed_start_index >= 0 else drawn_shift
    shift = topic.next_replica_shift if topic.next_replica_shift >= 0 else fallback
    return Start(index, shift, topic.start_partition_id)


def _counted(topic: Topic, assignment: Assignment, *, leaders_only: bool) -> dict[str, int]:
    """Broker -> how many partitions it leads, or how many replicas it holds."""
    chosen = (each for replicas in assignment.values() for each in (replicas[:1] if leaders_only else replicas))
    counts = Counter(chosen)
    return {str(broker): counts[broker] for broker in sorted(topic.brokers)}
