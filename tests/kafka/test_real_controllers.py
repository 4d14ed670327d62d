"""Controllers of Kafka itself: one that does not run, one that dies in the middle of a deletion, one that wakes in it,
some whose sessions expire in the middle of something, and one that sleeps while all replicas come back."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from rebalance_lab.wire.cluster import NO_LEADER, assignment_payload, configuration_payload
from rebalance_lab.wire.paths import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    DELETE_TOPICS,
    broker_path,
    partition_state_path,
    topic_config_path,
    topic_path,
)
from rebalance_lab.world.kafka.broker import KafkaBroker
from rebalance_lab.world.kafka.jars import Role, class_path
from rebalance_lab.world.live.reserved_port import ReservedPort
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

LIMIT_S = 90

#: A controller that runs elects a leader in some milliseconds once the last one's session has ended.
ELECTS_WITHIN_S = 5

TOPIC = "t1"

#: So many that a controller is still deleting their znodes when it is killed or paused.
PARTITIONS = 100

#: Of so many topics a zombie creates the state of one at least: about half of them in a trial.
MOST_TOPICS = 100

#: A section for the broker's own clients, and none with the name `Client`, for ZooKeeper's.
JAAS = (
    'KafkaServer { org.apache.kafka.common.security.plain.PlainLoginModule required username="lab" password="lab"; };\n'
)

#: What a broker logs when it is connected to ZooKeeper, when its controller has given up, when ZooKeeper has refused a
#: write of it, and when it cannot go on with a deletion.
CONNECTED = "Session establishment complete"
RESIGNED = "Resigned"
MOVED = "ControllerMovedException"
STUCK = "from OnlineReplica to ReplicaDeletionStarted failed"


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


def states(client: KazooClient) -> int:
    """How many partitions of the topic have a state."""
    return sum(client.exists(partition_state_path(TOPIC, each)) is not None for each in range(PARTITIONS))


def created_in_epoch(client: KazooClient, topic: str) -> object:
    """The controller epoch in the first state of a new topic."""
    path = partition_state_path(topic, 0)
    assert until(lambda: client.exists(path) is not None)
    return read(client, path)["controller_epoch"]


def create(client: KazooClient, partitions: int) -> None:
    """On brokers 2 and 3; broker 1 controls. Controllers create partitions in any order."""
    client.create(topic_path(TOPIC), assignment_payload(dict.fromkeys(range(partitions), (2, 3))))
    paths = [partition_state_path(TOPIC, each) for each in range(partitions)]
    assert until(lambda: all(read(client, each).get("isr") == [2, 3] for each in paths))


def refusals(brokers: Mapping[int, KafkaBroker]) -> int:
    """How often the two brokers that have replicas have refused, as controllers, to begin their deletion."""
    return sum(brokers[each].logged().count(STUCK) for each in (2, 3))


def in_the_middle(client: KazooClient, act: Callable[[], object]) -> None:
    """Ask for the deletion of the topic, and act when the first of its partitions is gone."""
    acted = threading.Event()

    def changed(event: object) -> None:
        act()
        acted.set()

    client.get_children(f"{topic_path(TOPIC)}/partitions", watch=changed)
    client.create(f"{DELETE_TOPICS}/{TOPIC}")
    assert acted.wait(LIMIT_S)
    assert 0 < len(client.get_children(f"{topic_path(TOPIC)}/partitions")) < PARTITIONS


@pytest.fixture
def start(server: EmbeddedZooKeeper, tmp_path: Path) -> Iterator[Callable[..., dict[int, KafkaBroker]]]:
    """Starts three brokers of a release; the first is the controller."""
    with ExitStack() as running:

        def three(role: Role, session_timeout_ms: int) -> dict[int, KafkaBroker]:
            class_path(role)  # fetched before any session begins
            # A connection that comes while the server starts may hang (`faults.server`). Java's client waits for a
            # session's timeout, divided by the number of servers: named twice, the server is asked again in time.
            connect = f"{server.connect_string},{server.connect_string}"
            found = {}
            for number in (1, 2, 3):
                port = running.enter_context(closing(ReservedPort())).number if role is Role.CONSUMER else 0
                found[number] = KafkaBroker(
                    number,
                    connect,
                    tmp_path / "kafka",
                    session_timeout_ms=session_timeout_ms,
                    role=role,
                    port=port,
                    settings={"delete.topic.enable": "true"},
                    loggers={"org.apache.zookeeper": "INFO", "state.change.logger": "ERROR"},
                )
                running.callback(found[number].kill)
                found[number].wait_until_started()
            return found

        yield three


@pytest.mark.parametrize("idles", [True, False], ids=["with JAAS", "without"])
def test_after_a_restart_of_zookeeper_a_controller_of_3_0_owns_its_znode_and_does_not_run(
    start: Callable[..., dict[int, KafkaBroker]],
    idles: bool,
    server: EmbeddedZooKeeper,
    client: KazooClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """KAFKA-13461. Its JVM has a JAAS configuration without a section for ZooKeeper's client, as brokers have whose own
    clients use SASL."""
    jaas = tmp_path / "jaas"
    jaas.write_text(JAAS)
    if idles:
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.auth.login.config={jaas}")
    brokers = start(Role.BROKER_3_0, 18_000)
    state, controller, epoch = partition_state_path(TOPIC, 0), brokers[1], client.get(CONTROLLER_EPOCH)[0]
    create(client, 1)
    connected = controller.logged().count(CONNECTED)

    client.stop()
    server.kill()
    server.launch()
    server.wait_until_serving()
    client.start()
    assert until(lambda: controller.logged().count(CONNECTED) > connected)
    assert until(lambda: RESIGNED in controller.logged(), LIMIT_S if idles else ELECTS_WITHIN_S) == idles

    brokers[2].kill()
    assert until(lambda: client.exists(broker_path(2)) is None)
    assert until(lambda: read(client, state).get("leader") == 3, ELECTS_WITHIN_S) != idles
    assert (read(client, CONTROLLER)["brokerid"], client.get(CONTROLLER_EPOCH)[0]) == (1, epoch)

    if idles:
        client.delete(CONTROLLER)
        assert until(lambda: read(client, state).get("leader") == 3)


@pytest.mark.parametrize(("role", "ends"), [(Role.CONSUMER, False), (Role.BROKER, True)], ids=["0.8.2.2", "3.9.1"])
def test_a_deletion_whose_controller_dies_in_the_middle(
    start: Callable[..., dict[int, KafkaBroker]], role: Role, ends: bool, client: KazooClient
) -> None:
    """Claim E4, KAFKA-6650."""
    brokers = start(role, 6_000)
    create(client, PARTITIONS)
    in_the_middle(client, brokers[1].kill)
    assert until(lambda: read(client, CONTROLLER).get("brokerid") in (2, 3))
    if ends:
        assert until(lambda: client.exists(f"{DELETE_TOPICS}/{TOPIC}") is None)
        assert client.exists(topic_path(TOPIC)) is None
    else:
        assert until(lambda: refusals(brokers) > 0)
        before = refusals(brokers)
        client.delete(CONTROLLER)  # the next controller cannot end it either
        assert until(lambda: refusals(brokers) > before)
        assert until(lambda: client.exists(CONTROLLER) is not None)
        assert client.exists(f"{DELETE_TOPICS}/{TOPIC}") is not None
        assert client.exists(topic_path(TOPIC)) is not None


@pytest.mark.parametrize(
    ("role", "isr", "leader"), [(Role.CONSUMER, [], 2), (Role.BROKER, [3], 3)], ids=["0.8.2.2", "3.9.1"]
)
def test_a_controller_that_finds_all_replicas_back(
    start: Callable[..., dict[int, KafkaBroker]], role: Role, isr: list[int], leader: int, client: KazooClient
) -> None:
    """As the scenario emptied-isr: 3 dies last, and 2 is the first of the assignment."""
    brokers, state = start(role, 18_000), partition_state_path(TOPIC, 0)
    unclean = configuration_payload({"unclean.leader.election.enable": "true"})
    client.create(topic_config_path(TOPIC), unclean, makepath=True)
    create(client, 1)
    brokers[2].kill()
    assert until(lambda: read(client, state).get("isr") == [3])
    brokers[3].kill()
    assert until(lambda: read(client, state).get("leader") == NO_LEADER)
    assert read(client, state)["isr"] == isr
    brokers[1].pause()
    for each in (2, 3):
        brokers[each].launch()
    assert until(lambda: all(client.exists(broker_path(each)) is not None for each in (2, 3)))
    brokers[1].resume()
    assert until(lambda: read(client, state).get("leader") != NO_LEADER)
    assert (read(client, state)["leader"], read(client, CONTROLLER)["brokerid"]) == (leader, 1)


@pytest.mark.parametrize(("role", "stays"), [(Role.CONSUMER, True), (Role.BROKER_1_1, False)], ids=["0.8.2.2", "1.1.1"])
def test_a_controller_that_has_a_successor(
    start: Callable[..., dict[int, KafkaBroker]], role: Role, stays: bool, client: KazooClient
) -> None:
    """Claim E3: one of 0.8.2 in whose session another was elected does not resign. Both hear of a new topic, and the
    faster one creates its state."""
    brokers = start(role, 18_000)
    brokers[1].pause()
    client.delete(CONTROLLER)
    assert until(lambda: read(client, CONTROLLER).get("brokerid") in (2, 3))
    brokers[1].resume()
    if not stays:
        assert until(lambda: RESIGNED in brokers[1].logged())
    epochs = []
    for number in range(MOST_TOPICS if stays else 10):
        client.create(topic_path(f"new-{number}"), assignment_payload({0: (2, 3)}))
        epochs.append(created_in_epoch(client, f"new-{number}"))
        if epochs[-1] == 1:
            break
    assert (1 in epochs) == stays
    assert client.get(CONTROLLER_EPOCH)[0] == b"2"
    assert (RESIGNED in brokers[1].logged()) != stays


def test_a_controller_of_0_8_2_whose_session_expires_in_the_middle_of_a_creation_goes_on(
    start: Callable[..., dict[int, KafkaBroker]], client: KazooClient
) -> None:
    """Claim E3: in its next session, although another broker controls. The successor creates nothing, because the topic
    is to be deleted."""
    brokers = start(Role.CONSUMER, 6_000)
    client.create(topic_path(TOPIC), assignment_payload(dict.fromkeys(range(PARTITIONS), (2, 3))))
    assert until(lambda: states(client) > 0)
    brokers[1].pause()
    client.create(f"{DELETE_TOPICS}/{TOPIC}")
    assert until(lambda: read(client, CONTROLLER).get("brokerid") in (2, 3))
    assert until(lambda: refusals(brokers) > 0)
    left, elected = states(client), client.exists(CONTROLLER).czxid
    assert left < PARTITIONS
    brokers[1].resume()
    assert until(lambda: states(client) == PARTITIONS)
    paths = [partition_state_path(TOPIC, each) for each in range(PARTITIONS)]
    later = [path for path in paths if client.exists(path).czxid > elected]
    assert len(later) == PARTITIONS - left
    assert {read(client, path)["controller_epoch"] for path in later} == {1}
    assert client.get(CONTROLLER_EPOCH)[0] == b"2"


def test_a_controller_of_1_1_whose_session_expires_in_the_middle_of_a_deletion_deletes_nothing_more(
    start: Callable[..., dict[int, KafkaBroker]], client: KazooClient
) -> None:
    """Claim E3. Its successor cannot end the deletion (KAFKA-6650), so what is left stays."""
    brokers = start(Role.BROKER_1_1, 6_000)
    create(client, PARTITIONS)
    in_the_middle(client, brokers[1].pause)
    assert until(lambda: read(client, CONTROLLER).get("brokerid") in (2, 3))
    left = states(client)
    assert left > 0
    brokers[1].resume()
    assert until(lambda: RESIGNED in brokers[1].logged())
    assert until(lambda: client.exists(broker_path(1)) is not None)
    assert states(client) == left


def test_a_controller_of_3_9_that_wakes_in_the_middle_of_a_deletion_deletes_nothing_more(
    start: Callable[..., dict[int, KafkaBroker]], client: KazooClient
) -> None:
    """Claim E3: its successor has deleted the topic, and a client has created it anew."""
    brokers = start(Role.BROKER, 18_000)
    create(client, PARTITIONS)
    session = client.exists(broker_path(1)).ephemeralOwner
    in_the_middle(client, brokers[1].pause)
    client.delete(CONTROLLER)
    assert until(lambda: client.exists(f"{DELETE_TOPICS}/{TOPIC}") is None)
    create(client, PARTITIONS)
    assert until(lambda: states(client) == PARTITIONS)
    brokers[1].resume()
    assert until(lambda: RESIGNED in brokers[1].logged())
    assert client.exists(broker_path(1)).ephemeralOwner == session  # what has stopped it is not the end of its session
    assert MOVED in brokers[1].logged()
    assert states(client) == PARTITIONS
    assert client.get(CONTROLLER_EPOCH)[0] == b"2"
