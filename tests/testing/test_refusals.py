"""What the plugin refuses at once, with a sentence that says what there is instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rebalance_lab.testing.ensemble import EMBEDDED, ZooKeeperEnsemble, ZooKeeperFaults, running
from rebalance_lab.testing.group import ConsumerGroup, GroupSettings, running_group
from rebalance_lab.trials.plan import PlanError
from rebalance_lab.world.live.java import EmbeddedServerError

TICK_MS = 500


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperEnsemble]:
    with running(EMBEDDED, tmp_path_factory.mktemp("zookeeper"), nodes=1, tick_ms=TICK_MS) as ensemble:
        yield ensemble


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"rules": "both"}, "there is no rule set both; there are: described, shipped"),
        ({"rules": "real"}, "there is no rule set real; there are: described, shipped"),
        ({"rules": "shiped"}, "did you mean shipped?"),
        ({"group": "a/b"}, "group=a/b: use only letters, digits, '.', '_' and '-'"),
        ({"topic": ""}, "topic=: use only letters, digits, '.', '_' and '-'"),
        ({"members": 0}, "members=0: must be"),
        ({"partitions": 0}, "partitions=0: must be"),
        ({"partitions": 2.5}, "partitions=2.5: must be a whole number (partitions)"),
        ({"session_timeout_ms": 100}, "session_timeout_ms=100: a server with tick_ms=500 grants 1000 to 10000 ms"),
        ({"session_timeout_ms": 60_000}, "session_timeout_ms=60000: a server with tick_ms=500 grants 1000 to 10000 ms"),
        ({"rebalance_backoff_ms": 0}, "rebalance_backoff_ms=0: must be"),
        ({"rebalance_max_retries": -1}, "rebalance_max_retries=-1: must be"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], says: str) -> None:
    """By the command line's own checks, and in their words."""
    with pytest.raises(PlanError, match=re.escape(says)):
        GroupSettings(**settings).completed(TICK_MS)


def test_settings_at_their_bounds_are_taken() -> None:
    for session_ms in (2 * TICK_MS, 20 * TICK_MS):
        least = GroupSettings("a.b_c-1", "t", 1, 1, "described", session_ms, 1, 0)
        assert least.completed(TICK_MS) == least


def test_a_group_of_such_settings_is_not_begun(zookeeper: ZooKeeperEnsemble, tmp_path: Path) -> None:
    with (
        pytest.raises(PlanError, match="group=a/b"),
        running_group(zookeeper, "/refused", tmp_path, GroupSettings(group="a/b")),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["z9", "zz"])
def test_a_server_there_is_not_is_refused(zookeeper: ZooKeeperEnsemble, name: str) -> None:
    faults = ZooKeeperFaults(zookeeper)
    harms: list[Callable[[str], object]] = [faults.kill, faults.start, faults.pause, faults.resume]
    for ask in (*harms, lambda server: faults.lag(server, 1), zookeeper.connect_to, zookeeper.serves):
        with pytest.raises(PlanError) as refused:
            ask(name)
        assert str(refused.value) == f"there is no server {name}; there are: z1"


def test_only_docker_takes_servers_apart(zookeeper: ZooKeeperEnsemble) -> None:
    faults = ZooKeeperFaults(zookeeper)
    for cut in (faults.partition, faults.rejoin):
        with pytest.raises(EmbeddedServerError, match="--zookeeper-world docker"):
            cut("z1")


def test_a_member_there_is_not_is_refused(zookeeper: ZooKeeperEnsemble, tmp_path: Path) -> None:
    group = ConsumerGroup(zookeeper, "/names", tmp_path, GroupSettings())
    try:
        group.add_member()
        group.add_member()
        for ask in (group.kill, group.leave, group.pause, group.resume, group.partitions_of):
            with pytest.raises(PlanError) as refused:
                ask("m9")
            assert str(refused.value) == "there is no member m9; there are: m1, m2"
        group.kill("m2")
        for ask in (group.kill, group.leave, group.pause, group.resume):
            with pytest.raises(PlanError) as refused:
                ask("m2")
            assert str(refused.value) == "m2 was killed or has left; there are: m1"
        assert group.partitions_of("m2") == (), "it was a member, and its session may live on"
        group.kill("m1")
        with pytest.raises(PlanError, match="m1 was killed or has left; there are: none"):
            group.kill("m1")
    finally:
        group.end()
