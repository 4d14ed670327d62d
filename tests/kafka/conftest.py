"""Tier `kafka`: real Kafka's jars, or the reason why they are not there."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from cluster_process import ClusterProcess
from kazoo.client import KazooClient

from rebalance_lab.world.kafka import jars

#: Set in CI: there nothing is skipped in silence.
REQUIRED = "REBALANCE_LAB_REQUIRE_KAFKA"


@pytest.fixture(scope="session", autouse=True)
def real_kafka() -> None:
    """Fetched once, by Maven, before any test's clock runs."""
    missing = jars.problem()
    if missing is None:
        try:
            jars.fetch()
        except jars.KafkaUnavailable as unavailable:
            missing = str(unavailable)
    if missing is not None:
        (pytest.fail if os.environ.get(REQUIRED) else pytest.skip)(f"no real Kafka: {missing}")


@pytest.fixture
def zookeeper(cluster: ClusterProcess) -> Iterator[KazooClient]:
    """A client of the ZooKeeper that the module's `cluster` uses."""
    client = KazooClient(cluster.zookeeper.connect_string)
    client.start()
    yield client
    client.stop()
    client.close()
