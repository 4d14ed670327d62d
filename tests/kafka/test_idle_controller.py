"""KAFKA-13461 in Kafka itself: after a restart of ZooKeeper a controller of 3.0.0 owns `/controller`, and does not run.

Its JVM has a JAAS configuration without a section for ZooKeeper's client, as brokers have whose own clients use SASL.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from rebalance_lab.wire.paths import CONTROLLER, broker_path, partition_state_path, topic_path
from rebalance_lab.world.kafka.broker import KafkaBroker
from rebalance_lab.world.kafka.jars import Role, class_path
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

LIMIT_S = 60

SESSION_TIMEOUT_MS = 18_000

#: A controller that runs elects a leader in some milliseconds once the last one's session has ended.
ELECTS_WITHIN_S = 5

STATE = partition_state_path("t1", 0)

#: A section for the broker's own clients, and none with the name `Client`, for ZooKeeper's.
JAAS = (
    'KafkaServer { org.apache.kafka.common.security.plain.PlainLoginModule required username="lab" password="lab"; };\n'
)

#: What a broker logs when it is connected to ZooKeeper, and when its controller has given up.
CONNECTED_AGAIN = "Session establishment complete"
RESIGNED = "Resigned"


def until(condition: Callable[[], bool], limit_s: float = LIMIT_S) -> bool:
    """Whether it came true in time."""
    give_up = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.05)
    return True


def read(client: KazooClient, path: str) -> dict[str, object]:
    """A znode's JSON object; while ZooKeeper restarts, and as long as there is no such znode, an empty one."""
    with suppress(KazooException):
        found = json.loads(client.get(path)[0])
        assert isinstance(found, dict)
        return found
    return {}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EmbeddedZooKeeper]:
    with EmbeddedZooKeeper.start(tmp_path / "zookeeper", tick_ms=2000) as found:
        yield found


@pytest.fixture
def client(server: EmbeddedZooKeeper) -> Iterator[KazooClient]:
    found = KazooClient(server.connect_string, timeout=40)
    found.start()
    yield found
    found.stop()
    found.close()


@pytest.fixture
def brokers(
    request: pytest.FixtureRequest, server: EmbeddedZooKeeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[int, KafkaBroker]]:
    """Three of 3.0.0; the first is the controller. The test says whether their JVMs have the JAAS configuration."""
    class_path(Role.BROKER_3_0)  # fetched before any session begins
    jaas = tmp_path / "jaas"
    jaas.write_text(JAAS)
    if request.param:
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.auth.login.config={jaas}")
    found: dict[int, KafkaBroker] = {}
    try:
        for number in (1, 2, 3):
            found[number] = KafkaBroker(
                number,
                server.connect_string,
                tmp_path / "kafka",
                session_timeout_ms=SESSION_TIMEOUT_MS,
                loggers={"org.apache.zookeeper": "INFO"},
                role=Role.BROKER_3_0,
            )
            found[number].wait_until_started()
        yield found
    finally:
        for each in found.values():
            each.kill()


@pytest.mark.parametrize(
    ("brokers", "idles"), [(True, True), (False, False)], indirect=["brokers"], ids=["with JAAS", "without"]
)
def test_after_a_restart_of_zookeeper(
    brokers: dict[int, KafkaBroker], idles: bool, server: EmbeddedZooKeeper, client: KazooClient
) -> None:
    controller, epoch = brokers[1], client.get("/controller_epoch")[0]
    client.create(topic_path("t1"), b'{"version":1,"partitions":{"0":[2,3]}}')
    assert until(lambda: read(client, STATE).get("isr") == [2, 3])
    connected = controller.logged().count(CONNECTED_AGAIN)

    server.kill()
    server.launch()
    server.wait_until_serving()
    assert until(lambda: controller.logged().count(CONNECTED_AGAIN) > connected)
    assert until(lambda: RESIGNED in controller.logged(), LIMIT_S if idles else ELECTS_WITHIN_S) == idles

    brokers[2].kill()
    assert until(lambda: client.exists(broker_path(2)) is None)
    assert until(lambda: read(client, STATE).get("leader") == 3, ELECTS_WITHIN_S) != idles
    assert (read(client, CONTROLLER)["brokerid"], client.get("/controller_epoch")[0]) == (1, epoch)

    if idles:
        client.delete(CONTROLLER)
        assert until(lambda: read(client, STATE).get("leader") == 3)
