"""What a group says of itself while the servers are harmed by the plugin's own faults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from rebalance_lab.testing.ensemble import EMBEDDED, ZooKeeperEnsemble, ZooKeeperFaults, running, wait_until
from rebalance_lab.testing.group import ConsumerGroup, GroupSettings, running_group
from rebalance_lab.testing.registry import Registry
from rebalance_lab.wire.paths import member_path, owner_path


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperEnsemble]:
    with running(EMBEDDED, tmp_path_factory.mktemp("zookeeper"), nodes=3, tick_ms=500) as ensemble:
        yield ensemble


@pytest.fixture
def faults(zookeeper: ZooKeeperEnsemble) -> Iterator[ZooKeeperFaults]:
    faults = ZooKeeperFaults(zookeeper)
    yield faults
    faults.heal()


@contextmanager
def without_members(zookeeper: ZooKeeperEnsemble, chroot: str, folder: Path) -> Iterator[ConsumerGroup]:
    """The test is alone with the group's znodes."""
    group = ConsumerGroup(zookeeper, chroot, folder, GroupSettings(partitions=1))
    try:
        yield group
    finally:
        group.end()


def move_to(group: ConsumerGroup, connect: str) -> None:
    """Have the group's own session sit on one server, and know the others no more."""
    client = group._registry._client
    client.stop()
    client.set_hosts(connect)
    client.start()


def write(zookeeper: ZooKeeperEnsemble, group: ConsumerGroup, path: str, data: bytes) -> None:
    """A write that the leader confirms."""
    client = KazooClient(zookeeper.connect_to(zookeeper.leader()))
    client.start()
    client.create(f"/{group.connect_string.partition('/')[2]}{path}", data, makepath=True)
    client.stop()
    client.close()


def test_it_answers_whichever_server_is_killed(
    zookeeper: ZooKeeperEnsemble, faults: ZooKeeperFaults, tmp_path: Path
) -> None:
    with without_members(zookeeper, "/killed", tmp_path) as group:
        write(zookeeper, group, owner_path("group", "topic", 0), b"somebody-0")
        for server in zookeeper.servers:
            faults.kill(server)
            assert group.owners() == {0: "somebody-0"}
            assert group.consumer_ids() == ()
            faults.start(server)


def test_it_answers_when_its_server_stands_still(
    zookeeper: ZooKeeperEnsemble, faults: ZooKeeperFaults, tmp_path: Path
) -> None:
    with without_members(zookeeper, "/stopped", tmp_path) as group:
        write(zookeeper, group, owner_path("group", "topic", 0), b"somebody-0")
        paused, *others = zookeeper.followers()
        client = group._registry._client
        move_to(group, zookeeper.connect_to(paused))
        client.set_hosts(",".join(map(zookeeper.connect_to, [paused, *others])))
        faults.pause(paused)
        assert zookeeper.followers() == tuple(others), "one that stands still does not serve"
        assert group.owners() == {0: "somebody-0"}


def test_it_tells_what_the_leader_has_though_its_server_lags(
    zookeeper: ZooKeeperEnsemble, faults: ZooKeeperFaults, tmp_path: Path
) -> None:
    with without_members(zookeeper, "/lagging", tmp_path) as group:
        behind = zookeeper.followers()[0]
        move_to(group, zookeeper.connect_to(behind))
        faults.lag(behind, 1000)
        write(zookeeper, group, member_path("group", "newcomer"), b"")
        write(zookeeper, group, owner_path("group", "topic", 0), b"newcomer-0")
        assert group.consumer_ids() == ("newcomer",)
        assert group.owners() == {0: "newcomer-0"}


def test_without_a_majority_it_says_so(zookeeper: ZooKeeperEnsemble, faults: ZooKeeperFaults, tmp_path: Path) -> None:
    with without_members(zookeeper, "/alone", tmp_path) as group:
        left, *killed = zookeeper.servers
        for server in killed:
            faults.kill(server)
        wait_until(lambda: not zookeeper.serves(left), f"{left} to notice")
        assert not zookeeper.serves(killed[0])
        with pytest.raises(TimeoutError, match=r"did not settle within 1 s: ZooKeeper .* gave no answer"):
            group.wait_until_settled(timeout_s=1)


def test_followers_are_those_that_serve(zookeeper: ZooKeeperEnsemble, faults: ZooKeeperFaults) -> None:
    killed, left = zookeeper.followers()
    faults.kill(killed)
    assert zookeeper.followers() == (left,)


@pytest.mark.slow
def test_a_group_settles_through_a_change_of_leader(
    zookeeper: ZooKeeperEnsemble, faults: ZooKeeperFaults, tmp_path: Path
) -> None:
    settings = GroupSettings(members=2, partitions=2, session_timeout_ms=6000)
    with running_group(zookeeper, "/elected", tmp_path, settings) as group:
        group.wait_until_settled()
        faults.kill(zookeeper.leader())
        group.leave("m1")
        group.wait_until_settled()
        assert group.partitions_of("m2") == (0, 1)


def test_without_any_server_no_group_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rebalance_lab.testing.registry._START_LIMIT_S", 0.2)
    with pytest.raises(TimeoutError, match=r"no ZooKeeper of 127.0.0.1:1 answers within 0.2 s"):
        Registry("127.0.0.1:1", "/none")
