"""The command `broker` where ZooKeeper does not answer."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_tools import CommandLine, background, end


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def address(server: socket.socket) -> str:
    return f"127.0.0.1:{server.getsockname()[1]}"


def test_a_zookeeper_that_does_not_answer_is_an_error(
    command: CommandLine, silent: socket.socket, tmp_path: Path
) -> None:
    said = command.refused(
        "broker", "--zookeeper", address(silent), "--data", tmp_path / "data", "--connection-timeout-ms", 300
    )
    assert said.startswith(f"no ZooKeeper answers at {address(silent)} within 300 ms")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_broker_that_waits_for_zookeeper_can_be_ended(silent: socket.socket, tmp_path: Path, number: int) -> None:
    with background(
        "broker", "--zookeeper", address(silent), "--data", tmp_path / "data", "--connection-timeout-ms", 600_000
    ) as process:
        silent.accept()[0].close()  # it takes signals by now
        ended = end(process, number)
    assert (ended.code, ended.out) == (0, "")
