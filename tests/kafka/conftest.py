"""Tier `kafka`: real Kafka's jars, or the reason why they are not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_process import ClusterProcess
from kazoo.client import KazooClient

from rebalance_lab.world.kafka import jars
from rebalance_lab.world.kafka.prepared import prepare
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper

#: Set in CI: there nothing is skipped in silence.
REQUIRED = "REBALANCE_LAB_REQUIRE_KAFKA"


@pytest.fixture(scope="session", autouse=True)
def real_kafka() -> None:
    """Fetched once, by Maven, before any test's clock runs."""
    missing = jars.problem()
    if missing is None:
        try:
            prepare()
        except jars.KafkaUnavailable as unavailable:
            missing = str(unavailable)
    if missing is not None:
        (pytest.fail if os.environ.get(REQUIRED) else pytest.skip)(f"no real Kafka: {missing}")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedZooKeeper]:
    """A ZooKeeper of the test's own, for brokers that it starts."""
    with EmbeddedZooKeeper.start(tmp_path / "zookeeper", tick_ms=2000) as found:
        yield found


@pytest.fixture
def client(server: EmbeddedZooKeeper) -> Iterator[KazooClient]:
    """A client of `server`."""
    found = KazooClient(server.connect_string, timeout=40)
    found.start()
    yield found
    found.stop()
    found.close()


@pytest.fixture
def zookeeper(cluster: ClusterProcess) -> Iterator[KazooClient]:
    """A client of the ZooKeeper that the module's `cluster` uses."""
    client = KazooClient(cluster.zookeeper.connect_string)
    client.start()
    yield client
    client.stop()
    client.close()
