"""Record batches of magic 2, the unit that is produced, stored, replicated and fetched.

A batch keeps its bytes on the whole way. Only its base offset and its partition leader epoch change, and these stand
before its checksum. Message sets of magic 0 and 1, from before Kafka 0.11, are refused by name.
"""

from rebalance_lab.wire.kafka.records.batch import (
    HEADER_BYTES,
    BatchHeader,
    InvalidBatch,
    batches,
    check_batch,
    check_produced,
    place,
    read_bounds,
    read_header,
    set_max_timestamp,
    stamp,
)
from rebalance_lab.wire.kafka.records.build import build_batch
from rebalance_lab.wire.kafka.records.compression import MOST_DECOMPRESSED_BYTES, Compression
from rebalance_lab.wire.kafka.records.record import Record, check_records, records

__all__ = [
    "HEADER_BYTES",
    "MOST_DECOMPRESSED_BYTES",
    "BatchHeader",
    "Compression",
    "InvalidBatch",
    "Record",
    "batches",
    "build_batch",
    "check_batch",
    "check_produced",
    "check_records",
    "place",
    "read_bounds",
    "read_header",
    "records",
    "set_max_timestamp",
    "stamp",
]
