"""Consumer and thread ids (facts 2)."""

from __future__ import annotations

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


def thread_ids(consumer: str, streams: int) -> tuple[str, ...]:
    """`<consumer id>-<i>` for i from 0. Raises AssertionError below one stream, as 0.8.2 does."""
    if streams < 1:
        raise AssertionError(
            f"assertion failed: {consumer} asks for {streams} streams of a topic; at least 1 is needed"
        )
    return tuple(f"{consumer}-{each}" for each in range(streams))
