"""A real member: `kafka.tools.ConsoleConsumer` of 0.8.2.2, whose log shows what it does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rebalance_lab.world.kafka.jars import Role
from rebalance_lab.world.kafka.jvm import JavaProgram, write_properties

_HEAP_MB = 128

#: Each request to ZooKeeper with its reply, each watch that fired, each call of a listener, each fetch.
TELLING = {
    "org.apache.zookeeper.ClientCnxn": "DEBUG",
    "org.I0Itec.zkclient.ZkEventThread": "DEBUG",
    "kafka.consumer.ConsumerFetcherThread": "TRACE",
}


class ConsoleConsumer(JavaProgram):
    """One running ConsoleConsumer.

    It always subscribes by a white list with one stream, also where one topic is named
    (kafka.tools.ConsoleConsumer, 0.8.2.2). `properties` are the consumer's own, with group.id and
    zookeeper.connect among them.
    """

    def __init__(
        self,
        whitelist: str,
        properties: Mapping[str, str],
        *,
        folder: Path,
        name: str,
        loggers: Mapping[str, str] = TELLING,
    ) -> None:
        """Start it and return at once. Raises EmbeddedServerError."""
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / f"{name}.properties"
        write_properties(config, properties)
        arguments = ["--zookeeper", properties["zookeeper.connect"], "--whitelist", whitelist]
        super().__init__(
            Role.CONSUMER,
            "kafka.tools.ConsoleConsumer",
            [*arguments, "--consumer.config", str(config)],
            folder=folder,
            name=name,
            heap_mb=_HEAP_MB,
            loggers=loggers,
        )
