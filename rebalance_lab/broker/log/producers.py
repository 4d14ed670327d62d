"""What a log knows of the producers that wrote to it: the last batches of each, by which it detects duplicates and gaps
(`ProducerStateManager`, `ProducerStateEntry`, `ProducerAppendInfo`, Kafka 3.9.1).

Transactions are not served. What a log of Kafka's holds of them is followed as far as snapshots need it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple

import google_crc32c

from rebalance_lab.broker.log.checkpoints import MalformedFile
from rebalance_lab.broker.log.errors import InvalidProducerEpoch, OutOfOrderSequence
from rebalance_lab.wire.kafka.records import BatchHeader

NO_EPOCH = -1
NO_SEQUENCE = -1

#: Batches of a producer that are remembered. Its requests in flight may be as many.
BATCHES_KEPT = 5

#: Sequence numbers go up to one less and start again at 0.
_SEQUENCES = 2**31

_SNAPSHOT_VERSION = 1
_HEAD = Struct(">hI")  # version, checksum of what follows
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")


class Written(NamedTuple):
    """A batch that is in the log. `timestamp_ms`: its largest one."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp_ms: int


@dataclass(slots=True)
class Producer:
    """`batches`: the last ones of its epoch, the oldest first. `transaction_offset`: where its open transaction
    begins, or -1."""

    epoch: int = NO_EPOCH
    timestamp_ms: int = -1
    batches: list[Written] = field(default_factory=list)
    coordinator_epoch: int = -1
    transaction_offset: int = -1


class Producers:
    """The producers of one log, up to `end_offset`. `partition`: its name in errors."""

    def __init__(self, partition: str, expiration_ms: int) -> None:
        self.end_offset = 0
        self._partition = partition
        self._expiration_ms = expiration_ms
        self._producers: dict[int, Producer] = {}

    def __len__(self) -> int:
        return len(self._producers)

    def duplicate_of(self, batch: BatchHeader) -> Written | None:
        """The batch in the log of which `batch` is a repetition."""
        known = self._producers.get(batch.producer_id)
        if known is None or known.epoch != batch.producer_epoch:
            return None
        same = (batch.base_sequence, batch.last_sequence)
        return next((each for each in known.batches if each[:2] == same), None)

    def check(self, batch: BatchHeader) -> None:
        """Raises InvalidProducerEpoch and OutOfOrderSequence if a client may not append `batch` now."""
        known = self._producers.get(batch.producer_id)
        if known is None:
            return  # any sequence: the producer's records may have been deleted
        where = f"producer {batch.producer_id}, offset {batch.base_offset} of {self._partition}"
        if batch.producer_epoch < known.epoch:
            raise InvalidProducerEpoch(
                f"{where}: its epoch {batch.producer_epoch} is smaller than {known.epoch}, which was seen last"
            )
        if batch.producer_epoch > known.epoch:
            if batch.base_sequence != 0:
                first = f"begins with sequence {batch.base_sequence} instead of 0"
                raise OutOfOrderSequence(f"{where}: its new epoch {batch.producer_epoch} {first}")
            return
        last = known.batches[-1].last_sequence if known.batches else NO_SEQUENCE
        if batch.base_sequence != (last + 1) % _SEQUENCES:
            raise OutOfOrderSequence(
                f"{where}: sequence {batch.base_sequence} does not follow {last}, which was written last"
            )

    def add(self, batch: BatchHeader) -> None:
        """`batch` is in the log. It is not checked: a follower writes what its leader wrote."""
        self.end_offset = batch.last_offset + 1
        if not batch.has_producer_id:
            return
        known = self._producers.setdefault(batch.producer_id, Producer())
        if known.epoch != batch.producer_epoch:
            known.epoch = batch.producer_epoch
            known.batches.clear()
        known.timestamp_ms = batch.max_timestamp_ms
        if batch.control:
            known.transaction_offset = -1
            return
        del known.batches[: max(0, len(known.batches) + 1 - BATCHES_KEPT)]
        sequences, offsets = (batch.base_sequence, batch.last_sequence), (batch.base_offset, batch.last_offset)
        known.batches.append(Written(*sequences, *offsets, batch.max_timestamp_ms))
        if batch.transactional and known.transaction_offset < 0:
            known.transaction_offset = batch.base_offset

    def expire(self, now_ms: int) -> None:
        """Forget producers that have written nothing for long."""
        for producer_id in [each for each, known in self._producers.items() if self._expired(known, now_ms)]:
            del self._producers[producer_id]

    def clear(self, end_offset: int) -> None:
        self._producers.clear()
        self.end_offset = end_offset

    # -- snapshots ---------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """The state as Kafka's file has it, which keeps the last batch of each producer only."""
        body = _COUNT.pack(len(self._producers)) + b"".join(self._entries())
        return _HEAD.pack(_SNAPSHOT_VERSION, google_crc32c.value(body)) + body

    def load(self, data: bytes, end_offset: int, now_ms: int) -> None:
        """Replace the state by that of a snapshot. Raises MalformedFile, and has changed nothing then."""
        loaded = {each: known for each, known in _read_snapshot(data) if not self._expired(known, now_ms)}
        self._producers = loaded
        self.end_offset = end_offset

    def _entries(self) -> Iterator[bytes]:
        for producer_id, known in self._producers.items():
            last = known.batches[-1] if known.batches else Written(NO_SEQUENCE, NO_SEQUENCE, -1, -1, -1)
            yield _ENTRY.pack(
                producer_id,
                known.epoch,
                last.last_sequence,
                last.last_offset,
                last.last_offset - last.first_offset,
                known.timestamp_ms,
                known.coordinator_epoch,
                known.transaction_offset,
            )

    def _expired(self, known: Producer, now_ms: int) -> bool:
        return known.transaction_offset < 0 and now_ms - known.timestamp_ms >= self._expiration_ms


def _read_snapshot(data: bytes) -> Iterator[tuple[int, Producer]]:
    start = _HEAD.size + _COUNT.size
    if len(data) < start:
        raise MalformedFile(f"it has {len(data)} bytes")
    version, checksum = _HEAD.unpack_from(data)
    if version != _SNAPSHOT_VERSION:
        raise MalformedFile(f"it has version {version}, and version {_SNAPSHOT_VERSION} can be read")
    if google_crc32c.value(data[_HEAD.size :]) != checksum:
        raise MalformedFile("its checksum is wrong")
    (count,) = _COUNT.unpack_from(data, _HEAD.size)
    if len(data) != start + count * _ENTRY.size:
        raise MalformedFile(f"it announces {count} producers and has {len(data)} bytes")
    for producer_id, epoch, sequence, offset, delta, timestamp, coordinator, transaction in _ENTRY.iter_unpack(
        data[start:]
    ):
        batches = []
        if offset >= 0:
            batches.append(Written((sequence - delta) % _SEQUENCES, sequence, offset - delta, offset, timestamp))
        yield producer_id, Producer(epoch, timestamp, batches, coordinator, transaction)
