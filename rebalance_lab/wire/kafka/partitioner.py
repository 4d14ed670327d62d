"""Which partition a record with a key goes to, by default (`BuiltInPartitioner.partitionForKey`, `Utils.murmur2`, Kafka
3.9.1; the same since 0.9's Java producer)."""

from __future__ import annotations

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_SHIFT = 24
_32 = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """A 32-bit hash, signed as in Java."""
    state = _SEED ^ len(data)
    whole = len(data) - len(data) % 4
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _32
        word = (word ^ word >> _SHIFT) * _MULTIPLIER & _32
        state = (state * _MULTIPLIER & _32) ^ word
    if whole < len(data):
        state = (state ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _32
    state = (state ^ state >> 13) * _MULTIPLIER & _32
    state ^= state >> 15
    return state - (1 << 32) if state & 0x80000000 else state


def partition_for(key: bytes, partitions: int) -> int:
    """The partition of a key, of so many."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
