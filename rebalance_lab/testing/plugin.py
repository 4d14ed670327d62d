"""The pytest plugin. Every pytest that has this lab installed loads it, so it imports next to
nothing before a fixture is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from rebalance_lab.testing.ensemble import ZooKeeperEnsemble, ZooKeeperFaults
    from rebalance_lab.testing.group import ConsumerGroup

_WORLDS = ("embedded", "docker")


class _Servers(NamedTuple):
    world: str
    nodes: int
    tick_ms: int


_SERVERS = pytest.StashKey[_Servers]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rebalance-lab", "ZooKeeper ensembles and consumer groups (rebalance-lab)")
    group.addoption(
        "--zookeeper-world",
        choices=_WORLDS,
        help="where the servers of zookeeper_ensemble run: child processes, or containers (before the ini option)",
    )
    parser.addini("zookeeper_world", "embedded or docker", default="embedded")
    parser.addini("zookeeper_nodes", "servers of zookeeper_ensemble", default="3")
    parser.addini("zookeeper_tick_ms", "their tickTime: sessions last 2 to 20 ticks", default="500")


def pytest_configure(config: pytest.Config) -> None:
    """Wrong options end the run here, in one line, and not each test that asks for servers."""
    world = config.getoption("--zookeeper-world") or str(config.getini("zookeeper_world"))
    if world not in _WORLDS:
        raise pytest.UsageError(f"zookeeper_world = {world}: it is one of {', '.join(_WORLDS)}")
    config.stash[_SERVERS] = _Servers(world, _number(config, "zookeeper_nodes"), _number(config, "zookeeper_tick_ms"))


def _number(config: pytest.Config, name: str) -> int:
    text = str(config.getini(name))
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise pytest.UsageError(f"{name} = {text}: give a whole number from 1")
    return int(text)


@pytest.fixture(scope="session")
def zookeeper_ensemble(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ZooKeeperEnsemble]:
    """Real ZooKeeper servers for all tests: see `testing.ensemble.ZooKeeperEnsemble`."""
    from rebalance_lab.testing.ensemble import running  # noqa: PLC0415

    servers = pytestconfig.stash[_SERVERS]
    folder = tmp_path_factory.mktemp("zookeeper")
    with running(servers.world, folder, servers.nodes, servers.tick_ms) as ensemble:
        yield ensemble


@pytest.fixture
def zookeeper_faults(zookeeper_ensemble: ZooKeeperEnsemble) -> Iterator[ZooKeeperFaults]:
    """Faults of these servers: see `testing.ensemble.ZooKeeperFaults`. All is healed at the end
    of the test."""
    from rebalance_lab.testing.ensemble import ZooKeeperFaults  # noqa: PLC0415

    faults = ZooKeeperFaults(zookeeper_ensemble)
    yield faults
    faults.heal()


@pytest.fixture
def consumer_group(
    zookeeper_ensemble: ZooKeeperEnsemble,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., ConsumerGroup]]:
    """Makes groups: `consumer_group(members=3, partitions=6)`; settings as in
    `testing.group.GroupSettings`. Each has a chroot of its own; members end with the test."""
    from rebalance_lab.testing.group import GroupSettings, running_group  # noqa: PLC0415

    with ExitStack() as groups:

        def make(**settings: Any) -> ConsumerGroup:
            folder = tmp_path_factory.mktemp("consumer-group")
            chroot = f"/{folder.name}"
            return groups.enter_context(running_group(zookeeper_ensemble, chroot, folder, GroupSettings(**settings)))

        yield make
