"""`produce`: lines of standard input as records of a partition."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated

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
from rebalance_lab.cli.standard_input import InputLines
from rebalance_lab.cli.terminal import print_json
from rebalance_lab.client.cluster import ClusterClient, NoBroker, RefusedByBroker
from rebalance_lab.client.records import Producer, new_producer, produce
from rebalance_lab.client.retries import with_retries
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.records import Compression, Record

#: Lines, and bytes, that go into one batch at most. A longer line is a batch of its own.
BATCH_LINES = 500
BATCH_BYTES = 1 << 19

#: Refusals of a batch that smaller ones may avoid (`Sender.completeBatch`, Kafka 3.9.1, splits it).
TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})

#: Refusals of a batch that the leader has written, and that may be committed yet.
_AFTER_APPEND = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND})


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


def produce_lines(
    *,
    bootstrap: BootstrapOption,
    topic: TopicOption,
    partition: Annotated[int, typer.Option("--partition", help="The partition.", min=0, max=MOST_PARTITIONS)] = 0,
    acks: Annotated[
        Acks, typer.Option("--acks", help="Who must have a record: 0 (nobody), 1 (the leader), all (the ISR).")
    ] = Acks.all,
    compression: Annotated[
        Compressions, typer.Option("--compression", metavar="CODEC", help="none, gzip, snappy, lz4 or zstd.")
    ] = Compressions.none,
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", help="In each line, the text between the key and the value.", metavar="TEXT"),
    ] = None,
    timeout_ms: TimeoutOption = TIMEOUT_MS,
    as_json: JsonOption = False,
) -> None:
    """Write the lines of standard input to a partition, each as a record.

    A line is sent as soon as it is there, with those that came meanwhile. A
    topic that does not exist is created, if the brokers do that. The command
    ends with the number of records that were written, and their offsets.
    """
    if key_separator == "":
        raise Failure("--key-separator is empty; name what stands between key and value, or leave it out")
    lines = _Lines(topic, partition, acks, Compression[compression.name.upper()], key_separator, timeout_ms)
    try:
        with_cluster(bootstrap, lines.write, timeout_ms=timeout_ms)
    except Failure as failure:
        raise Failure(f"{failure}; {lines.told}") from failure
    except KeyboardInterrupt:
        raise CutShort(lines.told) from None
    if as_json:
        print_json(lines.written)
    else:
        print(lines.told)


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
        #: Lines that were read, and those of them that may have been written, though nobody has said so.
        self._read = 0
        self._doubtful = 0

    @property
    def _where(self) -> str:
        return f"{self._topic}-{self._partition}"

    @property
    def told(self) -> str:
        """What became of the lines."""
        written = self.written["records"]
        sent = f"{_records(written)} {'sent' if self._acks is Acks.none else 'written'} to {self._where}"
        if self._acks is Acks.none:
            sent += "; with acks=0 no broker says whether it has written them" if written else ""
        elif written:
            first, last = self.written["first_offset"], self.written["last_offset"]
            sent += f", at offset {first}" if first == last else f", at offsets {first} to {last}"
        parts = [sent]
        if self._doubtful:
            parts.append(f"whether {_further(self._doubtful)} written is unknown")
        if left := self._read - written - self._doubtful:
            parts.append(f"{_further(left)} not")
        return "; ".join(parts)

    async def write(self, client: ClusterClient, live: LiveKernel) -> None:
        """All of them. With acks=all as an idempotent producer, so that a repeated batch is written once."""
        lines = InputLines(live)
        await client.refresh([])  # without retries: an address that is wrong stays wrong
        await self._until_there(client, live)
        if self._acks is Acks.all:
            self._producer = await with_retries(
                live.kernel, lambda: new_producer(client), what="a producer id", timeout_ms=self._timeout_ms
            )
        while found := await lines.next():
            self._read += len(found)
            for batch in _batches(found):
                await self._write([_record(line, self._separator) for line in batch], client, live)

    async def _until_there(self, client: ClusterClient, live: LiveKernel) -> None:
        """Have the topic created if it is not there, and wait for its leaders. Raises NoBroker and RefusedByBroker."""

        async def there() -> None:
            (found,) = await client.refresh([self._topic], create=True)
            if found.error_code:
                raise RefusedByBroker(found.error_code, f"topic {self._topic}")

        await with_retries(live.kernel, there, what=f"topic {self._topic}", timeout_ms=self._timeout_ms)

    async def _write(self, new: Sequence[Record], client: ClusterClient, live: LiveKernel) -> None:
        """As one batch, or in halves if it is too large. Raises Failure for a line that is."""
        try:
            first = await with_retries(
                live.kernel,
                lambda: self._attempt(new, client),
                what=f"partition {self._where}",
                timeout_ms=self._timeout_ms,
                repeatable=self._producer is not None,
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
        self._doubtful = 0

    async def _attempt(self, new: Sequence[Record], client: ClusterClient) -> int:
        """The offset of the first. They are in doubt until a broker has answered, or was certainly not asked."""
        before, self._doubtful = self._doubtful, len(new)
        try:
            return await produce(
                client,
                self._topic,
                self._partition,
                new,
                acks=_ACKS[self._acks],
                compression=self._compression,
                producer=self._producer,
            )
        except NoBroker as error:
            self._doubtful = len(new) if error.outcome_unknown else before
            raise
        except RefusedByBroker as error:
            self._doubtful = len(new) if error.code in _AFTER_APPEND else before
            raise


def _records(number: int) -> str:
    return "1 record was" if number == 1 else f"{number} records were"


def _further(number: int) -> str:
    return "1 more line was" if number == 1 else f"{number} more lines were"


def _batches(lines: Sequence[bytes]) -> Iterator[list[bytes]]:
    """The lines in batches."""
    batch: list[bytes] = []
    size = 0
    for line in lines:
        if batch and (len(batch) >= BATCH_LINES or size + len(line) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line)
    yield batch


def _record(line: bytes, separator: str | None) -> Record:
    key, value = None, line
    if separator is not None and separator.encode() in line:
        key, _, value = line.partition(separator.encode())
    return Record(key, value, time.time_ns() // 1_000_000)
