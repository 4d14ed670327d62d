"""Ours as shipped and real consumers ask the same of ZooKeeper, change by change, by the server's own counters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
from counted_groups import TOPIC, Asked, Counters, Members, OursAsShipped, RealConsumers
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from rebalance_lab.wire.payloads import topic_payload
from rebalance_lab.world.kafka.broker import KafkaBroker
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

PARTITIONS = 6

#: A change is made again when members met each other's claims; often they do not.
TRIES = 8


class Changes:
    """The changes of one group, and what each cost when nobody had to try again."""

    def __init__(self, members: Members, server: EmbeddedZooKeeper, session: KazooClient) -> None:
        self.cost: dict[str, Asked] = {}
        self._session = session
        self._counters = Counters(server, members.group, self._children)
        self._size = 0

    def _children(self, path: str) -> list[str]:
        try:
            return list(self._session.get_children(path))
        except NoNodeError:
            return []

    def make(self, name: str, change: Callable[[], None], undo: Callable[[], None], more: int) -> None:
        """Make a change that adds `more` members; undo it and make it again until it met no conflict."""
        for _ in range(TRIES):
            asked = self._change(change, more)
            if not asked.conflicts:
                self.cost[name] = asked
                return
            self._change(undo, -more)
        raise AssertionError(f"{name} met conflicts {TRIES} times running")

    def _change(self, change: Callable[[], None], more: int) -> Asked:
        self._size += more
        return self._counters.change(change, members=self._size, partitions=PARTITIONS if self._size else 0)


def drive(members: Members, server: EmbeddedZooKeeper, session: KazooClient) -> Mapping[str, Asked]:
    """Three members join, one after another; one leaves, one is killed."""
    changes = Changes(members, server, session)
    for number in (1, 2, 3):
        name = f"m{number}"
        changes.make(f"join to {number - 1}", partial(members.join, name), partial(members.leave, name), 1)
    changes.make("leave of 3", partial(members.leave, "m1"), partial(members.join, "m1"), -1)
    changes.make("kill of 2", partial(members.kill, "m2"), partial(members.join, "m2"), -1)
    return changes.cost


def test_ours_and_real_ones_ask_the_same_for_each_change(tmp_path: Path) -> None:
    with EmbeddedZooKeeper.start(tmp_path / "zookeeper") as server:
        session = KazooClient(server.connect_string)
        session.start()
        broker = KafkaBroker(0, server.connect_string, tmp_path / "kafka")
        properties = {
            "zookeeper.connect": server.connect_string,
            "zookeeper.session.timeout.ms": "4000",
            "rebalance.backoff.ms": "500",
            "rebalance.max.retries": "20",
        }
        kinds = (
            OursAsShipped("ours", properties, tmp_path),
            RealConsumers("real", properties, tmp_path / "kafka"),
        )
        try:
            broker.wait_until_started()
            session.create(f"/brokers/topics/{TOPIC}", topic_payload({number: [0] for number in range(PARTITIONS)}))
            ours, real = (drive(members, server, session) for members in kinds)
        finally:
            for members in kinds:
                members.end()
            broker.kill()
            session.stop()
            session.close()
    print("\n".join(f"{name}: ours {ours[name]}, real {real[name]}" for name in ours))
    assert ours == real
