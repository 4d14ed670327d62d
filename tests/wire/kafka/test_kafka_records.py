"""Record batches: built, read, checked, and placed in a log."""

from __future__ import annotations

import contextlib
import gzip
import random
from collections.abc import Callable
from typing import Any

import cramjam
import google_crc32c
import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder
from msgspec.structs import replace

from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.records import (
    HEADER_BYTES,
    BatchHeader,
    Compression,
    InvalidBatch,
    Record,
    batches,
    build_batch,
    check_batch,
    check_produced,
    check_records,
    place,
    read_bounds,
    read_header,
    records,
    stamp,
)

#: kafka-python compresses by libraries of its own that are not installed here.
WITHOUT_LIBRARIES = (Compression.NONE, Compression.GZIP)

RECORDS = (
    Record(b"key", b"value" * 30, 1_700_000_000_000, (("a", b"1"), ("b", None), ("ü", b""))),
    Record(None, b"", 1_700_000_000_070),
    Record(b"", None, 1_699_999_999_990),
    Record(None, bytes(range(256)) * 200, 1_700_000_000_000),
)


def plain(found: Any) -> list[Record]:
    """Records without their offsets."""
    return [replace(record, offset=-1) for record in found]


def changed(batch: bytes, at: int, *values: int) -> bytes:
    """The batch with other bytes at `at`, and a checksum that fits them."""
    out = bytearray(batch)
    out[at : at + len(values)] = bytes(values)
    out[17:21] = google_crc32c.value(bytes(out[21:])).to_bytes(4, "big")
    return bytes(out)


def with_payload(batch: bytes, payload: bytes) -> bytes:
    """The batch's header before other records."""
    length = (HEADER_BYTES + len(payload) - 12).to_bytes(4, "big")
    return changed(batch[:8] + length + batch[12:HEADER_BYTES] + payload, 0)


# -- building and reading ---------------------------------------------------------------------


@pytest.mark.parametrize("compression", Compression)
def test_records_come_back(compression: Compression) -> None:
    batch = build_batch(RECORDS, compression=compression, base_offset=40, leader_epoch=7)
    header = check_produced(batch)
    check_records(batch)
    assert plain(records(batch)) == list(RECORDS)
    assert [record.offset for record in records(batch)] == [40, 41, 42, 43]
    assert (header.base_offset, header.last_offset, header.count, header.leader_epoch) == (40, 43, 4, 7)
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (1_700_000_000_000, 1_700_000_000_070)
    assert (header.compression, header.size, header.magic) == (compression, len(batch), 2)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (-1, -1, -1, -1)
    assert not (header.transactional or header.control or header.log_append_time)
    assert build_batch(RECORDS, compression=compression, base_offset=40, leader_epoch=7) == batch


headers_of_records = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=3).map(tuple)
any_record = st.builds(
    Record,
    key=st.none() | st.binary(max_size=200),
    value=st.none() | st.binary(max_size=200),
    timestamp_ms=st.integers(0, 1 << 42),
    headers=headers_of_records,
    offset=st.just(-1),
)


@given(st.lists(any_record, min_size=1, max_size=10), st.sampled_from(Compression))
@settings(max_examples=100)
def test_any_records_come_back_and_aiokafka_reads_the_same(
    given_records: list[Record], compression: Compression
) -> None:
    batch = build_batch(given_records, compression=compression)
    assert plain(records(batch)) == given_records
    theirs = AiokafkaBatch(batch)
    assert theirs.validate_crc()
    assert [(r.key, r.value, r.timestamp, tuple(r.headers)) for r in theirs] == [
        (r.key, r.value, r.timestamp_ms, r.headers) for r in given_records
    ]


@pytest.mark.parametrize("compression", Compression)
def test_aiokafka_writes_what_is_read_here(compression: Compression) -> None:
    builder = AiokafkaBuilder(
        magic=2, compression_type=compression, is_transactional=1, producer_id=9, producer_epoch=2, base_sequence=5,
        batch_size=1 << 20,
    )  # fmt: skip
    for n, record in enumerate(RECORDS):
        builder.append(n, record.timestamp_ms, record.key, record.value, list(record.headers))
    batch = bytes(builder.build())
    header = check_produced(batch)
    assert plain(records(batch)) == list(RECORDS)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (9, 2, 5, 8)
    assert header.transactional


@pytest.mark.parametrize("compression", WITHOUT_LIBRARIES)
def test_kafka_python_reads_and_writes_the_same(compression: Compression) -> None:
    ours = build_batch(RECORDS, compression=compression, producer_id=9, producer_epoch=2, base_sequence=5)
    theirs = KafkaPythonBatch(ours)
    assert theirs.validate_crc()
    assert [(r.key, r.value, r.timestamp, tuple(r.headers)) for r in theirs] == [
        (r.key, r.value, r.timestamp_ms, r.headers) for r in RECORDS
    ]
    builder = KafkaPythonBuilder(
        magic=2, compression_type=compression, is_transactional=0, producer_id=9, producer_epoch=2, base_sequence=5,
        batch_size=1 << 20,
    )  # fmt: skip
    for n, record in enumerate(RECORDS):
        builder.append(n, record.timestamp_ms, record.key, record.value, list(record.headers))
    batch = bytes(builder.build())
    assert plain(records(batch)) == list(RECORDS)
    if compression is Compression.NONE:  # else libraries may compress differently, and they write a leader epoch of 0
        assert batch[16:] == ours[16:]


@given(data=st.binary(max_size=200), at=st.integers(0, 80))
def test_the_bounds_of_a_batch_are_those_of_its_header(data: bytes, at: int) -> None:
    def header_bounds() -> tuple[int, int]:
        header = read_header(data, at)
        return header.size, header.last_offset

    def came_of(read: Callable[[], tuple[int, int]]) -> object:
        try:
            return read()
        except InvalidBatch as error:
            return str(error)

    assert came_of(lambda: read_bounds(data, at)) == came_of(header_bounds)


def test_sequence_numbers_wrap() -> None:
    header = read_header(build_batch(RECORDS, producer_id=1, producer_epoch=0, base_sequence=0x7FFFFFFE))
    assert header.last_sequence == 1


def test_a_batch_of_nothing_is_not_built() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        build_batch([])


def test_all_records_have_the_time_of_the_append_where_the_batch_says_so() -> None:
    batch = changed(build_batch(RECORDS), 22, 0x08)
    assert read_header(batch).log_append_time
    assert {record.timestamp_ms for record in records(batch)} == {1_700_000_000_070}


# -- in a log ---------------------------------------------------------------------------------


def test_a_batch_is_placed_without_a_new_checksum() -> None:
    first, second = build_batch(RECORDS[:1]), build_batch(RECORDS[1:], compression=Compression.LZ4)
    log = bytearray(first + second)
    place(log, len(first), base_offset=1 << 40, leader_epoch=12)
    assert log[: len(first)] == first
    header = check_batch(bytes(log), len(first))
    assert (header.base_offset, header.leader_epoch) == (1 << 40, 12)
    assert bytes(log[len(first) + 16 :]) == second[16:]
    assert [record.offset - (1 << 40) for record in records(bytes(log), len(first))] == [0, 1, 2]


def test_batches_are_found_up_to_one_that_is_cut_short() -> None:
    one = build_batch(RECORDS[:1])
    for cut in range(len(one)):
        assert [at for at, _ in batches(one + one + one[:cut])] == [0, len(one)]
    assert [header.size for _, header in batches(one + one)] == [len(one)] * 2
    assert list(batches(b"")) == []


def test_a_length_in_which_no_batch_fits_ends_the_walk() -> None:
    one = build_batch(RECORDS[:1])
    with pytest.raises(InvalidBatch, match=f"a batch at byte {len(one)} has a length of 48"):
        list(batches(one + one[:8] + (48).to_bytes(4, "big") + one[12:]))


# -- what is refused --------------------------------------------------------------------------


BATCH = build_batch(RECORDS[:2], producer_id=3, producer_epoch=0, base_sequence=0)


@pytest.mark.parametrize(
    ("batch", "code", "reason"),
    [
        (b"", ErrorCode.CORRUPT_MESSAGE, "0 bytes are left; the header of a batch has 61"),
        (BATCH[:60], ErrorCode.CORRUPT_MESSAGE, "60 bytes are left"),
        (BATCH[:-1], ErrorCode.CORRUPT_MESSAGE, f"a batch of {len(BATCH)} bytes, of which {len(BATCH) - 1} are there"),
        (BATCH[:8] + bytes(4) + BATCH[12:], ErrorCode.CORRUPT_MESSAGE, "a batch of 12 bytes"),
        (BATCH[:8] + b"\xff" * 4 + BATCH[12:], ErrorCode.CORRUPT_MESSAGE, "a batch of 11 bytes"),
        (BATCH[:-1] + b"x", ErrorCode.CORRUPT_MESSAGE, "the checksum is 0x"),
        (BATCH[:16] + b"\x03" + BATCH[17:], ErrorCode.CORRUPT_MESSAGE, "magic 3 is not known"),
        (BATCH[:16] + b"\xff" + BATCH[17:], ErrorCode.CORRUPT_MESSAGE, "magic -1 is not known"),
        (BATCH[:16] + b"\x00" + BATCH[17:], ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, "a message set of magic 0"),
        (BATCH[:16] + b"\x01" + BATCH[17:], ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, "a message set of magic 1"),
        (BATCH + BATCH, ErrorCode.INVALID_RECORD, f"{len(BATCH)} bytes follow the only batch"),
        (changed(BATCH, 57, 0, 0, 0, 3), ErrorCode.INVALID_RECORD, "3 records, and a last offset delta of 1"),
        (changed(BATCH, 57, 0, 0, 0, 0), ErrorCode.INVALID_RECORD, "0 records, and a last offset delta of 1"),
        (changed(BATCH, 57, 255, 255, 255, 255), ErrorCode.INVALID_RECORD, "-1 records"),
        (changed(BATCH, 22, 0x20), ErrorCode.INVALID_RECORD, "a control batch, which no producer may send"),
        (changed(BATCH, 53, 255, 255, 255, 255), ErrorCode.INVALID_RECORD, "producer 3 sends the sequence number -1"),
        (changed(BATCH, 22, 0x05), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "compression 5 is not known"),
    ],
)
def test_what_a_producer_must_not_send(batch: bytes, code: ErrorCode, reason: str) -> None:
    with pytest.raises(InvalidBatch, match=f"^{reason}") as refused:
        check_produced(batch)
    assert refused.value.code is code


def test_a_log_may_hold_batches_that_no_producer_may_send() -> None:
    compacted = changed(BATCH, 23, 0, 0, 0, 9)
    assert check_batch(compacted).last_offset == 9
    assert check_batch(changed(BATCH, 22, 0x20)).control
    assert len(list(records(compacted))) == 2


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ("", "record 0 of a batch: the bytes end here"),
        ("0e 00 00 00 01 01 00", "record 0 of a batch: a record of 7 bytes, 6 are left"),
        ("01", "record 0 of a batch: a record of -1 bytes, 0 are left"),
        ("80", "record 0 of a batch: the bytes end here"),
        ("ffffffffffffffffffffff01", "record 0 of a batch: a varint of more than ten bytes"),
        ("0c 00 00 00 03 01 00", "record 0 of a batch: a length of -2"),
        ("0c 00 00 00 14 01 00", "record 0 of a batch: 10 bytes announced, 2 left in the record"),
        ("0c 00 00 00 01 01 01", "record 0 of a batch: -1 headers announced, 0 bytes left in the record"),
        ("0c 00 00 00 01 01 02", "record 0 of a batch: 1 headers announced, 0 bytes left in the record"),
        ("0e 00 00 00 01 01 02 01", "record 0 of a batch: a header without a name"),
        ("0e 00 00 00 01 01 02 00 01", "record 0 of a batch: a record that says it has 7 bytes has 8"),
        ("0e 00 00 00 01 01 00 00", "record 0 of a batch: a record that says it has 7 bytes has 6"),
        ("0c 00 00 00 01 01 00 0c 00 00 02 01 01 00 00", "1 bytes follow the 2 records of a batch"),
        ("0c 00 00 00 01 01 00" * 2, "a record has the offset 0, 1 was to come"),
    ],
)
def test_what_is_wrong_with_records_is_named(payload: str, reason: str) -> None:
    with pytest.raises(InvalidBatch) as refused:
        check_records(with_payload(BATCH, bytes.fromhex(payload)))
    assert str(refused.value).startswith(reason)
    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_a_header_whose_name_is_not_utf_8_is_read_as_java_reads_it() -> None:
    found = next(records(with_payload(BATCH, bytes.fromhex("12 00 00 00 01 01 02 02 ff 01"))))
    assert found.headers == (("\ufffd", None),)


# -- compression ------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", [each for each in Compression if each is not Compression.NONE])
def test_compressed_records_are_whole_and_bounded(compression: Compression) -> None:
    big = build_batch([Record(None, bytes(1_000_000))], compression=compression)
    assert len(big) < 60_000
    assert len(next(records(big)).value) == 1_000_000
    with pytest.raises(InvalidBatch, match="more than 999999 bytes when decompressed"):
        next(records(big, most_bytes=999_999))
    for cut in (1, 5, 12):
        payload = big[HEADER_BYTES:-cut]
        with pytest.raises(InvalidBatch, match="of a batch"):
            check_records(with_payload(big, payload))
    with pytest.raises(InvalidBatch, match=f"records of a batch are not {compression.name.lower()}"):
        next(records(with_payload(big, b"\x07 no compression")))


@given(st.sampled_from(Compression), st.binary(max_size=60), st.integers(0, 200))
@settings(max_examples=300)
def test_damaged_records_are_read_or_refused(compression: Compression, piece: bytes, at: int) -> None:
    batch = build_batch(RECORDS[:3], compression=compression)
    at = HEADER_BYTES + at % (len(batch) - HEADER_BYTES)
    damaged = with_payload(batch, batch[HEADER_BYTES:at] + piece + batch[at + len(piece) :])
    with contextlib.suppress(InvalidBatch):
        check_records(damaged, most_bytes=100_000)


def test_lz4_frames_are_what_java_reads() -> None:
    """KafkaLZ4BlockInputStream: version 1, independent blocks, a checksum of the descriptor; blocks that do not
    shrink are stored."""
    noise = random.Random(1).randbytes(200_000)
    payload = build_batch([Record(None, noise)], compression=Compression.LZ4)[HEADER_BYTES:]
    assert payload[:7].hex() == "04224d18604082"
    assert payload[-4:] == bytes(4)
    assert payload[7:11] == (0x80000000 | 65536).to_bytes(4, "little")
    assert len(payload) < 200_100
    assert noise in bytes(cramjam.lz4.decompress(payload))


def test_snappy_is_read_bare_and_in_frames_that_follow_one_another() -> None:
    batch = build_batch(RECORDS, compression=Compression.SNAPPY)
    framed = batch[HEADER_BYTES:]
    assert framed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    plain_bytes = build_batch(RECORDS)[HEADER_BYTES:]
    assert plain(records(with_payload(batch, bytes(cramjam.snappy.compress_raw(plain_bytes))))) == list(RECORDS)
    half = len(plain_bytes) // 2
    blocks = [bytes(cramjam.snappy.compress_raw(part)) for part in (plain_bytes[:half], plain_bytes[half:])]
    twice = b"".join(framed[:16] + len(block).to_bytes(4, "big") + block for block in blocks)
    assert plain(records(with_payload(batch, twice))) == list(RECORDS)


def test_a_snappy_block_that_announces_too_much_allocates_nothing() -> None:
    batch = build_batch(RECORDS, compression=Compression.SNAPPY)
    with pytest.raises(InvalidBatch, match="7 bytes cannot stand for 67108864"):
        next(records(with_payload(batch, bytes.fromhex("80808020 000000"))))


def test_no_bytes_at_all_are_no_records_in_any_compression() -> None:
    """Compaction may leave such a batch."""
    for compression in (Compression.NONE, Compression.SNAPPY):
        bare = changed(with_payload(build_batch(RECORDS, compression=compression), b""), 57, 0, 0, 0, 0)
        assert list(records(bare)) == []


def test_gzip_is_what_other_programs_read() -> None:
    payload = build_batch(RECORDS, compression=Compression.GZIP)[HEADER_BYTES:]
    assert gzip.decompress(payload) == build_batch(RECORDS)[HEADER_BYTES:]


def test_a_header_says_all_of_its_fields() -> None:
    assert isinstance(read_header(BATCH), BatchHeader)
    assert read_header(memoryview(bytearray(BATCH))) == read_header(b"xx" + BATCH, 2)


def test_a_stamp_gives_all_records_the_time_of_their_append():
    batch = bytearray(build_batch(RECORDS, compression=Compression.GZIP, producer_id=5, base_sequence=2))
    stamp(batch, 0, append_time_ms=1_800_000_000_000)
    header = check_batch(bytes(batch))
    assert header.log_append_time
    assert header.compression is Compression.GZIP
    assert [record.timestamp_ms for record in records(bytes(batch))] == [1_800_000_000_000] * len(RECORDS)
    assert AiokafkaBatch(batch).validate_crc()
