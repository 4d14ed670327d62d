"""The znodes that members need in place of real brokers, written through any session."""

from __future__ import annotations

import random
from collections.abc import Mapping

from rebalance_lab.kernel import TimedOut
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.wire.paths import broker_path, topic_path
from rebalance_lab.wire.payloads import broker_payload, topic_payload
from rebalance_lab.world.errors import NodeExists
from rebalance_lab.world.live.environment import live_factory
from rebalance_lab.world.ports import SessionEventKind, ZooKeeper
from rebalance_lab.zkclient import ZkTimeoutException

#: The address in the znodes of the fixture's brokers; no process listens there.
FIXTURE_HOST = "localhost"
FIXTURE_PORT = 9092

SESSION_TIMEOUT_MS = 10_000

#: A ZooKeeper that does not answer within this is not there.
LIMIT_US = 10_000_000


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


def create_topic(zookeeper: str, topic: str, partitions: int, *, brokers: int = 1) -> list[str]:
    """Write a topic, and brokers 0…n-1, to the ZooKeeper at a connect string, as `write_fixture` does. There are no
    brokers behind these znodes. Returns the paths created. Raises ValueError for a name that no topic can have,
    FixtureConflict, BadConnectString, ZkTimeoutException."""
    if not topic or "/" in topic:
        raise ValueError(f"{topic!r}: a topic's name has no slash, and is not empty")
    with LiveKernel() as live:
        session = live_factory("topics", live, random.randrange(2**32)).open(zookeeper, SESSION_TIMEOUT_MS)

        async def work() -> list[str]:
            async with live.kernel.timeout(LIMIT_US, f"writing to {zookeeper}"):
                while (await session.events.get()).kind is not SessionEventKind.CONNECTED:
                    continue
                created = await write_fixture(session, brokers=brokers, topics={topic: partitions})
                await session.close()
            return created

        try:
            return live.run(work())
        except TimedOut as error:
            raise ZkTimeoutException(f"no ZooKeeper answers at {zookeeper}: {error}") from error
