"""Consumer and thread ids (`ZookeeperConsumerConnector`, `ConsumerThreadId` of 0.8.2)."""

from __future__ import annotations

from functools import lru_cache

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.assignors.round_robin import java_hash
from rebalance_lab.kernel import RandomStream

_VERSION_MASK, _VERSION_4 = 0xF000, 0x4000


def consumer_id(group: str, configured: str | None, *, host: str, wall_ms: int, random: RandomStream) -> str:
    """`<group>_<host>-<epoch ms>-<8 hex>`, or `<group>_<configured>`.

    The hex is the beginning of the high half of a random UUID, written without leading zeros.
    """
    if configured is not None:
        return f"{group}_{configured}"
    high = random.bits(64) & ~_VERSION_MASK | _VERSION_4
    return f"{group}_{host}-{wall_ms}-{f'{high:x}'[:8]}"


@lru_cache(maxsize=1 << 15)  # equal ids are one object, which makes sorting them faster
def thread_ids(consumer: str, streams: int) -> tuple[str, ...]:
    """`<consumer id>-<i>` for i from 0. Raises AssertionError below one stream, as 0.8.2 does."""
    if streams < 1:
        raise AssertionError(
            f"assertion failed: {consumer} asks for {streams} streams of a topic; at least 1 is needed"
        )
    return tuple(f"{consumer}-{each}" for each in range(streams))


@lru_cache(maxsize=4096)  # asked for each partition in each period of the lease
def fetcher_id(each: TopicPartition, fetchers: int) -> int:
    """abs(31 * javaHash(topic) + partition) mod fetchers, in 32 bits; the least int counts as 0."""
    total = (31 * java_hash(each.topic) + each.partition) & 0xFFFF_FFFF
    signed = total - (1 << 32) if total & 0x8000_0000 else total
    return (0 if signed == -(1 << 31) else abs(signed)) % fetchers
