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

LISTENS = ["python", "-m", "http.server", "9092"]

#: Prints whether it reaches an address within a time. Refused, it tries again: nothing listens there yet.
REACHES = """
import socket, sys, time
address, limit_s = sys.argv[1], float(sys.argv[2])
until_s = time.monotonic() + limit_s
while True:
    try:
        socket.create_connection((address, 9092), timeout=limit_s).close()
    except ConnectionRefusedError:
        if time.monotonic() > until_s:
            raise
        time.sleep(0.01)
        continue
    except TimeoutError:
        print("silence")
    else:
        print("reached")
    break
"""


class Bench:
    """Containers on the networks of one trial."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine, self._folder = engine, folder
        self.clients, self.nodes = (PrivateNetwork(engine, name) for name in ("clients", "nodes"))

    def start(self, name: str, command: list[str]) -> NodeContainer:
        return NodeContainer(self._engine, name, self._folder, command, clients=self.clients, nodes=self.nodes)


@pytest.fixture(scope="module")
def bench(docker_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(docker_engine, tmp_path_factory.mktemp("trial"))


@pytest.fixture
def process(bench: Bench) -> Iterator[NodeContainer]:
    made = bench.start("p1", STANDS)
    yield made
    made.remove()


@pytest.fixture
def listener(bench: Bench) -> Iterator[NodeContainer]:
    made = bench.start("p2", LISTENS)
    yield made
    made.remove()


def reaches(one: NodeContainer, address: str, limit_s: float) -> str:
    code, said = one.container.exec_run(["python", "-c", REACHES, address, str(limit_s)])
    assert code == 0, said.decode()
    return str(said.decode().strip())


def test_a_node_that_is_cut_off_from_zookeeper_still_reaches_the_others(
    process: NodeContainer, listener: NodeContainer
) -> None:
    assert reaches(process, listener.client_address, 30) == "reached"
    process.cut_off()
    assert not process.connected
    assert reaches(process, listener.client_address, 0.5) == "silence", "no refusal and no way round"
    assert reaches(process, listener.address, 10) == "reached"
    process.heal()
    assert process.connected
    assert reaches(process, listener.client_address, 10) == "reached"


def test_a_signal_without_a_handler_is_not_lost(process: NodeContainer) -> None:
    assert process.exit_code is None
    process.signal("SIGTERM")
    process.wait(30)
    assert process.exit_code == 143


def test_a_kill_is_seen_as_one(process: NodeContainer) -> None:
    process.kill()
    assert process.exit_code == process.killed


def test_an_exit_code_of_its_own_is_kept(bench: Bench) -> None:
    ended = bench.start("p3", ["python", "-c", "raise SystemExit(7)"])
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
