"""Partitions are added and never removed, and keys move exactly when they are added (claim P3).

A request for more partitions is done; one for fewer is refused with INVALID_PARTITIONS, and the topic keeps them all.
While the number of partitions stays, a record is in the partition that Kafka's default partitioner gives its key (the
hash murmur2, modulo the number), so its partition keeps the order of a key. When the number grows, keys move: the
records of such a key are in two partitions, and nothing says in which order. So records are looked at in the order in
which they were sent: the partition of a key changes only as another number of partitions explains it, from a smaller to
a larger one; within a partition offsets rise; and what was acknowledged is read in the end where it was acknowledged.
A number of partitions explains nothing before the topic has it, nor long after it has grown: clients ask for it again
after `metadata_max_age_ms`. In what is read, the records of a key rise in each partition, and a record is there twice
only if the client could not know whether it had been written. While nothing is reassigned, partitions keep the replicas
that they were given, and a new partition has as many as partition 0
(`AdminZkClient.createNewPartitionsAssignment`, Kafka 3.9.1).

Witness: the request and its answer, or the znode; or two acknowledgements, or one and the read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, unknown, violated
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.keyed import CONSUME_KEYED, PRODUCE_KEYED, RESIZE
from rebalance_lab.history.views import events_of, grouped
from rebalance_lab.wire.cluster import TopicAssignment, read_assignment
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.partitioner import partition_for
from rebalance_lab.wire.paths import topic_path

Wrong = tuple[str, Event, Event]

#: Answers that do not say what has become of the request.
_UNDECIDED = frozenset({ErrorCode.NOT_CONTROLLER.name, ErrorCode.REQUEST_TIMED_OUT.name})

#: Brokers hear of new partitions from the controller before this is over, and clients ask brokers.
TOLD_WITHIN_US = 5_000_000


def judge(history: History) -> Finding:
    """Measures: `count`, what breaks the rule; `moved`, keys with records in two partitions; `stayed`, the other keys;
    `refused`, requests for fewer partitions."""
    acknowledged = keyed_writes(history)
    topic = str(acknowledged[0].topic)
    written = [each for each in events_of(history, Kind.CREATED, Kind.CHANGED) if each.of("path") == topic_path(topic)]
    read = next((each for each in events_of(history, Kind.OK) if each.of("op") == CONSUME_KEYED), None)
    if read is None:
        return unknown(history, "the topic was not read after the writes")
    by_key = grouped(acknowledged, lambda each: str(each.of("key")))
    assignments = [read_assignment(topic, str(each.of("data")).encode()) for each in written]
    counts = [len(each.replicas) for each in assignments]
    sizes = _sizes(history, written, counts)
    wrong = [
        *_resizes(history, written, counts),
        *_replaced(written, assignments),
        *(found for key, its in by_key.items() for found in _moves(key, its, sizes)),
        *_not_read(acknowledged, read),
        *_read_twice(history, acknowledged, read),
    ]
    moved = sum(len({each.of("partition") for each in its}) > 1 for its in by_key.values())
    refused = sum(each.of("op") == RESIZE for each in events_of(history, Kind.FAILED_OP))
    measures = {"count": len(wrong), "moved": moved, "stayed": len(by_key) - moved, "refused": refused}
    if wrong:
        why, *witness = wrong[0]
        return violated(why, tuple(each.id for each in witness), measures)
    nothing = None if moved or history.trial.control else "no key has moved"
    why = f"{moved} of {len(by_key)} keys moved, when there were more partitions, and no partition went"
    return not_violated(history, why, measures, vacuous=nothing)


def keyed_writes(history: History) -> list[Event]:
    """The OK of each write of a record with a key, in the order in which they were sent."""
    return [each for each in events_of(history, Kind.OK) if each.of("op") == PRODUCE_KEYED]


def _resizes(history: History, written: Sequence[Event], counts: Sequence[int]) -> Iterator[Wrong]:
    """Requests that were not answered as they should be, and writes that take partitions away."""
    for (_, before), (event, after) in pairwise(zip(written, counts, strict=True)):
        if after < before:
            yield f"the topic had {before} partitions, and then {after}", written[0], event
    asked = {(each.actor, each.n): each for each in events_of(history, Kind.INVOKED) if each.of("op") == RESIZE}
    for answer in events_of(history, Kind.OK, Kind.FAILED_OP):
        request = asked.get((answer.actor, int(str(answer.of("of"))))) if answer.of("op") == RESIZE else None
        if request is None or answer.of("error") in _UNDECIDED:
            continue
        wanted, error = int(str(request.of("partitions"))), answer.of("error")
        before = max(count for each, count in zip(written, counts, strict=True) if each.at_us <= request.at_us)
        possible = {before, *_meanwhile(history, request, answer, written, counts)}
        expected = {None if wanted > each else ErrorCode.INVALID_PARTITIONS.name for each in possible}
        if error not in expected:
            told = error or "without an error"
            yield f"{wanted} partitions were asked for, of a topic with {before}: answered {told}", request, answer


def _meanwhile(
    history: History, request: Event, answer: Event, written: Sequence[Event], counts: Sequence[int]
) -> list[int]:
    """What the topic got between a request and its answer, if an earlier request has had no answer: it may have been
    carried out as late as that."""
    unanswered = [each for each in events_of(history, Kind.INFO) if each.of("op") == RESIZE]
    if all(each.at_us > request.at_us for each in unanswered):
        return []
    until_us = answer.at_us + TOLERANCE_US
    return [count for each, count in zip(written, counts, strict=True) if request.at_us <= each.at_us <= until_us]


def _replaced(written: Sequence[Event], assignments: Sequence[TopicAssignment]) -> Iterator[Wrong]:
    """Writes that give a partition other replicas, or a new one another number of them than partition 0 has, if nothing
    is reassigned in the trial."""
    if any(each.adding_replicas or each.removing_replicas for each in assignments):
        return
    for (first, before), (event, after) in pairwise(zip(written, assignments, strict=True)):
        for partition, replicas in before.replicas.items():
            now = after.replicas.get(partition, replicas)
            if now != replicas:
                yield f"partition {partition} had the replicas {list(replicas)}, and then {list(now)}", first, event
        wanted = len(before.replicas[0])
        for partition, replicas in after.replicas.items():
            if partition not in before.replicas and len(set(replicas)) != wanted:
                what = f"partition {partition} was added with the replicas {list(replicas)}"
                yield f"{what}, and partition 0 has {wanted}", first, event


@dataclass(frozen=True, slots=True)
class _Size:
    """A number of partitions, and when it can explain where a record is."""

    partitions: int
    from_us: int
    until_us: float


def _sizes(history: History, written: Sequence[Event], counts: Sequence[int]) -> list[_Size]:
    """From the smallest to the largest."""
    age_ms = int(str(history.trial.parameters.get("metadata_max_age_ms", 0)))
    known_us = (age_ms + int(str(history.trial.parameters.get("request_timeout_ms", 0)))) * 1000 + TOLD_WITHIN_US
    began = {count: event.at_us for event, count in reversed(list(zip(written, counts, strict=True)))}
    sizes = sorted(began)
    over = [began[each] + known_us for each in sizes[1:]]
    return [
        _Size(each, began[each] - TOLERANCE_US, until_us)
        for each, until_us in zip(sizes, [*over, math.inf], strict=True)
    ]


def _moves(key: str, writes: Sequence[Event], sizes: Sequence[_Size]) -> Iterator[Wrong]:
    """Records of a key that are elsewhere than a number of partitions explains, or not in order in their partition."""
    at = 0
    last: dict[object, Event] = {}
    for event in writes:
        partition = event.of("partition")
        fits = [
            each
            for each in range(at, len(sizes))
            if partition_for(key.encode(), sizes[each].partitions) == partition
            and sizes[each].from_us <= event.at_us <= sizes[each].until_us
        ]
        where = f"number {event.of('number')} of key {key} is in partition {partition}"
        if not fits:
            yield f"{where}, where no number of partitions puts it", writes[0], event
        else:
            at = fits[0]
        before = last.get(partition)
        if before is not None and _offset(event) <= _offset(before):
            yield f"{where} before number {before.of('number')}, which was sent before it", before, event
        last[partition] = event


def _offset(event: Event) -> int:
    return int(str(event.of("offset")))


def _records(read: Event) -> list[tuple[int, int, str, int]]:
    """Partition, offset, key and number of each, by partition and offset."""
    records = read.of("records")
    assert isinstance(records, list | tuple)
    return sorted((int(each[0]), int(each[1]), str(each[2]), int(each[3])) for each in records)


def _read_twice(history: History, writes: Sequence[Event], read: Event) -> Iterator[Wrong]:
    """Records that are there twice, or after a later one of their key in their partition, though every attempt to write
    them had an outcome."""
    doubtful = {each.of("number") for each in events_of(history, Kind.INFO) if each.of("op") == PRODUCE_KEYED}
    acknowledged = {int(str(each.of("number"))): each for each in writes}
    last: dict[tuple[int, str], int] = {}
    seen: dict[int, int] = {}
    for partition, offset, key, number in _records(read):
        where = f"number {number} of key {key} is in partition {partition} at offset {offset}"
        witness = acknowledged.get(number, writes[0])
        if number not in doubtful:
            if number in seen:
                yield f"{where}, and also in partition {seen[number]}", witness, read
            elif number < last.get((partition, key), number):
                yield f"{where}, after number {last[partition, key]}", witness, read
        seen[number] = partition
        last[partition, key] = max(number, last.get((partition, key), number))


def _not_read(writes: Sequence[Event], read: Event) -> Iterator[Wrong]:
    there = set(_records(read))
    for each in writes:
        place = int(str(each.of("partition"))), _offset(each)
        if (*place, str(each.of("key")), int(str(each.of("number")))) not in there:
            yield f"number {each.of('number')} was acknowledged in partition {place[0]} and is not there", each, read


CHECK = Check(
    name="grow_only",
    compares=(Layer.OP, Layer.REGISTRY),
    meaning="A topic lost partitions, or the records of a key went astray without growth.",
    together="Only a larger number of partitions explains another partition of a key, and partitions never go.",
    plants=(
        Planted("removes-partitions", "grow-only", settings={}),
        Planted("ignores-keys", "grow-only", settings={}),
    ),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=keyed_writes,
)
