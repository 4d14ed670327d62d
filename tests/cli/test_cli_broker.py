"""The command `broker`: its settings, and where ZooKeeper does not answer."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_tools import CommandLine, background, end

from rebalance_lab.broker.calls import BrokerConfig
from rebalance_lab.broker.log.config import LogConfig, TimestampType
from rebalance_lab.cli.broker import broker_configs


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
        ("broker.id=7", "--set broker.id: there is no such setting; there are num.partitions,"),
        ("num.partitions", "--set num.partitions: write it as key=value"),
    ],
)
@pytest.mark.parametrize("broker", [("cluster",), ("broker", "--zookeeper", "127.0.0.1:1", "--data", "none")])
def test_a_bad_setting_is_an_error(command: CommandLine, broker: tuple[str, ...], setting: str, why: str) -> None:
    assert command.refused(*broker, "--set", setting).startswith(why)
