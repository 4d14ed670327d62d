"""The znodes that members need in place of real brokers, written through any session."""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lab.wire.paths import broker_path, topic_path
from rebalance_lab.wire.payloads import broker_payload, topic_payload
from rebalance_lab.world.errors import NodeExists
from rebalance_lab.world.ports import ZooKeeper

#: The address in the znodes of the fixture's brokers; no process listens there.
FIXTURE_HOST = "localhost"
FIXTURE_PORT = 9092


class FixtureConflict(Exception):
    """A znode of the fixture exists with other content; it is left as it is."""


async def ensure_path(session: ZooKeeper, path: str) -> None:
    """Create a persistent znode and its parents, all without data. Existing znodes stay as they are."""
    at = 0
    while at != len(path):
        at = path.find("/", at + 1)
        at = len(path) if at < 0 else at
        try:
            await session.create(path[:at], b"")
        except NodeExists:
            continue


async def write_fixture(
    session: ZooKeeper, *, brokers: int, topics: Mapping[str, int], registered: bool = False
) -> list[str]:
    """Write brokers 0…n-1 (persistent, as no session stands for them; none if real brokers have `registered`) and
    topics (name to partition count, each partition on one broker in turn).

    Returns the paths created. A second call with the same arguments creates nothing. Raises FixtureConflict if a
    topic exists with another number of partitions.
    """
    created = []
    for parent in ("/brokers/ids", "/brokers/topics", "/consumers"):
        await ensure_path(session, parent)
    for broker in () if registered else range(brokers):
        created += await _create(session, broker_path(broker), broker_znode(broker), same_content=False)
    for topic, partitions in sorted(topics.items()):
        payload = topic_payload(_replicas(partitions, brokers))
        created += await _create(session, topic_path(topic), payload, same_content=True)
    return created


def broker_znode(broker: int) -> bytes:
    """The content of a fixture broker's znode."""
    return broker_payload(FIXTURE_HOST, FIXTURE_PORT + broker, timestamp_ms=0)


async def add_topic(session: ZooKeeper, topic: str, partitions: int, *, brokers: int, grow: bool) -> int:
    """Create a topic, or (`grow`) rewrite its znode with more partitions. Returns the zxid.
    Raises NodeExists, NoNode."""
    payload = topic_payload(_replicas(partitions, brokers))
    if grow:
        return (await session.set(topic_path(topic), payload)).zxid
    return (await session.create(topic_path(topic), payload)).zxid


def _replicas(partitions: int, brokers: int) -> dict[int, list[int]]:
    return {partition: [partition % max(brokers, 1)] for partition in range(partitions)}


async def _create(session: ZooKeeper, path: str, payload: bytes, *, same_content: bool) -> list[str]:
    try:
        await session.create(path, payload)
    except NodeExists:
        there = (await session.get(path)).value.data
        if same_content and there != payload:
            raise FixtureConflict(
                f"{path} exists already and holds {there.decode(errors='replace')}, not {payload.decode()}."
                " Choose another topic, or delete it first"
            ) from None
        return []
    return [path]
