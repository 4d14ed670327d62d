"""`cluster` and the commands that talk to its brokers, as processes of their own."""

from __future__ import annotations

import io
import os
import signal
import socket
from pathlib import Path

import pytest
from cli_tools import CommandLine, background, end, next_line


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def it_grows_and_never_shrinks(command: CommandLine, bootstrap: list[str]) -> None:
    command("topics", *bootstrap, "--create", "grows", "--partitions", 2)
    alter = ("topics", *bootstrap, "--alter", "grows", "--partitions")
    assert command(*alter, 4).out == "altered topic grows\n"
    refused = command.refused(*alter, 3, "--config", "retention.ms=5")
    assert "Topic currently has 4 partitions, which is higher than the requested 3." in refused
    assert "their messages would be lost" in refused
    assert "Topic already has 4 partitions" in (same := command.refused(*alter, 4))
    assert "lost" not in same
    grown = command("topics", *bootstrap, "--describe", "grows", "--json").json
    assert (len(grown["partitions"]), grown["settings"]) == (4, {})
    command("topics", *bootstrap, "--delete", "grows")


@pytest.mark.slow
def test_records_are_there_again_at_the_next_start(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = ("--set", "num.partitions=3")
    with background("cluster", "--brokers", 2, "--data", tmp_path, *settings, "--json") as process:
        ready = next_line(process)
        assert set(ready) == {"zookeeper", "bootstrap", "pids", "logs"}
        (of_zookeeper,) = ready["logs"]["zookeeper"]
        assert "binding to port" in Path(of_zookeeper).read_text()
        assert ready["bootstrap"].split(",")[0] in Path(ready["logs"]["brokers"]["1"]).read_text()
        bootstrap = ["--bootstrap", ready["bootstrap"]]
        created = command("topics", *bootstrap, "--create", "t", "--config", "retention.ms=-1")
        assert created.out == "created topic t\n"
        altered = command(
            "topics", *bootstrap, "--alter", "t", "--config", "segment.ms=9000", "--delete-config", "flush.ms"
        )
        assert altered.out == "altered topic t\n"
        refused = command.refused("topics", *bootstrap, "--alter", "t", "--config", "retention.ms=soon")
        assert "INVALID_CONFIG" in refused
        assert "Not a number of type LONG" in refused
        assert command("topics", *bootstrap, "--list", "--json").json == {"topics": ["t"]}
        described = command("topics", *bootstrap, "--describe", "t", "--json").json
        assert len(described["partitions"]) == 3
        assert {each["leader"] for each in described["partitions"]} == {1, 2}
        assert described["settings"] == {"retention.ms": "-1", "segment.ms": "9000"}
        assert command("topics", *bootstrap, "--describe", "t").out.endswith("retention.ms=-1\nsegment.ms=9000\n")
        it_grows_and_never_shrinks(command, bootstrap)
        lines = "".join(f"key{each}:{each}\n" for each in range(1200))
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
        written = command(
            "produce",
            *bootstrap,
            "--topic",
            "t",
            "--partition",
            2,
            "--key-separator",
            ":",
            "--compression",
            "zstd",
            "--json",
        )
        assert written.json == {"records": 1200, "first_offset": 0, "last_offset": 1199}
        assert "TOPIC_ALREADY_EXISTS" in command.refused("topics", *bootstrap, "--create", "t")
        ended = end(process, signal.SIGTERM)
    assert (ended.code, ended.err) == (0, "")
    assert all(_gone(pid) for pid in (*ready["pids"]["zookeeper"], *ready["pids"]["brokers"].values()))

    with background("cluster", "--brokers", 2, "--data", tmp_path, "--json") as process:
        bootstrap = ["--bootstrap", next_line(process)["bootstrap"]]
        consume = ["consume", *bootstrap, "--topic", "t", "--partition", 2]
        assert command(*consume, "--to-end").out == "".join(f"{each}\n" for each in range(1200))
        last = command(*consume, "--from", 1199, "--count", 1, "--json").json
        assert (last["offset"], last["key"], last["value"]) == (1199, "key1199", "1199")
        assert command("topics", *bootstrap, "--delete", "t").out == "deleted topic t\n"
        assert command("topics", *bootstrap, "--list").out == "there are no topics\n"
        end(process, signal.SIGINT)


def test_a_port_in_use_is_reported(command: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert f"127.0.0.1:{port}: the port is in use" in command.refused("cluster", "--port", port)


def test_a_broker_that_ends_by_itself_is_reported_and_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with background("cluster", "--json") as process:
        pids = next_line(process)["pids"]
        os.kill(pids["brokers"]["1"], signal.SIGKILL)
        assert process.stderr is not None
        assert "broker 1 (pid" in process.stderr.readline()
        end(process, signal.SIGTERM)
    assert _gone(pids["zookeeper"][0])
    assert list(tmp_path.glob("rebalance-lab-cluster-*")) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["cluster", "--brokers", 3, "--port", 65534], "--port 65534: 3 brokers have ports up to 65536"),
        (["topics", "--list"], "--bootstrap is missing"),
        (["topics", "--list", "--create", "t"], "say what to do: one of --create"),
        (["topics", "--list", "--to", "0=1"], "--to goes with --reassign"),
        (["topics", "--list", "--cancel"], "--cancel goes with --reassign"),
        (["topics", "--reassign", "t", "--cancel", "--to", "0=1"], "--to and --cancel do not go together"),
        (["topics", "--reassign", "t", "--to", "x=1"], "x is not the number of a partition"),
        (["topics", "--reassign", "t", "--to", "0=1,b"], "'b' is not the id of a broker"),
        (["topics", "--reassign", "t", "--to", "0"], "write it as key=value"),
        (["topics", "--alter", "t"], "--alter needs --config, --delete-config or --partitions"),
        (["topics", "--list", "--partitions", "3"], "--partitions goes with --create or --alter"),
        (["topics", "--list", "--config", "a=b"], "--config goes with --create or --alter"),
        (["topics", "--create", "t", "--delete-config", "a"], "--delete-config goes with --alter"),
        (["topics", "--alter", "t", "--config", "a"], "--config a: write it as key=value"),
        (["topics", "--alter", "t", "--config", "a=b", "--delete-config", "a"], "a is both in --config and"),
        (["topics", "--bootstrap", "h", "--list"], "--bootstrap h: 'h' is not HOST:PORT"),
        (["topics", "--bootstrap", "127.0.0.1:1", "--list"], "no broker answers: CannotConnect: 127.0.0.1:1"),
        (["consume", "--bootstrap", "127.0.0.1:1", "--topic", "t", "--from", "soon"], "--from soon: write earliest"),
        (["consume", "--bootstrap", "127.0.0.1:1", "--topic", "t"], "no broker answers"),
    ],
)
def test_what_cannot_be_done(command: CommandLine, arguments: list[str | int], says: str) -> None:
    assert says in command.refused(*arguments)


@pytest.mark.slow
def test_after_a_kill_of_all_the_next_start_waits_for_the_old_sessions(
    command: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with background("cluster", "--data", tmp_path, "--json") as process:
        ready = next_line(process)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"kept\n")))
        assert command("produce", "--bootstrap", ready["bootstrap"], "--topic", "t").code == 0
        end(process, signal.SIGKILL)
    with background("cluster", "--data", tmp_path, "--json") as process:
        bootstrap = next_line(process)["bootstrap"]
        assert command("consume", "--bootstrap", bootstrap, "--topic", "t", "--to-end").out == "kept\n"
        ended = end(process, signal.SIGTERM)
    assert ended.err == "rebalance-lab: waiting for the ZooKeeper sessions of killed brokers: 1\n"
