"""The znodes that members need before there are brokers: written through any session."""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lab.wire.paths import broker_path, topic_path
from rebalance_lab.wire.payloads import broker_payload, topic_payload
from rebalance_lab.world.errors import NodeExists
from rebalance_lab.world.ports import ZooKeeper

#: The fixture's brokers all say they are here; nobody listens.
FIXTURE_HOST = "localhost"
FIXTURE_PORT = 9092


class FixtureConflict(Exception):
    """A znode of the fixture is there with other content; it is left as it is."""


async def ensure_path(session: ZooKeeper, path: str) -> None:
    """Create a persistent znode and its parents, all without data; what exists stays."""
    at = 0
    while at != len(path):
        at = path.find("/", at + 1)
        at = len(path) if at < 0 else at
        try:
            await session.create(path[:at], b"")
        except NodeExists:
            continue


async def write_fixture(session: ZooKeeper, *, brokers: int, topics: Mapping[str, int]) -> list[str]:
    """Write brokers 0…n-1 (persistent: nobody holds a session for them) and topics (name to
    partition count, each partition on one broker in turn).

    Returns the paths created; asking again for the same creates nothing. Raises
    FixtureConflict when a topic is there with another number of partitions.
    """
    created = []
    for parent in ("/brokers/ids", "/brokers/topics", "/consumers"):
        await ensure_path(session, parent)
    for broker in range(brokers):
        payload = broker_payload(FIXTURE_HOST, FIXTURE_PORT + broker, timestamp_ms=0)
        created += await _create(session, broker_path(broker), payload, same_content=False)
    for topic, partitions in sorted(topics.items()):
        replicas = {partition: [partition % max(brokers, 1)] for partition in range(partitions)}
        created += await _create(session, topic_path(topic), topic_payload(replicas), same_content=True)
    return created


async def _create(session: ZooKeeper, path: str, payload: bytes, *, same_content: bool) -> list[str]:
    try:
        await session.create(path, payload)
    except NodeExists:
        there = (await session.get(path)).value.data
        if same_content and there != payload:
            raise FixtureConflict(
                f"{path} is there already and holds {there.decode(errors='replace')}; wanted {payload.decode()}."
                " Choose another topic, or delete it first"
            ) from None
        return []
    return [path]
