"""Sequence numbers of producers (the cases of `ProducerStateManagerTest`, Kafka 3.9.1)."""

from __future__ import annotations

import pytest

from rebalance_lab.broker.log.checkpoints import MalformedFile
from rebalance_lab.broker.log.errors import InvalidProducerEpoch, OutOfOrderSequence
from rebalance_lab.broker.log.producers import Producers
from rebalance_lab.wire.kafka.records import BatchHeader, Record, build_batch, read_header

DAY_MS = 24 * 3600 * 1000
NOW_MS = 1_700_000_000_000
LAST = 2**31 - 1


def header(
    sequence: int,
    *,
    offset: int = 0,
    epoch: int = 0,
    count: int = 1,
    producer: int = 7,
    timestamp_ms: int = NOW_MS,
) -> BatchHeader:
    data = build_batch(
        [Record(None, b"", timestamp_ms)] * count,
        base_offset=offset,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    return read_header(data)


def producers(*written: BatchHeader) -> Producers:
    found = Producers("events-0", DAY_MS)
    for each in written:
        found.add(each)
    return found


def test_a_producer_that_is_not_known_may_begin_anywhere():
    producers().check(header(5))
    producers(header(0, producer=8)).check(header(5))


def test_the_next_sequence_follows():
    known = producers(header(0, count=3))
    known.check(header(3, offset=3))
    for wrong in (0, 2, 4, 100):
        with pytest.raises(OutOfOrderSequence, match=f"sequence {wrong} does not follow 2"):
            known.check(header(wrong, offset=3, count=2))


def test_sequences_start_again_after_the_last():
    known = producers(header(LAST - 1, count=2))
    known.check(header(0))
    over = producers(header(LAST, count=3))
    over.check(header(2))
    assert over.duplicate_of(header(LAST, count=3)) is not None


def test_a_new_epoch_begins_with_sequence_0():
    known = producers(header(0), header(1, offset=1))
    known.check(header(0, epoch=1))
    with pytest.raises(OutOfOrderSequence, match="new epoch 1 begins with sequence 2"):
        known.check(header(2, epoch=1))


def test_an_old_epoch_is_refused():
    with pytest.raises(InvalidProducerEpoch, match="epoch 2 is smaller than 3"):
        producers(header(0, epoch=3)).check(header(1, epoch=2))


def test_each_of_the_last_five_batches_is_known_again():
    written = [header(n * 2, offset=10 + n * 2, count=2) for n in range(7)]
    known = producers(*written)
    found = [known.duplicate_of(each) for each in written]
    assert [each and each.first_offset for each in found] == [None, None, 14, 16, 18, 20, 22]
    assert known.duplicate_of(header(12, count=1)) is None, "another batch with the same beginning"
    assert known.duplicate_of(header(12, count=2, epoch=1)) is None


def test_a_new_epoch_forgets_the_batches_of_the_old_one():
    known = producers(header(0), header(0, epoch=1, offset=1))
    assert known.duplicate_of(header(0)) is None
    assert known.duplicate_of(header(0, epoch=1)).first_offset == 1


def test_batches_without_a_producer_only_move_the_end():
    known = producers(header(-1, producer=-1, epoch=-1, offset=4, count=2))
    assert len(known) == 0
    assert known.end_offset == 6


def test_a_snapshot_keeps_the_last_batch():
    known = producers(header(0, count=3), header(3, offset=3, count=2), header(9, producer=8, offset=5, epoch=4))
    data = known.snapshot()
    again = Producers("events-0", DAY_MS)
    again.load(data, 6, NOW_MS)
    assert again.end_offset == 6
    assert again.snapshot() == data
    assert again.duplicate_of(header(3, count=2)).first_offset == 3
    assert again.duplicate_of(header(0, count=3)) is None
    again.check(header(5))


def test_the_bytes_of_a_snapshot_are_kafkas():
    data = producers(header(2, count=3, offset=10, epoch=1)).snapshot()
    assert data[:2].hex() == "0001"
    assert data[6:].hex() == (
        "000000010000000000000007000100000004000000000000000c000000020000018bcfe56800ffffffffffffffffffffffff"
    )


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda data: b"", "0 bytes"),
        (lambda data: data[:-1], "checksum"),
        (lambda data: b"\x00\x02" + data[2:], "version 2"),
        (lambda data: data[:20] + bytes([data[20] ^ 1]) + data[21:], "checksum"),
    ],
)
def test_a_damaged_snapshot_is_noticed(damage, why):
    known = producers(header(0))
    with pytest.raises(MalformedFile, match=why):
        known.load(damage(known.snapshot()), 1, NOW_MS)
    assert len(known) == 1


def test_producers_that_have_long_been_silent_are_forgotten():
    known = producers(header(0), header(0, producer=8, timestamp_ms=NOW_MS - DAY_MS))
    data = known.snapshot()
    known.expire(NOW_MS)
    assert len(known) == 1
    known.load(data, 2, NOW_MS)
    assert len(known) == 1
