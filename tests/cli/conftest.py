"""Fixtures of the command line's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cli_tools import CommandLine, Shell

from rebalance_lab.world.live.server_process import EmbeddedZooKeeper


@pytest.fixture(autouse=True)
def _no_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest-xdist gives its workers the width of its own terminal."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """Runs command lines in this process."""
    return CommandLine(capsys)


@pytest.fixture
def shell() -> Shell:
    """Runs command lines in processes of their own."""
    return Shell()


@pytest.fixture(scope="module")
def fixture_zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedZooKeeper]:
    """A server for these tests alone: they write brokers, which every member of a server sees."""
    with EmbeddedZooKeeper.start(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server
