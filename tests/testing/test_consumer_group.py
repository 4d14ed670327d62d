"""The group that the fixture `consumer_group` makes, on one server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.exceptions import NodeExistsError

from rebalance_lab.testing.ensemble import EMBEDDED, ZooKeeperEnsemble, running, wait_until
from rebalance_lab.testing.group import ConsumerGroup, GroupSettings, running_group


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeperEnsemble]:
    with running(EMBEDDED, tmp_path / "zookeeper", nodes=1, tick_ms=500) as ensemble:
        yield ensemble


def test_a_dead_member_does_not_stand_for_one_that_has_not_come_yet(
    zookeeper: ZooKeeperEnsemble, tmp_path: Path
) -> None:
    """As many are registered as live, everything is owned and nothing changes; but one of them is dead."""
    settings = GroupSettings(members=2, partitions=2, rebalance_backoff_ms=50)
    with running_group(zookeeper, "/settled", tmp_path, settings) as group:
        before = group.wait_until_settled()
        dead = group.partitions_of("m1")
        group.kill("m1")
        successor = group.add_member()
        owners = group.wait_until_settled()
        assert {owners[partition] for partition in dead}.isdisjoint({before[partition] for partition in dead})
        assert group.members == ("m2", successor)
        assert [len(group.partitions_of(name)) for name in ("m1", "m2", successor)] == [0, 1, 1]


def test_a_group_that_cannot_be_made_leaves_no_connection(zookeeper: ZooKeeperEnsemble, tmp_path: Path) -> None:
    def connections() -> int:
        return zookeeper._ensemble.servers["z1"].command("cons").count("queued=")

    settings = GroupSettings(members=0)
    with running_group(zookeeper, "/twice", tmp_path, settings):
        before = connections()
        with pytest.raises(NodeExistsError):
            ConsumerGroup(zookeeper, "/twice", tmp_path, settings)
        wait_until(lambda: connections() == before, "the connections of what could not be made to end")
