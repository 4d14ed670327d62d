"""Each conformance case takes the fixture `conform` and runs its story in every world."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conformance_embedded import EmbeddedEnsembleHarness, EmbeddedHarness, make_whole
from conformance_harness import Story
from conformance_kazoo import KazooHarness
from conformance_network import LiveNetworkHarness, NetworkStory, OnNetwork, SimulatedNetworkHarness
from conformance_simulated import SimulatedEnsembleHarness, SimulatedHarness

from rebalance_lab.world.containers.engine import Engine
from rebalance_lab.world.containers.ensemble import ContainerEnsemble
from rebalance_lab.world.live.ensemble import EmbeddedEnsemble
from rebalance_lab.world.live.ensemble_log import EnsembleLog
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper
from rebalance_lab.world.live.transaction_log import TransactionLog

#: Simulated worlds a story is told in: other schedules, latencies and ping ages.
SEEDS = range(5)

Conform = Callable[[Story], None]

CONTAINERS = pytest.param("containers", marks=[pytest.mark.docker, pytest.mark.timeout(300)])

#: Of the stories told in containers, the one before which another server becomes the leader.
MIDDLE = pytest.StashKey[bool]()


@pytest.hookimpl(trylast=True)  # after those that are not wanted have gone
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    contained = [item for item in items if item.get_closest_marker("docker") and "conform" in item.fixturenames]
    for item in contained[len(contained) // 2 :][:1]:
        item.stash[MIDDLE] = True


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "conform_ensemble" in metafunc.fixturenames:
        metafunc.parametrize("conform_ensemble", ["simulated", "recorded", "embedded", CONTAINERS], indirect=True)
    if "conform" in metafunc.fixturenames:
        worlds: list[Any] = ["simulated", "recorded", "embedded", CONTAINERS]
        if getattr(metafunc.function, "also_kazoo", False):
            worlds.append("kazoo")
        metafunc.parametrize("conform", worlds, indirect=True)


@pytest.fixture(scope="session")
def transaction_log(embedded_zookeeper: EmbeddedZooKeeper) -> TransactionLog:
    return TransactionLog(embedded_zookeeper.data_dir)


@pytest.fixture
def conform(request: pytest.FixtureRequest) -> Conform:
    """Runs a story in the world that the test is parametrized with."""
    world = request.param
    if world in ("simulated", "recorded"):

        def run(story: Story) -> None:
            for seed in SEEDS:
                SimulatedHarness(seed, recorded=world == "recorded").run(story)

        return run
    if world == "containers":
        ensemble, ensemble_log = request.getfixturevalue("container_ensemble")
        if request.node.stash.get(MIDDLE, False):
            change_leader(ensemble)
        leader = ensemble.wait_until_ready()
        return lambda story: EmbeddedHarness(ensemble, ensemble_log, (leader,)).run(story)
    server = request.getfixturevalue("embedded_zookeeper")
    log = request.getfixturevalue("transaction_log")
    harness = {"embedded": EmbeddedHarness, "kazoo": KazooHarness}[world]
    return lambda story: harness(server, log).run(story)


@pytest.fixture(scope="package")
def embedded_ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedEnsemble, EnsembleLog]]:
    """Three real servers for all stories of this folder; any of them may be made to lag."""
    with EmbeddedEnsemble.start(tmp_path_factory.mktemp("ensemble"), lag_nodes=("z1", "z2", "z3")) as ensemble:
        yield ensemble, EnsembleLog(ensemble.data_dirs)


@pytest.fixture(scope="package")
def container_ensemble(
    docker_engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ContainerEnsemble, EnsembleLog]]:
    """The same in containers."""
    folder = tmp_path_factory.mktemp("containers")
    with ContainerEnsemble.start(docker_engine, folder, lag_nodes=("z1", "z2", "z3")) as ensemble:
        yield ensemble, EnsembleLog(ensemble.data_dirs)


def change_leader(ensemble: ContainerEnsemble) -> None:
    """Another server leads, in another epoch; the old leader is back as a follower."""
    old = ensemble.wait_until_ready()
    ensemble.kill(old)
    while ensemble.leader_now() in (None, old):
        assert ensemble.servers[old].ended_by_itself()
    ensemble.make_whole()
    assert ensemble.wait_until_ready() != old


@pytest.fixture
def conform_ensemble(request: pytest.FixtureRequest) -> Iterator[Conform]:
    """As `conform`, on three servers. Each story may leave them as it likes."""
    world = request.param
    if world == "embedded":
        ensemble, log = request.getfixturevalue("embedded_ensemble")
        yield lambda story: EmbeddedEnsembleHarness(ensemble, log).run(story)
        make_whole(ensemble)
        return
    if world == "containers":
        contained, log = request.getfixturevalue("container_ensemble")
        yield lambda story: EmbeddedEnsembleHarness(contained, log).run(story)
        contained.make_whole()
        return

    def run(story: Story) -> None:
        for seed in SEEDS:
            SimulatedEnsembleHarness(seed, recorded=world == "recorded").run(story)

    yield run


@pytest.fixture(params=["objects", "bytes", "live"])
def on_network(request: pytest.FixtureRequest) -> OnNetwork:
    def run(story: NetworkStory) -> None:
        if request.param == "live":
            LiveNetworkHarness().run(story)
        else:
            for seed in SEEDS:
                SimulatedNetworkHarness(seed, through_bytes=request.param == "bytes").run(story)

    return run
