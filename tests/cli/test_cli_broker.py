"""The command `broker`: its settings, and bad surroundings: ZooKeeper, data folder, port, id and disk."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from cli_tools import LIMIT_S, CommandLine, Shell, background, end, next_line

from rebalance_lab.broker.calls import BrokerConfig
from rebalance_lab.broker.log.config import LogConfig, TimestampType
from rebalance_lab.cli.broker import broker_configs
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper


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


def test_settings_have_kafkas_names_and_types() -> None:
    settings = ["num.partitions=4", "auto.create.topics.enable=false", "log.retention.ms=7"]
    settings += ["log.message.timestamp.type=LogAppendTime", f"log.flush.interval.messages={2**63 - 1}"]
    assert broker_configs(3, "r1", settings) == (
        BrokerConfig(broker_id=3, rack="r1", num_partitions=4, auto_create_topics_enable=False),
        LogConfig(retention_ms=7, message_timestamp_type=TimestampType.LOG_APPEND_TIME),
    )
    assert broker_configs(3, None, None) == (BrokerConfig(broker_id=3), LogConfig())


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        (
            "num.partitions=0",
            "--set: Invalid value 0 for configuration num.partitions: Value must be at least 1",
        ),
        (
            "num.partitions=many",
            "--set: Invalid value many for configuration num.partitions: Not a number",
        ),
        ("auto.create.topics.enable=perhaps", "--set: Invalid value perhaps for"),
        ("broker.id=7", "--set broker.id: use the option --id of the command broker"),
        ("zookeeper.connect=h:1", "--set zookeeper.connect: use the option --zookeeper of the command broker"),
        ("foo=1", "--set foo: there is no such setting; all: docs/broker.md"),
        (
            "num.partition=1",
            "--set num.partition: there is no such setting; did you mean num.partitions? All: docs/broker.md",
        ),
        ("num.partitions", "--set num.partitions: write it as key=value"),
        ("lab.release=1.1", "--set inter.broker.protocol.version=2.7: a broker with lab.release=1.1 knows 1.1; take"),
    ],
)
@pytest.mark.parametrize("broker", [("cluster",), ("broker", "--zookeeper", "127.0.0.1:1", "--data", "none")])
def test_a_bad_setting_is_an_error(command: CommandLine, broker: tuple[str, ...], setting: str, why: str) -> None:
    assert command.refused(*broker, "--set", setting).startswith(why)


class Muted:
    """A way to a ZooKeeper on which every connection falls silent before the client says `word`."""

    def __init__(self, server: EmbeddedZooKeeper, word: bytes) -> None:
        self.reached = threading.Event()
        self._server = server
        self._word = word
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._listener]
        self.address = address(self._listener)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                server = socket.create_connection(("127.0.0.1", self._server.port))
                self._sockets.append(server)
                for each in ((client, server), (server, client)):
                    threading.Thread(target=self._forward, args=each, daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if self._word in data:
                    self.reached.set()
                    return
                target.sendall(data)
            target.close()

    def close(self) -> None:
        for each in self._sockets:
            each.close()


@pytest.fixture(params=[b"/cluster/id", b"/brokers/ids/7"], ids=["cluster id", "registration"])
def muted(request: pytest.FixtureRequest, fixture_zookeeper: EmbeddedZooKeeper) -> Iterator[Muted]:
    way = Muted(fixture_zookeeper, request.param)
    yield way
    way.close()


def test_a_zookeeper_that_falls_silent_during_the_start_is_an_error(
    command: CommandLine, muted: Muted, tmp_path: Path
) -> None:
    where = ["--zookeeper", muted.address, "--data", tmp_path / "data", "--id", 7]
    said = command.refused("broker", *where, "--connection-timeout-ms", 2000)
    assert said.startswith(f"no ZooKeeper answers at {muted.address} within 2000 ms")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_broker_whose_zookeeper_has_fallen_silent_can_be_ended(muted: Muted, tmp_path: Path, number: int) -> None:
    where = ["--zookeeper", muted.address, "--data", tmp_path / "data", "--id", 7]
    with background("broker", *where, "--connection-timeout-ms", 600_000, "--session-timeout-ms", 1000) as process:
        assert muted.reached.wait(LIMIT_S)
        ended = end(process, number)
    assert (ended.code, ended.out) == (0, "")


def test_data_folders_that_cannot_be_used(
    command: CommandLine, fixture_zookeeper: EmbeddedZooKeeper, tmp_path: Path
) -> None:
    where = ["--zookeeper", fixture_zookeeper.connect_string]
    file = tmp_path / "file"
    file.touch()
    for folder in (file, file / "below"):
        said = command.refused("broker", *where, "--data", folder)
        assert said.startswith(f"cannot write to the data folder {folder}: ")
        assert said.endswith("; choose another with --data")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text("version=0\nbroker.id=8\ncluster.id=another\n")
    said = command.refused("broker", *where, "--data", tmp_path / "data", "--id", 7)
    assert said.startswith(f"--data {tmp_path / 'data'}: the data folder belongs to broker 8 of cluster another, and")


def test_a_port_in_use_and_an_id_that_is_taken(
    command: CommandLine, silent: socket.socket, fixture_zookeeper: EmbeddedZooKeeper, tmp_path: Path
) -> None:
    where = ["--zookeeper", fixture_zookeeper.connect_string, "--data", tmp_path / "data"]
    port = silent.getsockname()[1]
    assert f"127.0.0.1:{port}: the port is in use" in command.refused("broker", *where, "--id", 3, "--port", port)
    with background("broker", *where, "--json", "--id", 3) as process:
        next_line(process)
        said = command.refused("broker", *where[:2], "--data", tmp_path / "other", "--id", 3)
        assert said.startswith("broker id 3 is taken: /brokers/ids/3 is of session ")
        assert end(process, signal.SIGTERM).code == 0


@pytest.mark.slow
def test_a_broker_that_cannot_say_its_address_gives_its_id_back(
    fixture_zookeeper: EmbeddedZooKeeper, tmp_path: Path
) -> None:
    where = ["--zookeeper", fixture_zookeeper.connect_string, "--data", tmp_path / "data", "--id", 6]
    line = ["bash", "-c", 'exec "$@" >/dev/full', "bash"]
    with background("broker", *where, before=line) as process:
        assert process.wait(LIMIT_S) == 2
        assert process.stderr is not None
        assert "cannot write to standard output: No space left on device" in process.stderr.read()
    with background("broker", *where, "--json") as process:
        next_line(process)
        assert end(process, signal.SIGTERM).code == 0


@pytest.mark.slow
def test_a_disk_that_is_full_ends_the_broker(fixture_zookeeper: EmbeddedZooKeeper, tmp_path: Path) -> None:
    """Here a limit of the process stands in for it. What was acknowledged is there at the next start."""
    where = ["--zookeeper", fixture_zookeeper.connect_string, "--data", tmp_path / "data", "--id", 5]
    limited = ["bash", "-c", 'ulimit -f 64; exec "$@"', "bash"]
    lines = "".join("x" * 999 + "\n" for _ in range(40))
    with background("broker", *where, "--json", before=limited) as process:
        at = ["--bootstrap", next_line(process)["bootstrap"], "--topic", "full"]
        assert Shell()("produce", *at, given=lines).code == 0
        ended = Shell()("produce", *at, "--timeout-ms", 3000, given=lines)
        assert ended.code == 2
        assert "; 0 records were written to full-0; " in ended.err
        _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 2
    assert (
        f"--data {tmp_path / 'data'}: the broker ends, because its data folder has failed: full-0: cannot append" in err
    )
    assert "Traceback" not in err
    with background("broker", *where, "--json") as process:
        at = ["--bootstrap", next_line(process)["bootstrap"], "--topic", "full"]
        assert Shell()("consume", *at, "--to-end").out == lines
        assert end(process, signal.SIGTERM).code == 0
