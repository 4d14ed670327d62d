"""`produce` and `consume`: records of one partition, a line each."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import islice
from typing import Annotated

import typer

from rebalance_lab.cli.brokers import BootstrapOption, with_cluster
from rebalance_lab.cli.failures import Failure
from rebalance_lab.cli.options import JsonOption
from rebalance_lab.cli.terminal import pipeable, print_json
from rebalance_lab.client.cluster import ClusterClient, RefusedByBroker
from rebalance_lab.client.records import EARLIEST, LATEST, fetch, offset_at, produce
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.records import Compression, InvalidBatch, Record

#: Lines that go into one batch.
BATCH_LINES = 500

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


TopicOption = Annotated[str, typer.Option("--topic", help="The topic.", metavar="TOPIC")]
PartitionOption = Annotated[int, typer.Option("--partition", help="The partition.", min=0)]


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
    as_json: JsonOption = False,
) -> None:
    """Write the lines of standard input to a partition, each as a record.

    A topic that does not exist is created, if the brokers do that. The command
    ends with the number of records that were written, and their offsets.
    """
    number = {Acks.none: 0, Acks.leader: 1, Acks.all: -1}[acks]
    written = {"records": 0, "first_offset": -1, "last_offset": -1}

    async def work(client: ClusterClient, live: LiveKernel) -> None:
        await _until_there(client, live, topic)
        for lines in _batches():
            new = [_record(line, key_separator) for line in lines]
            first = await produce(
                client, topic, partition, new, acks=number, compression=Compression[compression.name.upper()]
            )
            if first >= 0:
                written["first_offset"] = first if written["records"] == 0 else written["first_offset"]
                written["last_offset"] = first + len(new) - 1
            written["records"] += len(new)

    try:
        with_cluster(bootstrap, work)
    except Failure as failure:
        raise Failure(f"{failure}; {written['records']} records were written before") from failure
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
    as_json: JsonOption = False,
) -> None:
    """Print the records of a partition, a line each, as they come; Ctrl-C ends it.

    With --json a line has the offset, the time, the key and the value.
    """
    begin = _start(start)

    async def work(client: ClusterClient, _live: LiveKernel) -> None:
        offset = begin if begin >= 0 else await offset_at(client, topic, partition, begin)
        end = await offset_at(client, topic, partition, LATEST) if to_end else None
        left = count
        while left != 0 and (end is None or offset < end):
            found = await fetch(client, topic, partition, offset)
            for record in islice(found.records, left):
                _print(record, as_json=as_json)
            left = None if left is None else left - min(left, len(found.records))
            offset = found.next_offset

    try:
        with pipeable():
            with_cluster(bootstrap, work)
    except InvalidBatch as error:
        raise Failure(f"{topic}-{partition} cannot be read: {error}") from error


def _start(text: str) -> int:
    """An offset, EARLIEST or LATEST. Raises Failure."""
    named = {"earliest": EARLIEST, "latest": LATEST}
    if text in named:
        return named[text]
    if text.isascii() and text.isdigit():
        return int(text)
    raise Failure(f"--from {text}: write earliest, latest or an offset")


def _print(record: Record, *, as_json: bool) -> None:
    if not as_json:
        print((record.value or b"").decode("utf-8", "replace"), flush=True)
        return
    texts = {name: None if data is None else data.decode("utf-8", "replace") for name, data in _texts(record)}
    print_json({"offset": record.offset, "timestamp_ms": record.timestamp_ms, **texts})


def _texts(record: Record) -> Sequence[tuple[str, bytes | None]]:
    return (("key", record.key), ("value", record.value))


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
    for line in sys.stdin.buffer:
        lines.append(line.rstrip(b"\n"))
        if len(lines) >= BATCH_LINES:
            yield lines
            lines = []
    if lines:
        yield lines


def _record(line: bytes, separator: str | None) -> Record:
    key, value = None, line
    if separator is not None and separator.encode() in line:
        key, _, value = line.partition(separator.encode())
    return Record(key, value, time.time_ns() // 1_000_000)
