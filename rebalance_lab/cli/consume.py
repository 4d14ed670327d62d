"""`consume`: the records of a topic, a line each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import islice
from typing import Annotated, TypeVar

import typer

from rebalance_lab.cli.brokers import (
    MOST_PARTITIONS,
    TIMEOUT_MS,
    BootstrapOption,
    TimeoutOption,
    TopicOption,
    with_cluster,
)
from rebalance_lab.cli.failures import CutShort, Failure
from rebalance_lab.cli.options import JsonOption
from rebalance_lab.cli.terminal import print_json
from rebalance_lab.client.cluster import ClusterClient, RefusedByBroker
from rebalance_lab.client.reader import CannotRead, Position, Reader
from rebalance_lab.client.records import Fetched, offset_at
from rebalance_lab.client.retries import with_retries
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.records import InvalidBatch, Record
from rebalance_lab.wire.kafka.sentinels import EARLIEST, LATEST

T = TypeVar("T")

_LAST_OFFSET = 2**63 - 1


def consume(
    *,
    bootstrap: BootstrapOption,
    topic: TopicOption,
    partition: Annotated[
        int | None,
        typer.Option("--partition", help="One partition. Default: all of the topic.", min=0, max=MOST_PARTITIONS),
    ] = None,
    start: Annotated[
        str, typer.Option("--from", help="earliest, latest, or an offset of one partition.", metavar="OFFSET")
    ] = "earliest",
    count: Annotated[
        int | None, typer.Option("--count", help="End after so many records.", min=1, max=_LAST_OFFSET)
    ] = None,
    to_end: Annotated[bool, typer.Option("--to-end", help="End after the last records that are there now.")] = False,
    timeout_ms: TimeoutOption = TIMEOUT_MS,
    as_json: JsonOption = False,
) -> None:
    """Print the records of a topic, a line each, as they come; Ctrl-C ends it.

    Records of one partition are in the order of their offsets; those of several
    partitions mix. With --json a line has the partition, the offset, the time,
    the key and the value.
    """
    records = _Records(topic, partition, _start(start), count, timeout_ms, to_end=to_end, as_json=as_json)
    try:
        with_cluster(bootstrap, records.read, timeout_ms=timeout_ms)
    except KeyboardInterrupt:
        raise CutShort(records.told) from None


def _start(text: str) -> int:
    """An offset, EARLIEST or LATEST. Raises Failure."""
    named = {"earliest": EARLIEST, "latest": LATEST}
    if text in named:
        return named[text]
    if text.isascii() and text.isdigit() and len(text) <= len(str(_LAST_OFFSET)) and int(text) <= _LAST_OFFSET:
        return int(text)
    raise Failure(f"--from {text}: write earliest, latest or an offset, which is at most {_LAST_OFFSET}")


class _Records:
    """The records of a topic on their way to standard output. `partition`: None for all; `start`: an offset, EARLIEST
    or LATEST; `count`: at most so many."""

    def __init__(
        self,
        topic: str,
        partition: int | None,
        start: int,
        count: int | None,
        timeout_ms: int,
        *,
        to_end: bool,
        as_json: bool,
    ) -> None:
        self._topic = topic
        self._partition = partition
        self._start = start
        self._count = count
        self._timeout_ms = timeout_ms
        self._to_end = to_end
        self._as_json = as_json
        self._printed = 0
        self._prints = False
        #: Of the last record that was printed, by partition.
        self._offsets: dict[int, int] = {}

    @property
    def told(self) -> str:
        """What was printed until now."""
        more = ", and perhaps one more" if self._prints else ""
        if not self._printed:
            return f"no records of {self._topic} were printed{more}"
        were = "1 record was" if self._printed == 1 else f"{self._printed} records were"
        if len(self._offsets) > 1:
            return f"{were} printed, of {len(self._offsets)} partitions of {self._topic}{more}"
        ((partition, offset),) = self._offsets.items()
        return f"{were} printed, up to offset {offset} of {self._topic}-{partition}{more}"

    async def read(self, client: ClusterClient, live: LiveKernel) -> None:
        """All of them. Raises Failure, and the errors of the client."""
        await client.refresh([self._topic])  # without retries: an address that is wrong stays wrong
        try:
            positions = [await self._position(client, live, each) for each in await self._partitions(client, live)]
            reader = Reader(live.kernel, client, self._topic, positions, timeout_ms=self._timeout_ms)
            await reader.run(self._take)
        except CannotRead as cannot:
            raise await self._refused(cannot, client, live) from cannot

    async def _partitions(self, client: ClusterClient, live: LiveKernel) -> Sequence[int]:
        """Raises Failure if an offset is to be read from in several."""
        if self._partition is not None:
            return [self._partition]

        async def there() -> Sequence[int]:
            (described,) = await client.refresh([self._topic])
            if described.error_code:
                raise RefusedByBroker(described.error_code, f"topic {self._topic}")
            return sorted(each.partition_index for each in described.partitions)

        found = await self._patiently(live, f"topic {self._topic}", there)
        if self._start >= 0 and len(found) > 1:
            raise Failure(
                f"--from {self._start}: topic {self._topic} has {len(found)} partitions; choose one with --partition"
            )
        return found

    async def _position(self, client: ClusterClient, live: LiveKernel, partition: int) -> Position:
        """Where to begin, and to end. Raises Failure if the beginning is after the end."""
        offset = self._start if self._start >= 0 else await self._offset(client, live, partition, self._start)
        if not self._to_end:
            return Position(partition, offset)
        end = await self._offset(client, live, partition, LATEST)
        if offset > end:
            raise await self._out_of_range(client, live, Position(partition, offset))
        return Position(partition, offset, end)

    async def _offset(self, client: ClusterClient, live: LiveKernel, partition: int, timestamp_ms: int) -> int:
        attempt = partial(offset_at, client, self._topic, partition, timestamp_ms)
        return await self._patiently(live, f"partition {self._topic}-{partition}", attempt)

    async def _patiently(self, live: LiveKernel, what: str, attempt: Callable[[], Awaitable[T]]) -> T:
        return await with_retries(live.kernel, attempt, what=what, timeout_ms=self._timeout_ms)

    def _take(self, partition: int, found: Fetched) -> bool:
        """Print what was found. Returns whether more is wanted."""
        left = None if self._count is None else self._count - self._printed
        for record in islice(found.records, left):
            self._prints = True
            _print(partition, record, as_json=self._as_json)
            self._printed += 1
            self._offsets[partition] = record.offset
            self._prints = False
        return self._printed != self._count

    async def _refused(self, cannot: CannotRead, client: ClusterClient, live: LiveKernel) -> Exception:
        position, error = cannot.position, cannot.error
        if isinstance(error, InvalidBatch):
            return Failure(f"{self._topic}-{position.partition} cannot be read at offset {position.offset}: {error}")
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            return await self._out_of_range(client, live, position)
        return error

    async def _out_of_range(self, client: ClusterClient, live: LiveKernel, position: Position) -> Failure:
        first = await self._offset(client, live, position.partition, EARLIEST)
        end = await self._offset(client, live, position.partition, LATEST)
        there = f"holds offsets {first} to {end - 1}" if end > first else "is empty"
        return Failure(
            f"partition {self._topic}-{position.partition}: OFFSET_OUT_OF_RANGE: offset {position.offset} is not "
            f"there; it {there}, and {end} comes next"
        )


def _print(partition: int, record: Record, *, as_json: bool) -> None:
    if not as_json:
        print(_text(record.value or b""), flush=True)
        return
    place = {"partition": partition, "offset": record.offset, "timestamp_ms": record.timestamp_ms}
    print_json({**place, "key": _text(record.key), "value": _text(record.value)})


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")
