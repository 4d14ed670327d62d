"""Each conformance case takes the fixture `conform` and runs its story in every world."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from conformance_embedded import EmbeddedEnsembleHarness, EmbeddedHarness, make_whole
from conformance_harness import Story
from conformance_kazoo import KazooHarness
from conformance_simulated import SimulatedEnsembleHarness, SimulatedHarness

from rebalance_lab.world.live.embedded import EmbeddedZooKeeper
from rebalance_lab.world.live.ensemble import EmbeddedEnsemble
from rebalance_lab.world.live.ensemble_log import EnsembleLog
from rebalance_lab.world.live.transaction_log import TransactionLog

#: Simulated worlds a story is told in: other schedules, latencies and ping ages.
SEEDS = range(5)

Conform = Callable[[Story], None]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "conform_ensemble" in metafunc.fixturenames:
        metafunc.parametrize("conform_ensemble", ["simulated", "recorded", "embedded"], indirect=True)
    if "conform" in metafunc.fixturenames:
        worlds = ["simulated", "recorded", "embedded"]
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
    server = request.getfixturevalue("embedded_zookeeper")
    log = request.getfixturevalue("transaction_log")
    harness = {"embedded": EmbeddedHarness, "kazoo": KazooHarness}[world]
    return lambda story: harness(server, log).run(story)


@pytest.fixture(scope="package")
def embedded_ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedEnsemble, EnsembleLog]]:
    """Three real servers for all stories of this folder; any of them may be made to lag."""
    with EmbeddedEnsemble.start(tmp_path_factory.mktemp("ensemble"), lag_nodes=("z1", "z2", "z3")) as ensemble:
        yield ensemble, EnsembleLog(ensemble.data_dirs)


@pytest.fixture
def conform_ensemble(request: pytest.FixtureRequest) -> Iterator[Conform]:
    """As `conform`, on three servers. Each story may leave them as it likes."""
    world = request.param
    if world == "embedded":
        ensemble, log = request.getfixturevalue("embedded_ensemble")
        yield lambda story: EmbeddedEnsembleHarness(ensemble, log).run(story)
        make_whole(ensemble)
        return

    def run(story: Story) -> None:
        for seed in SEEDS:
            SimulatedEnsembleHarness(seed, recorded=world == "recorded").run(story)

    yield run
