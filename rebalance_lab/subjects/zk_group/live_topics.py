"""Topics that a user creates on a real ZooKeeper: the fixture, written through a session of its own."""

from __future__ import annotations

import random

from rebalance_lab.kernel import TimedOut
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.subjects.zk_group.cluster import write_fixture
from rebalance_lab.world.live.environment import live_factory
from rebalance_lab.world.ports import SessionEventKind
from rebalance_lab.zkclient import ZkTimeoutException

SESSION_TIMEOUT_MS = 10_000

#: A ZooKeeper that does not answer within this is not there.
LIMIT_US = 10_000_000


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
