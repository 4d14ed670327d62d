"""What a client does with records that have keys, and with the number of a topic's partitions.

Each is a pair of events of an operation. PRODUCE_KEYED: detail `number`, `key`; its OK has `partition` and `offset`.
CONSUME_KEYED: its OK has `records`, of which each is [partition, offset, key, number]. RESIZE: detail `partitions`, how
many the topic is to have; it ends in OK, or in FAILED_OP with `error`, the name of Kafka's error code.
"""

from __future__ import annotations

PRODUCE_KEYED, CONSUME_KEYED, RESIZE = KEYED = ("produce-keyed", "consume-keyed", "create-partitions")
