"""What operations cost: requests and payload bytes, which of them are recorded one by one, and which are commits.

Bytes are what a read brought, by what the registry held when it was answered: a read of a znode brings its data, one of
its children their names, and `exists` nothing. Protocol overhead is left out.

Commits: Kafka's consumer commits the offset of each partition that it owns when it stops its fetchers
(auto.commit.enable, on by default): one set, and none in a later attempt, because the offset is the same. If the znode
does not exist yet, the set fails and two creates follow: of the topic's directory, which may exist, and of the znode.
If /consumers/G/offsets does not exist either, two more follow: of this, and of the directory again. (A timer may also
commit an offset that moved, each minute by default: the lab's real members read topics without messages.) Members of
the lab commit nothing: what they write there is an ordinary write. Source: `ZookeeperConsumerConnector.commitOffsets`,
`ZkUtils.updatePersistentPath` (Kafka 0.8.2.2) and `ZkClient.createPersistent` (ZkClient 0.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.members import member_lives
from rebalance_lab.checks.registry_state import Timeline
from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once, registry

#: Operations that read one znode, and those that are one write.
READS = ("get", "children", "exists")
WRITES = ("create", "set", "delete", "multi")

_MULTI_READ = "multi_read"

#: Operations that are neither a read nor a write.
_OTHERS = ("close",)
_KNOWN = frozenset({*READS, *WRITES, _MULTI_READ, *_OTHERS})


def requests(event: Event) -> tuple[int, int]:
    """(reads, writes) of an INVOKED or OPERATIONS; (0, 0) of any other event.

    A multi-read is as many reads as it has parts, a multi is one write. The close of a session is
    neither.
    """
    if event.kind is Kind.INVOKED:
        operation = event.of("op")
        if operation == _MULTI_READ:
            parts = event.of("parts")
            return (len(parts) if isinstance(parts, Sequence) else 1, 0)
        return (int(operation in READS), int(operation in WRITES))
    if event.kind is Kind.OPERATIONS:
        counts = event.of("counts")
        if isinstance(counts, Mapping):
            return (_total(counts, (*READS, "reads")), _total(counts, WRITES))
    return (0, 0)


def uncounted(event: Event) -> str | None:
    """The name of an operation in an INVOKED or OPERATIONS of which `requests` does not know what it costs."""
    counts = event.of("counts") if event.kind is Kind.OPERATIONS else {event.of("op"): 1}
    if not isinstance(counts, Mapping):
        return None
    return next((str(name) for name in counts if name not in _KNOWN and name != "reads"), None)


@once
def recorded_singly(history: History) -> frozenset[str]:
    """The actors whose operations are recorded one by one. Of an actor whose operations are counted (OPERATIONS) only
    the close of a session has an INVOKED and an OK."""
    events = events_of(history, Kind.INVOKED, Kind.OK, Kind.FAILED_OP)
    return frozenset({event.actor for event in events if event.of("op") not in _OTHERS} - only_counted(history))


@once
def only_counted(history: History) -> frozenset[str]:
    """The actors whose operations are counted (OPERATIONS) instead of recorded."""
    return frozenset(event.actor for event in events_of(history, Kind.OPERATIONS))


@once
def counted_deletes(history: History) -> Mapping[str, int]:
    """By actor whose operations are counted: how often it sent a `delete`."""
    found: dict[str, int] = {}
    for event in events_of(history, Kind.OPERATIONS):
        counts = event.of("counts")
        deletes = _total(counts, ("delete",)) if isinstance(counts, Mapping) else 0
        found[event.actor] = found.get(event.actor, 0) + deletes
    return found


def _total(counts: Mapping[object, object], operations: tuple[str, ...]) -> int:
    found = (counts.get(operation) for operation in operations)
    return sum(count for count in found if isinstance(count, int))


# -- commits of offsets --------------------------------------------------------------------------

#: Writes of a commit of one partition; of its first commit; and in addition if no offsets exist yet.
_COMMIT, _FIRST, _WITH_PARENT = 1, 3, 2


@once
def committing(history: History) -> Mapping[str, str]:
    """Actor -> group of the members that commit offsets: only Kafka's own consumers do."""
    return {life.actor: life.group for life in member_lives(history) if life.started.of("rules") == "real"}


def is_commit(event: Event, groups: Mapping[str, str]) -> bool:
    """Whether the writes of an INVOKED are a commit: of the offsets of its member's group, or of their parents.
    `groups`: see `committing`."""
    group, path = groups.get(event.actor), str(event.of("path"))
    return group is not None and (path == _root(group) or path.startswith(f"{_root(group)}/"))


def most_commits(history: History, phase: Event, rest: Event, partitions: Mapping[str, Sequence[int]]) -> int:
    """The most writes of offsets between a phase and the rest that ends it, in a group that reads these partitions (by
    topic). A commit was the first if the registry has its znode's CREATED."""
    group = str(phase.group)
    made = {
        str(event.of("path"))
        for event in events_of(history, Kind.CREATED)
        if phase.at_us - TOLERANCE_US <= event.at_us <= rest.at_us + TOLERANCE_US
    }
    first = _FIRST + _WITH_PARENT * (_root(group) in made)
    places = [f"{_root(group)}/{topic}/{number}" for topic, numbers in partitions.items() for number in numbers]
    return sum(first if place in made else _COMMIT for place in places)


def _root(group: str) -> str:
    return f"/consumers/{group}/offsets"


# -- bytes of payload ----------------------------------------------------------------------------


def payload_bytes(history: History, answers: Iterable[Event]) -> int:
    """The bytes that the reads among these OK events brought."""
    data, names = _sizes(history)
    held = {"get": data, "children": names}
    total = 0
    for answer in answers:
        for operation, path in _reads(history, answer):
            total += held.get(operation, {}).get(path, Timeline()).value(answer.zxid, 0)
    return total


def _reads(history: History, answer: Event) -> Sequence[tuple[str, str]]:
    """(operation, path) of each read that it answers."""
    operation = str(answer.of("op"))
    if operation != "multi_read":
        return [(operation, str(answer.of("path")))]
    number = answer.of("of")
    parts = _parts(history).get((answer.actor, number if isinstance(number, int) else -1))
    return [(str(name), str(path)) for name, path in parts or ()]


@once
def _parts(history: History) -> dict[EventId, Sequence[Sequence[object]]]:
    """The parts of each multi-read, by its INVOKED."""
    asked = ((event.id, event.of("parts")) for event in events_of(history, Kind.INVOKED))
    return {name: parts for name, parts in asked if isinstance(parts, list | tuple)}


@once
def _sizes(history: History) -> tuple[dict[str, Timeline[int]], dict[str, Timeline[int]]]:
    """Path -> the size of its data, and path -> that of the names of its children, in bytes."""
    data: dict[str, Timeline[int]] = {}
    names: dict[str, Timeline[int]] = {}
    for event in registry(history):
        path = event.of("path")
        if event.kind not in {Kind.CREATED, Kind.CHANGED, Kind.DELETED} or not isinstance(path, str):
            continue
        content = "" if event.kind is Kind.DELETED else str(event.of("data") or "")
        data.setdefault(path, Timeline()).put(event, len(content.encode()))
        parent, _, name = path.rpartition("/")
        if event.kind is not Kind.CHANGED:
            children = names.setdefault(parent or "/", Timeline())
            grown = len(name.encode()) if event.kind is Kind.CREATED else -len(name.encode())
            children.put(event, children.last(0) + grown)
    return data, names
