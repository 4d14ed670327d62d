"""A real broker: 3.9.1 in ZooKeeper mode, the last that both keeps its cluster in ZooKeeper and still speaks to
consumers of 0.8.2; or 0.8.2.2 itself."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from rebalance_lab.world.kafka.jars import KafkaUnavailable, Role
from rebalance_lab.world.kafka.jvm import JavaProgram, write_properties

#: Two seconds on two idle cores.
START_TIMEOUT_S = 90.0

_HEAP_MB = 256
_POLL_S = 0.02
#: What a broker logs: of 3.9.1, of 0.8.2.2.
_STARTED = ("] started", "], started")


class KafkaBroker(JavaProgram):
    """One running broker on 127.0.0.1, whose port `/brokers/ids/<id>` holds."""

    def __init__(
        self,
        broker_id: int,
        connect: str,
        folder: Path,
        *,
        session_timeout_ms: int = 10_000,
        port: int = 0,
        data_dir: Path | None = None,
        settings: Mapping[str, str] | None = None,
        loggers: Mapping[str, str] | None = None,
        role: Role = Role.BROKER,
        heap_mb: int = _HEAP_MB,
    ) -> None:
        """Start it and return at once; see `started`. `port`: 0 for any that is free, another in each life; 0.8.2.2 has
        to be told one. `data_dir`: by default in `folder`. `settings`, `loggers`: more of them, or in place of those
        here. `role`: BROKER for 3.9.1, BROKER_3_0, BROKER_1_1, or CONSUMER for 0.8.2.2, whose jars hold its broker,
        too. Raises EmbeddedServerError."""
        folder.mkdir(parents=True, exist_ok=True)
        self.broker_id = broker_id
        self.data_dir = data_dir or folder / f"broker-{broker_id}"
        properties = folder / f"broker-{broker_id}.properties"
        usual = {
            "broker.id": str(broker_id),
            "zookeeper.connect": connect,
            "zookeeper.session.timeout.ms": str(session_timeout_ms),
            **_listeners(role, port),
            "log.dirs": str(self.data_dir.absolute()),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "log.cleaner.enable": "false",  # it would take 128 MB before anything is to be cleaned
            "log.index.size.max.bytes": "4096",
            "num.network.threads": "2",
            "num.io.threads": "2",
            "background.threads": "1",
        }
        write_properties(properties, {**usual, **(settings or {})})
        super().__init__(
            role,
            "kafka.Kafka",
            [str(properties)],
            folder=folder,
            name=f"broker-{broker_id}",
            heap_mb=heap_mb,
            loggers={"org.apache.zookeeper": "WARN", "state.change.logger": "WARN", **(loggers or {})},
        )

    def started(self) -> bool:
        """Whether it serves. Raises KafkaUnavailable when it has ended instead."""
        log = self.logged()
        if any(each in log for each in _STARTED):
            return True
        if self.ended:
            raise KafkaUnavailable(
                f"broker {self.broker_id} ended with {self.popen.returncode} before it served;"
                f" {self.log_file} tells why:\n{self.tail()}"
            )
        return False

    def wait_until_started(self) -> None:
        """Raises KafkaUnavailable, also when it takes too long."""
        give_up = time.monotonic() + START_TIMEOUT_S
        while not self.started():
            if time.monotonic() > give_up:
                self.kill()
                raise KafkaUnavailable(f"broker {self.broker_id} does not serve after {START_TIMEOUT_S:g} s")
            time.sleep(_POLL_S)


def _listeners(role: Role, port: int) -> dict[str, str]:
    if role is not Role.CONSUMER:
        return {"listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    return {"host.name": "127.0.0.1", "port": str(port)}
