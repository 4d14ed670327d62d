"""The embedded server, really started."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from rebalance_lab.world.live import java
from rebalance_lab.world.live.java import EmbeddedServerError
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper
from rebalance_lab.world.live.takeover import password_of
from rebalance_lab.world.process.states import RunState, run_state, wait_for_state

BOUND_S = 10.0


def test_it_serves_and_tells_who_it_is(embedded_zookeeper: EmbeddedZooKeeper) -> None:
    assert embedded_zookeeper.connect_string == f"127.0.0.1:{embedded_zookeeper.port}"
    assert embedded_zookeeper.state is RunState.ALIVE
    assert "Mode: standalone" in embedded_zookeeper.command("srvr")
    configuration = embedded_zookeeper.command("conf").splitlines()
    assert "tickTime=500" in configuration
    assert "maxClientCnxns=0" in configuration
    assert "clientPortListenBacklog=1024" in configuration
    assert java.zookeeper_version() in embedded_zookeeper.command("srvr")


def test_pyspark_is_not_imported() -> None:
    """Its jars are found without it: members must start lightly."""
    program = "import sys; from rebalance_lab.world.live.java import zookeeper_classpath as c; c(); print(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = answer.stdout.split()
    assert "rebalance_lab.world.live.java" in modules
    assert "pyspark" not in modules


def test_a_life(tmp_path: Path) -> None:
    """Pause, resume, kill, start again on the same data and port, stop; logs are kept."""
    with EmbeddedZooKeeper.start(tmp_path, tick_ms=300) as server:
        server.pause()
        assert server.state is RunState.STOPPED
        server.resume()
        assert server.state is RunState.ALIVE
        assert "tickTime=300" in server.command("conf").splitlines()
        port = server.port
        server.kill()
        assert server.state is RunState.GONE
        with pytest.raises(OSError, match="refused"):
            server.command("srvr")
    with EmbeddedZooKeeper.start(tmp_path, port=port) as again:
        assert again.port == port
    assert again.state is RunState.GONE
    logs = sorted(path.name for path in again.log_dir.iterdir())
    assert logs == ["zookeeper-0.log", "zookeeper-1.log"]
    assert "binding to port" in again.log_file.read_text()


def test_a_paused_server_stops_in_order(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper.start(tmp_path)
    server.pause()
    server.stop()
    assert server.state is RunState.GONE
    server.stop()  # again changes nothing
    with pytest.raises(EmbeddedServerError, match=r"cannot send SIGSTOP: .* has ended; the last lines of"):
        server.pause()


def test_a_taken_port_is_an_error_that_shows_the_log(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        with pytest.raises(
            EmbeddedServerError, match=r"ended with code 1; the last lines of .*zookeeper-0\.log"
        ) as got:
            EmbeddedZooKeeper.start(tmp_path, port=port)
    assert "BindException" in str(got.value)


def test_a_free_port_is_kept_until_the_server_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launch = EmbeddedZooKeeper.launch
    refused: list[int] = []

    def contested(server: EmbeddedZooKeeper) -> None:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", server.port))
        refused.append(server.port)
        launch(server)

    monkeypatch.setattr(EmbeddedZooKeeper, "launch", contested)
    with EmbeddedZooKeeper.start(tmp_path) as server:
        assert server.serves()
    assert refused == [server.port]


def test_the_server_dies_when_its_starter_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from rebalance_lab.world.live.server_process import EmbeddedZooKeeper\n"
        f"server = EmbeddedZooKeeper.start(Path({str(tmp_path)!r})); print(server.pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        server_pid = int(starter.stdout.readline())
        assert run_state(server_pid) is RunState.ALIVE
        os.kill(starter.pid, signal.SIGKILL)
    wait_for_state(server_pid, RunState.GONE, BOUND_S)


# -- errors that tell what to do ---------------------------------------------------------------


def fake_java(folder: Path, version_line: str) -> Path:
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '{version_line}' >&2\n")
    command.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("version_line", "complaint"),
    [
        ('openjdk version "11.0.22" 2024-01-16', r"is Java 11: .* needs Java 17 or later"),
        ('java version "1.8.0_402"', r"is Java 8: .* needs Java 17 or later"),
        ("no idea", r"does not tell its version: 'no idea'"),
    ],
)
def test_an_old_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version_line: str, complaint: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", version_line)))
    with pytest.raises(EmbeddedServerError, match=complaint):
        EmbeddedZooKeeper.start(tmp_path / "data")


def test_a_java_home_is_taken_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(tmp_path / "jdk", 'openjdk version "21.0.2"')
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.java_command() == str(home / "bin" / "java")


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(EmbeddedServerError, match=r"no java in the PATH, and JAVA_HOME is not set: .*Java 17"):
        java.java_command()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EmbeddedServerError, match=r"no java in JAVA_HOME"):
        java.java_command()


def test_no_pyspark_and_no_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java.zookeeper_classpath.cache_clear()
    monkeypatch.setattr("rebalance_lab.java.find_spec", lambda _name: None)
    with pytest.raises(EmbeddedServerError, match="PySpark is not installed"):
        java.zookeeper_classpath()
    empty = ModuleSpec("pyspark", None)
    empty.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr("rebalance_lab.java.find_spec", lambda _name: empty)
    with pytest.raises(EmbeddedServerError, match=r"holds no zookeeper-\*\.jar"):
        java.zookeeper_classpath()


def test_the_password_of_a_session_is_known_from_its_id(embedded_zookeeper: EmbeddedZooKeeper) -> None:
    client = KazooClient(embedded_zookeeper.connect_string)
    client.start()
    try:
        session_id, password = client.client_id
        assert password_of(session_id) == password
    finally:
        client.stop()
        client.close()
