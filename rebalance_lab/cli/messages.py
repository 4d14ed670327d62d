"""`produce` and `consume`: records of one partition, a line each."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from enum import StrEnum
from functools import partial
from itertools import islice
from typing import Annotated, TypeVar

import typer

from rebalance_lab.cli.brokers import BootstrapOption, with_cluster
from rebalance_lab.cli.failures import Failure
from rebalance_lab.cli.options import JsonOption
from rebalance_lab.cli.terminal import print_json
from rebalance_lab.client.cluster import ClusterClient, RefusedByBroker
from rebalance_lab.client.records import Producer, fetch, new_producer, offset_at, produce
from rebalance_lab.client.retries import with_retries
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.records import Compression, InvalidBatch, Record
from rebalance_lab.wire.kafka.sentinels import EARLIEST, LATEST

T = TypeVar("T")

#: Lines, and bytes, that go into one batch. A longer line is a batch of its own.
BATCH_LINES = 500
BATCH_BYTES = 1 << 19

#: How long a partition may be without a leader, or its leader not answer.
TIMEOUT_MS = 30_000

#: Refusals of a batch that smaller ones may avoid (`Sender.completeBatch`, Kafka 3.9.1, splits it).
TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})

_LAST_OFFSET = 2**63 - 1

#: How often, and after which pause, a topic that was just created is asked for again.
CREATION_ATTEMPTS = 50
CREATION_PAUSE_MS = 100


class Acks(StrEnum):
    none = "0"
    leader = "1"
    all = "all"


class Compressions(StrEnum):
    none = "none"
    gzip = "gzip"
    snappy = "snappy"
    lz4 = "lz4"
    zstd = "zstd"


_ACKS = {Acks.none: 0, Acks.leader: 1, Acks.all: -1}

TopicOption = Annotated[str, typer.Option("--topic", help="The topic.", metavar="TOPIC")]
PartitionOption = Annotated[int, typer.Option("--partition", help="The partition.", min=0)]
TimeoutOption = Annotated[
    int, typer.Option("--timeout-ms", help="How long to wait for brokers that are away.", min=0, max=86_400_000)
]


def produce_lines(
    *,
    bootstrap: BootstrapOption,
    topic: TopicOption,
    partition: PartitionOption = 0,
    acks: Annotated[Acks, typer.Option("--acks", help="0, 1 or all: who must have written it.")] = Acks.all,
    compression: Annotated[
        Compressions, typer.Option("--compression", help="none, gzip, snappy, lz4 or zstd.")
    ] = Compressions.none,
    key_separator: Annotated[
        str | None, typer.Option("--key-separator", help="What stands before it in a line is the key.", metavar="TEXT")
    ] = None,
    timeout_ms: TimeoutOption = TIMEOUT_MS,
    as_json: JsonOption = False,
) -> None:
    """Write the lines of standard input to a partition, each as a record.

    A topic that does not exist is created, if the brokers do that. The command
    ends with the number of records that were written, and their offsets.
    """
    lines = _Lines(topic, partition, acks, Compression[compression.name.upper()], key_separator, timeout_ms)
    try:
        with_cluster(bootstrap, lines.write)
    except Failure as failure:
        raise Failure(f"{failure}; {lines.written['records']} records were written before") from failure
    written = lines.written
    if as_json:
        print_json(written)
    else:
        where = (
            "" if written["last_offset"] < 0 else f", at offsets {written['first_offset']} to {written['last_offset']}"
        )
        print(f"{written['records']} records were written to {topic}-{partition}{where}")


def consume(
    *,
    bootstrap: BootstrapOption,
    topic: TopicOption,
    partition: PartitionOption = 0,
    start: Annotated[
        str, typer.Option("--from", help="earliest, latest, or an offset.", metavar="OFFSET")
    ] = "earliest",
    count: Annotated[int | None, typer.Option("--count", help="End after so many records.", min=1)] = None,
    to_end: Annotated[bool, typer.Option("--to-end", help="End after the last record that is there.")] = False,
    timeout_ms: TimeoutOption = TIMEOUT_MS,
    as_json: JsonOption = False,
) -> None:
    """Print the records of a partition, a line each, as they come; Ctrl-C ends it.

    With --json a line has the offset, the time, the key and the value.
    """
    begin = _start(start)

    async def work(client: ClusterClient, live: LiveKernel) -> None:
        async def patiently(attempt: Callable[[], Awaitable[T]]) -> T:
            return await with_retries(live.kernel, attempt, timeout_ms=timeout_ms)

        async def offset_of(timestamp_ms: int) -> int:
            return await patiently(lambda: offset_at(client, topic, partition, timestamp_ms))

        await client.refresh([topic])  # without retries: an address that is wrong stays wrong
        offset = begin if begin >= 0 else await offset_of(begin)
        end = await offset_of(LATEST) if to_end else None
        if end is not None and offset > end:
            raise Failure(_out_of_range(f"{topic}-{partition}", offset, await offset_of(EARLIEST), end))
        left = count
        while left != 0 and (end is None or offset < end):
            try:
                found = await patiently(partial(fetch, client, topic, partition, offset))
            except RefusedByBroker as refused:
                if refused.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                first, end = await offset_of(EARLIEST), await offset_of(LATEST)
                raise Failure(_out_of_range(f"{topic}-{partition}", offset, first, end)) from refused
            for record in islice(found.records, left):
                _print(record, as_json=as_json)
            left = None if left is None else left - min(left, len(found.records))
            offset = found.next_offset

    try:
        with_cluster(bootstrap, work)
    except InvalidBatch as error:
        raise Failure(f"{topic}-{partition} cannot be read: {error}") from error


def _start(text: str) -> int:
    """An offset, EARLIEST or LATEST. Raises Failure."""
    named = {"earliest": EARLIEST, "latest": LATEST}
    if text in named:
        return named[text]
    if text.isascii() and text.isdigit() and len(text) <= len(str(_LAST_OFFSET)) and int(text) <= _LAST_OFFSET:
        return int(text)
    raise Failure(f"--from {text}: write earliest, latest or an offset, which is at most {_LAST_OFFSET}")


def _out_of_range(partition: str, offset: int, first: int, end: int) -> str:
    there = f"holds offsets {first} to {end - 1}" if end > first else "is empty"
    return f"partition {partition}: OFFSET_OUT_OF_RANGE: offset {offset} is not there; it {there}, and {end} comes next"


def _print(record: Record, *, as_json: bool) -> None:
    if not as_json:
        print((record.value or b"").decode("utf-8", "replace"), flush=True)
        return
    texts = {name: None if data is None else data.decode("utf-8", "replace") for name, data in _texts(record)}
    print_json({"offset": record.offset, "timestamp_ms": record.timestamp_ms, **texts})


def _texts(record: Record) -> Sequence[tuple[str, bytes | None]]:
    return (("key", record.key), ("value", record.value))


class _Lines:
    """The lines of standard input on their way into a partition. `written`: how many, and their offsets."""

    def __init__(
        self,
        topic: str,
        partition: int,
        acks: Acks,
        compression: Compression,
        separator: str | None,
        timeout_ms: int,
    ) -> None:
        self.written = {"records": 0, "first_offset": -1, "last_offset": -1}
        self._topic = topic
        self._partition = partition
        self._acks = acks
        self._compression = compression
        self._separator = separator
        self._timeout_ms = timeout_ms
        self._producer: Producer | None = None

    async def write(self, client: ClusterClient, live: LiveKernel) -> None:
        """All of them. With acks=all as an idempotent producer, so that a repeated batch is written once."""
        await _until_there(client, live, self._topic)
        if self._acks is Acks.all:
            self._producer = await with_retries(live.kernel, lambda: new_producer(client), timeout_ms=self._timeout_ms)
        for lines in _batches():
            await self._write([_record(line, self._separator) for line in lines], client, live)

    async def _write(self, new: Sequence[Record], client: ClusterClient, live: LiveKernel) -> None:
        """As one batch, or in halves if it is too large. Raises Failure for a line that is."""

        async def attempt() -> int:
            return await produce(
                client,
                self._topic,
                self._partition,
                new,
                acks=_ACKS[self._acks],
                compression=self._compression,
                producer=self._producer,
            )

        try:
            first = await with_retries(
                live.kernel, attempt, timeout_ms=self._timeout_ms, repeatable=self._producer is not None
            )
        except RefusedByBroker as refused:
            if refused.code not in TOO_LARGE:
                raise
            if len(new) == 1:
                raise Failure(f"line {self.written['records'] + 1}: {refused}") from refused
            half = len(new) // 2
            await self._write(new[:half], client, live)
            await self._write(new[half:], client, live)
            return
        if first >= 0:
            if self.written["records"] == 0:
                self.written["first_offset"] = first
            self.written["last_offset"] = first + len(new) - 1
        self.written["records"] += len(new)


async def _until_there(client: ClusterClient, live: LiveKernel, topic: str) -> None:
    """Have the topic created if it is not there, and wait for its leaders. Raises RefusedByBroker."""
    for _ in range(CREATION_ATTEMPTS):
        (found,) = await client.refresh([topic], create=True)
        if found.error_code != ErrorCode.LEADER_NOT_AVAILABLE:
            break
        await live.kernel.sleep(CREATION_PAUSE_MS * 1000)
    if found.error_code:
        raise RefusedByBroker(found.error_code, f"topic {topic}")


def _batches() -> Iterator[list[bytes]]:
    """The lines of standard input."""
    if sys.stdin is None:
        raise Failure("there is no standard input")
    lines: list[bytes] = []
    size = 0
    for line in sys.stdin.buffer:
        if lines and (len(lines) >= BATCH_LINES or size + len(line) > BATCH_BYTES):
            yield lines
            lines, size = [], 0
        lines.append(line.removesuffix(b"\n"))
        size += len(line)
    if lines:
        yield lines


def _record(line: bytes, separator: str | None) -> Record:
    key, value = None, line
    if separator is not None and separator.encode() in line:
        key, _, value = line.partition(separator.encode())
    return Record(key, value, time.time_ns() // 1_000_000)
