"""A process in a container: how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import docker.errors
import pytest

from rebalance_lab.world.containers.engine import ContainersError, Engine
from rebalance_lab.world.containers.networks import PrivateNetwork
from rebalance_lab.world.containers.nodes import NodeContainer

pytestmark = [pytest.mark.docker, pytest.mark.timeout(120)]

#: It has no handler for any signal, as every process has none when it begins.
STANDS = ["python", "-c", "import time; time.sleep(1000)"]


@pytest.fixture
def process(docker_engine: Engine, tmp_path: Path) -> Iterator[NodeContainer]:
    made = NodeContainer(docker_engine, "p1", PrivateNetwork(docker_engine, "clients"), tmp_path, STANDS)
    yield made
    made.remove()


def test_a_signal_without_a_handler_is_not_lost(process: NodeContainer) -> None:
    assert process.exit_code is None
    process.signal("SIGTERM")
    process.wait(30)
    assert process.exit_code == 143


def test_a_kill_is_seen_as_one(process: NodeContainer) -> None:
    process.kill()
    assert process.exit_code == process.killed


def test_an_exit_code_of_its_own_is_kept(docker_engine: Engine, tmp_path: Path) -> None:
    network = PrivateNetwork(docker_engine, "clients")
    ended = NodeContainer(docker_engine, "p2", network, tmp_path, ["python", "-c", "raise SystemExit(7)"])
    try:
        ended.wait(30)
        assert ended.exit_code == 7
    finally:
        ended.remove()


def test_one_that_could_not_be_started_again_is_removed(
    docker_engine: Engine, process: NodeContainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_options: object) -> None:
        raise docker.errors.APIError("no socket")

    process.kill()
    monkeypatch.setattr(process.container, "attach_socket", refuse)
    with pytest.raises(ContainersError, match="cannot start p1"):
        process.launch()
    with pytest.raises(BrokenPipeError, match="p1 has no standard input"):
        process.write_line(b"")
    name = process.container.name
    process.remove()
    assert docker_engine.client.containers.list(all=True, filters={"name": name}) == []
