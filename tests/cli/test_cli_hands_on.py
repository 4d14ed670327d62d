"""`zookeeper`, `topics`, `join`: on a real ZooKeeper, as processes of their own."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest
from cli_tools import CommandLine, background, end, next_line
from kazoo.client import KazooClient

from rebalance_lab.world.live.server_process import EmbeddedZooKeeper

SESSION = ["--config", "zookeeper.session.timeout.ms=2000", "--config", "rebalance.backoff.ms=100"]


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_zookeeper_says_where_it_is_and_ends_with_all_it_started(tmp_path, monkeypatch, number: int) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with background("zookeeper", "--json") as process:
        ready = next_line(process)
        assert set(ready) == {"zookeeper", "pids"}
        host, port = ready["zookeeper"].split(":")
        (pid,) = ready["pids"]["zookeeper"]
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            connection.sendall(b"ruok")
            assert connection.recv(4) == b"imok"
        ended = end(process, number)
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert _gone(pid)
    assert list(tmp_path.glob("rebalance-lab-zookeeper-*")) == []


def test_zookeeper_keeps_data_where_it_is_told(command: CommandLine, tmp_path) -> None:
    topics = ["topics", "--fixture", "--create", "kept", "--partitions", 1, "--json", "--zookeeper"]
    for created in (["/brokers/ids/0", "/brokers/topics/kept"], []):
        with background("zookeeper", "--data", tmp_path / "some data") as process:
            assert command(*topics, next_line(process)["zookeeper"]).json == {"created": created}
            ended = end(process, signal.SIGTERM)
        assert ended.code == 0
        assert "Ctrl-C ends it" in ended.err


@pytest.mark.parametrize("name", ["zookeeper", "cluster"])
def test_a_data_folder_that_another_command_uses(command: CommandLine, tmp_path: Path, name: str) -> None:
    """A second server would write the same files."""
    with background("zookeeper", "--data", tmp_path, "--json") as process:
        next_line(process)
        said = command.refused(name, "--data", tmp_path)
        assert said.startswith(f"--data {tmp_path}: another process keeps its files in this folder")


def test_zookeeper_that_is_killed_is_told(tmp_path) -> None:
    with background("zookeeper", "--data", tmp_path, "--json") as process:
        os.kill(next_line(process)["pids"]["zookeeper"][0], signal.SIGKILL)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "ended unexpectedly; see " in err


def test_an_ensemble_says_where_it_is_and_outlives_a_node(command: CommandLine, tmp_path) -> None:
    """A node that ends is told; the others serve on, and end with the command."""
    with background("zookeeper", "--nodes", 3, "--data", tmp_path, "--json") as process:
        ready = next_line(process)
        pids = ready["pids"]["zookeeper"]
        assert len(ready["zookeeper"].split(",")) == len(set(pids)) == 3
        os.kill(pids[0], signal.SIGKILL)
        created = command("topics", "--fixture", "--create", "t", "--partitions", 1, "--zookeeper", ready["zookeeper"])
        assert created.code == 0
        ended = end(process, signal.SIGTERM)
    assert (ended.code, ended.out) == (0, "")
    assert f"z1 (pid {pids[0]}) ended unexpectedly; see " in ended.err
    assert "2 of 3 servers are left" in ended.err
    assert all(_gone(pid) for pid in pids)
    line = command.refused("zookeeper", "--data", tmp_path)
    assert line.endswith("holds the data of 3 servers, and --nodes is 1: choose another --data, or --nodes")


def test_zookeeper_on_a_port_in_use(command: CommandLine, fixture_zookeeper: EmbeddedZooKeeper) -> None:
    line = command.refused("zookeeper", "--port", fixture_zookeeper.port)
    assert line.endswith("Address already in use; choose another --port, or 0")


def test_topics_write_what_members_need_once(command: CommandLine, fixture_zookeeper: EmbeddedZooKeeper) -> None:
    topics = ["topics", "--zookeeper", fixture_zookeeper.connect_string, "--fixture", "--create"]
    first = command(*topics, "cli-topics", "--partitions", 3, "--brokers", 2, "--json")
    assert first.code == 0
    assert "/brokers/topics/cli-topics" in first.json["created"]
    again = command(*topics, "cli-topics", "--partitions", 3, "--brokers", 2)
    assert (again.code, again.out) == (0, "nothing to do: everything exists\n")
    line = command.refused(*topics, "cli-topics", "--partitions", 4)
    assert line.startswith("/brokers/topics/cli-topics exists already and holds ")
    client = KazooClient(fixture_zookeeper.connect_string)
    client.start()
    try:
        data, stat = client.get("/brokers/topics/cli-topics")
        assert data == b'{"version":1,"partitions":{"0":[0],"1":[1],"2":[0]}}'
        assert stat.ephemeralOwner == 0
    finally:
        client.stop()
        client.close()


def test_join_tells_each_change_and_leaves_cleanly(
    command: CommandLine, fixture_zookeeper: EmbeddedZooKeeper, tmp_path: Path
) -> None:
    where = fixture_zookeeper.connect_string
    command("topics", "--zookeeper", where, "--fixture", "--create", "cli-join", "--partitions", 2)
    join = ["join", "--zookeeper", where, "--group", "cli", "--topic", "cli-join", *SESSION]
    both = [["cli-join", 0], ["cli-join", 1]]
    with background(*join) as first:
        line = next_line(first)
        assert set(line) == {"at_us", "member", "owned"}
        assert line["member"].startswith("cli_")
        assert line["owned"] == both
        with background(*join, "--assignor", "range") as second:
            assert len(next_line(second)["owned"]) == 1
            assert next_line(first)["owned"] == []
            assert len(next_line(first)["owned"]) == 1
            left = end(second, signal.SIGTERM)
            assert left.code == 0
            assert left.out.count('"owned":[]') == 1
        assert next_line(first)["owned"] == []
        assert next_line(first)["owned"] == both
        assert end(first, signal.SIGINT).code == 0
