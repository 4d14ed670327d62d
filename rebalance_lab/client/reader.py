"""Reading several partitions of a topic at once, without a group (`Fetcher` of a consumer with `assign`, Kafka 3.9.1).

Each broker is asked for all partitions that it leads in one request. What cannot be read now is tried again, while the
others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.client.cluster import ClusterClient, NoBroker, RefusedByBroker
from rebalance_lab.client.records import Fetched, fetch_several
from rebalance_lab.client.retries import RETRY_PAUSE_MS, Patience
from rebalance_lab.kernel import Future, Kernel, Scope, Task
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.records import InvalidBatch

#: How long a broker waits for records before it answers that there are none (fetch.max.wait.ms).
MAX_WAIT_MS = 500

#: A record of a partition, or what a request for it came to; None: its leader is known now.
Outcome = Fetched | NoBroker | RefusedByBroker | InvalidBatch | None

#: In place of a broker's id: the request for metadata.
_METADATA = -1


class CannotRead(Exception):
    """A partition cannot be read on. `error`: why."""

    def __init__(self, position: Position, error: RefusedByBroker | InvalidBatch) -> None:
        super().__init__(str(error))
        self.position = position
        self.error = error


@dataclass(slots=True)
class Position:
    """`offset`: of the next record of the partition. `end`: reading ends before this offset; None: never."""

    partition: int
    offset: int
    end: int | None = None

    @property
    def at_end(self) -> bool:
        return self.end is not None and self.offset >= self.end


class _Reading:
    """A partition that is read. `asked`: whether a request for it is under way."""

    def __init__(self, position: Position, patience: Patience) -> None:
        self.position = position
        self.patience = patience
        self.asked = False
        self.not_before_us = 0


class Reader:
    """`timeout_ms`: for how long a partition may be without a leader, or its leader not answer."""

    def __init__(
        self, tasks: Kernel, cluster: ClusterClient, topic: str, positions: Sequence[Position], *, timeout_ms: int
    ) -> None:
        self._tasks = tasks
        self._cluster = cluster
        self._topic = topic
        self._max_wait_ms = min(MAX_WAIT_MS, timeout_ms // 2)
        #: Those that were served last come last, so that none waits for ever behind a long one.
        self._readings = [_Reading(each, Patience(tasks, timeout_ms)) for each in positions]
        self._requests: dict[int, Task[Mapping[int, Outcome]]] = {}

    async def run(self, take: Callable[[int, Fetched], bool]) -> None:
        """Until all partitions are at their ends, or `take(partition, fetched)` returns False. It is called for each
        partition in the order of offsets.

        Raises CannotRead, and for a partition that has been away too long NoBroker or RefusedByBroker.
        """
        async with self._tasks.scope("fetches") as scope:
            while left := [each for each in self._readings if not each.position.at_end]:
                self._ask(scope, left)
                await self._tasks.first(*self._requests.values(), *self._pauses(left))
                if not self._take_answers(take):
                    break
            scope.cancel("everything was read")

    def _ask(self, scope: Scope, left: Sequence[_Reading]) -> None:
        """Send a request to each broker that has none to answer, if there is something to ask it."""
        now_us = self._tasks.now_us()
        due: dict[int, list[_Reading]] = {}
        for each in left:
            if not each.asked and each.not_before_us <= now_us:
                leader = self._cluster.known_leader(self._topic, each.position.partition)
                due.setdefault(_METADATA if leader is None else leader, []).append(each)
        for node, readings in due.items():
            if node in self._requests:
                continue
            for each in readings:
                each.asked = True
            offsets = {each.position.partition: each.position.offset for each in readings}
            work = self._learn(offsets) if node == _METADATA else self._fetch(node, offsets)
            self._requests[node] = scope.spawn(work, f"request to broker {node}")

    def _pauses(self, left: Sequence[_Reading]) -> list[Future[None]]:
        """Until the first of those that must be tried again later."""
        now_us = self._tasks.now_us()
        later = [each.not_before_us - now_us for each in left if not each.asked and each.not_before_us > now_us]
        return [self._tasks.sleep(min(later))] if later else []

    async def _learn(self, offsets: Mapping[int, int]) -> Mapping[int, Outcome]:
        """Of each partition, why its leader is not known; None if it is."""
        try:
            (described,) = await self._cluster.refresh([self._topic])
        except (NoBroker, RefusedByBroker) as error:
            return dict.fromkeys(offsets, error)
        if described.error_code:
            return dict.fromkeys(offsets, RefusedByBroker(described.error_code, f"topic {self._topic}"))
        there = {each.partition_index for each in described.partitions}
        return {each: self._why_not(each, there=each in there) for each in offsets}

    def _why_not(self, partition: int, *, there: bool) -> Outcome:
        name = f"partition {self._topic}-{partition}"
        if not there:
            return RefusedByBroker(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
        known = self._cluster.known_leader(self._topic, partition) is not None
        return None if known else NoBroker(f"{name} has no leader now")

    async def _fetch(self, node: int, offsets: Mapping[int, int]) -> Mapping[int, Outcome]:
        try:
            found = await fetch_several(self._cluster, node, self._topic, offsets, max_wait_ms=self._max_wait_ms)
            return {each: found.get(each) for each in offsets}
        except (NoBroker, RefusedByBroker) as error:
            return dict.fromkeys(offsets, error)

    def _take_answers(self, take: Callable[[int, Fetched], bool]) -> bool:
        """Returns whether to go on."""
        by_partition = {each.position.partition: each for each in self._readings}
        for node in [each for each, task in self._requests.items() if task.done]:
            for partition, outcome in self._requests.pop(node).result().items():
                reading = by_partition[partition]
                reading.asked = False
                if isinstance(outcome, Fetched):
                    reading.patience.succeeded()
                    reading.position.offset = outcome.next_offset
                    if outcome.records:
                        self._readings.remove(reading)
                        self._readings.append(reading)
                    if not take(partition, outcome):
                        return False
                elif outcome is not None:
                    self._failed(reading, outcome)
        return True

    def _failed(self, reading: _Reading, error: NoBroker | RefusedByBroker | InvalidBatch) -> None:
        """Raises what ends the reading."""
        if isinstance(error, InvalidBatch):
            raise CannotRead(reading.position, error)
        if isinstance(error, RefusedByBroker) and error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            raise CannotRead(reading.position, error)
        reading.patience.failed(error)
        reading.not_before_us = self._tasks.now_us() + RETRY_PAUSE_MS * 1000
