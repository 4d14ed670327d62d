"""The group that the fixture `consumer_group` makes, on one server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.exceptions import NodeExistsError

from rebalance_lab.testing.ensemble import EMBEDDED, ZooKeeperEnsemble, running, wait_until
from rebalance_lab.testing.group import ConsumerGroup, GroupSettings, running_group
from rebalance_lab.trials.stage import TrialError


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

    settings = GroupSettings(members=1)
    with running_group(zookeeper, "/twice", tmp_path, settings) as group:
        group.wait_until_settled()
        before = connections()
        with pytest.raises(NodeExistsError):
            ConsumerGroup(zookeeper, "/twice", tmp_path, settings)
        wait_until(lambda: connections() == before, "the connections of what could not be made to end")


@pytest.mark.slow
def test_a_paused_member_is_waited_for_until_its_session_has_ended(
    zookeeper: ZooKeeperEnsemble, tmp_path: Path
) -> None:
    """Nothing changes for seconds, everything is owned, and all of it by one who stands still."""
    settings = GroupSettings(members=1, partitions=2, session_timeout_ms=4000)
    with running_group(zookeeper, "/paused", tmp_path, settings) as group:
        group.wait_until_settled()
        group.pause("m1")
        newcomer = group.add_member()
        group.wait_until_settled()
        assert group.partitions_of("m1") == ()
        assert group.partitions_of(newcomer) == (0, 1)
        assert [id.split("-")[1] for id in group.consumer_ids()] == [newcomer]
        group.resume("m1")
        group.wait_until_settled()
        assert len(group.partitions_of("m1")) == len(group.partitions_of(newcomer)) == 1


def test_a_group_at_rest_with_one_paused_is_not_settled_yet(zookeeper: ZooKeeperEnsemble, tmp_path: Path) -> None:
    """Its session outlasts the wait; and the message names it."""
    settings = GroupSettings(members=2, partitions=2, session_timeout_ms=10_000, rebalance_backoff_ms=50)
    with running_group(zookeeper, "/standing", tmp_path, settings) as group:
        group.wait_until_settled()
        group.pause("m2")
        with pytest.raises(TimeoutError, match=r"m2: it is paused, and registered .*; paused: m2$"):
            group.wait_until_settled(timeout_s=1)
        group.resume("m2")
        assert sorted(group.wait_until_settled()) == [0, 1]


def test_a_timeout_says_who_is_registered_who_owns_what_and_who_gave_up(
    zookeeper: ZooKeeperEnsemble, tmp_path: Path
) -> None:
    """F1: the retries end before the dead one's session does."""
    settings = GroupSettings(
        members=1, partitions=2, session_timeout_ms=10_000, rebalance_backoff_ms=50, rebalance_max_retries=2
    )
    with running_group(zookeeper, "/ghost", tmp_path, settings) as group:
        group.wait_until_settled()
        dead = group.consumer_ids()[0]
        group.kill("m1")
        told = group._events[group.add_member()]
        wait_until(lambda: told.poll() and told.gave_up > 0, "m2 to give up")
        with pytest.raises(TimeoutError, match="gave up a rebalance: m2") as raised:
            group.wait_until_settled(timeout_s=0.1)
        message = str(raised.value)
        assert "within 0.1 s: m2: it gave up a rebalance after 2 attempts" in message
        assert f"owners: 0: {dead}-0, 1: {dead}-0" in message
        assert all(each in message for each in group.consumer_ids())
        assert len(group.consumer_ids()) == 2


def test_a_member_whose_process_has_ended_is_not_waited_for(zookeeper: ZooKeeperEnsemble, tmp_path: Path) -> None:
    with running_group(zookeeper, "/ended", tmp_path, GroupSettings(members=1)) as group:
        group.wait_until_settled()
        group._processes["m1"].process.kill()
        with pytest.raises(TrialError, match="ended with -9"):
            group.wait_until_settled()


@pytest.mark.parametrize(("session_ms", "backoff_ms"), [(1000, 50), (2000, 300), (6000, 300), (10_000, 300)])
def test_attempts_outlast_a_dead_members_session(session_ms: int, backoff_ms: int) -> None:
    """F1's rule."""
    tick_ms = 500
    settings = GroupSettings(session_timeout_ms=session_ms, rebalance_backoff_ms=backoff_ms).completed(tick_ms)
    retries = settings.rebalance_max_retries
    assert retries is not None and retries >= 10
    assert (retries - 1) * backoff_ms > session_ms + tick_ms


def test_attempts_that_are_given_stay() -> None:
    assert GroupSettings(session_timeout_ms=10_000, rebalance_max_retries=4).completed(500).rebalance_max_retries == 4
