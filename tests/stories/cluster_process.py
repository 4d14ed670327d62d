"""Brokers of the lab beside a ZooKeeper, as processes, for tests with clients from outside."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

from kazoo.client import KazooClient

from rebalance_lab.cli.brokers import with_cluster
from rebalance_lab.cli.cluster import BrokerProcess, until_it_knows
from rebalance_lab.world.live.reserved_port import HOST, ReservedPort
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper

LIMIT_S = 100.0


class ClusterProcess:
    """One broker or several, each on a port that stays its own, also while the broker is down. `options`: further ones
    of the command `broker`."""

    def __init__(self, folder: Path, *options: str, brokers: int = 1) -> None:
        self.folder = folder
        self.data = folder / "broker-1"
        self.zookeeper = EmbeddedZooKeeper.start(folder / "zookeeper")
        self._ports = [ReservedPort() for _ in range(brokers)]
        self.bootstrap = ",".join(f"{HOST}:{each.number}" for each in self._ports)
        connect = self.zookeeper.connect_string
        self._brokers = {
            number: BrokerProcess(
                number, connect, folder, "--port", str(port.number), "--session-timeout-ms", "2000", *options
            )
            for number, port in enumerate(self._ports, 1)
        }
        self.broker = self._brokers[1]

    def start_broker(self) -> None:
        """Start the first, as `start`."""
        self.until_unregistered()
        self.start(self.broker)

    def start(self, *brokers: BrokerProcess) -> None:
        """Start them, and wait until each knows a controller and all brokers.

        librdkafka asks for the controller once, and again after minutes.
        """
        for each in brokers:
            each.launch()
        give_up = time.monotonic() + LIMIT_S
        for each in brokers:
            while (address := each.bootstrap()) is None:
                assert time.monotonic() < give_up, each.tail()
            with_cluster(address, partial(until_it_knows, len(self._brokers)))

    def kill_broker(self) -> None:
        self.broker.kill()

    def until_unregistered(self) -> None:
        """Wait until its last session has ended."""
        client = KazooClient(self.zookeeper.connect_string)
        client.start()
        give_up = time.monotonic() + LIMIT_S
        try:
            while client.exists("/brokers/ids/1") is not None:
                assert time.monotonic() < give_up, "the registration of the killed broker does not go"
        finally:
            client.stop()
            client.close()

    def __enter__(self) -> Self:
        try:
            self.start(*self._brokers.values())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        for each in self._brokers.values():
            with suppress(FileNotFoundError):
                each.stop()
        self.zookeeper.stop()
        for port in self._ports:
            port.close()
