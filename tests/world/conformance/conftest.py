"""Each conformance case takes the fixture `conform` and runs its story in every world."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from conformance_embedded import EmbeddedHarness
from conformance_harness import Story
from conformance_kazoo import KazooHarness
from conformance_simulated import SimulatedHarness

from rebalance_lab.world.live.embedded import EmbeddedZooKeeper
from rebalance_lab.world.live.transaction_log import TransactionLog

#: Simulated worlds a story is told in: other schedules, latencies and ping ages.
SEEDS = range(5)

Conform = Callable[[Story], None]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
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
