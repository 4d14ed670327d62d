"""Fixtures for more than one room."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tiers import TIERS, may_hold

from rebalance_lab.analysis import session
from rebalance_lab.analysis.session import LocalSpark
from rebalance_lab.world.containers.engine import IMAGE_VARIABLES, ContainersError, Engine
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper

# Tests start hundreds of Python processes. Where none may write bytecode, each would compile all of the lab again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell ignores these signals for what it starts in the background, and programs that tests start would inherit that.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

# The same examples in every run, however slow the machine: a red test is red again.
settings.register_profile(
    "lab", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("lab")


#: The limit of a test of the tier `slow`, which may run beside other work, where it names none.
SLOW_LIMIT_S = 580


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`pytest -m slow`, and the like, imports only the files in which tests of that tier can be."""
    tier = config.option.markexpr
    if tier in TIERS and collection_path.suffix == ".py" and not may_hold(collection_path, tier):
        return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A run of one tier begins with the files that hold the tests with the longest limits, so that none of them is the
    last, for which the other processes wait."""
    for item in items:
        marked = {each.name for each in item.iter_markers()}
        for tier in marked.intersection(TIERS):
            if not may_hold(item.path, tier):
                raise pytest.UsageError(f"{item.path}: name pytest.mark.{tier} in it, or `pytest -m {tier}` misses it")
        if "slow" in marked and "timeout" not in marked:
            item.add_marker(pytest.mark.timeout(SLOW_LIMIT_S))
    tier = config.option.markexpr
    if tier in TIERS:
        limits_s: dict[Path, float] = {}
        for item in items:
            limit = item.get_closest_marker("timeout")
            if limit is not None and item.get_closest_marker(tier):
                limits_s[item.path] = max(limit.args[0], limits_s.get(item.path, 0))
        items.sort(key=lambda item: -limits_s.get(item.path, 0))


def pytest_collection_finish() -> None:
    """The collected tests stay: the garbage collector need not look at them again and again, which took 7 % of the time
    of tests that compute."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(scope="session")
def embedded_zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedZooKeeper]:
    """A real ZooKeeper for the whole run (tick 500 ms). Tests share it: use paths of your own,
    and start another one before you pause or kill it."""
    with EmbeddedZooKeeper.start(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


#: Set in CI: there nothing is skipped in silence.
DOCKER_REQUIRED = "REBALANCE_LAB_REQUIRE_DOCKER"


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[Engine]:
    """A session with docker, for tests of the tier `docker`; they are skipped without an engine
    or without the images (scripts/images)."""
    with ExitStack() as session:
        try:
            engine = session.enter_context(Engine())
            for image in IMAGE_VARIABLES:
                engine.image(image)
        except ContainersError as error:
            (pytest.fail if os.environ.get(DOCKER_REQUIRED) else pytest.skip)(f"no containers: {error}")
        yield engine


@pytest.fixture(scope="session")
def local_spark() -> Iterator[LocalSpark]:
    """The one Spark that a process can have. It starts when the first test needs it, in about ten seconds."""
    with session.start(cores=2) as local:
        yield local


@pytest.fixture
def spark(local_spark: LocalSpark) -> object:
    return local_spark.session
