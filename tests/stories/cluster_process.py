"""A broker of the lab beside a ZooKeeper, as processes, for tests with clients from outside."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

from kazoo.client import KazooClient

from rebalance_lab.cli.brokers import with_cluster
from rebalance_lab.cli.cluster import BrokerProcess, until_it_knows
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper

LIMIT_S = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class ClusterProcess:
    """One broker, on a port that stays its own. `options`: further ones of the command `broker`."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.data = folder / "broker-1"
        self.zookeeper = EmbeddedZooKeeper.start(folder / "zookeeper")
        self._port = free_port()
        own = ("--port", str(self._port), "--session-timeout-ms", "2000", *options)
        self.broker = BrokerProcess(1, self.zookeeper.connect_string, folder, *own)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start_broker(self) -> None:
        """Start it, and wait until it knows a controller. What its last life registered goes first, with its session.

        librdkafka asks for the controller once, and again after minutes.
        """
        self.until_unregistered()
        self.broker.launch()
        give_up = time.monotonic() + LIMIT_S
        while self.broker.bootstrap() is None:
            assert time.monotonic() < give_up, self.broker.tail()
        with_cluster(self.bootstrap, partial(until_it_knows, 1))

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
            self.start_broker()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        with suppress(FileNotFoundError):
            self.broker.stop()
        self.zookeeper.stop()
