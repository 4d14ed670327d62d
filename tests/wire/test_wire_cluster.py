"""A cluster's znodes as real 3.9.1 wrote them, what readers accept, and what they refuse with the path."""

from __future__ import annotations

import pytest

from rebalance_lab.wire import cluster
from rebalance_lab.wire.errors import KafkaException

#: Written by a broker of 3.9.1 in ZooKeeper mode, id 1, without racks.
REGISTRATION = (
    b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
    b'"endpoints":["PLAINTEXT://127.0.0.1:36957"],"jmx_port":-1,"port":36957,"host":"127.0.0.1","version":5,'
    b'"timestamp":"1795386934127"}'
)
TOPIC = (
    b'{"partitions":{"0":[1],"1":[1],"2":[1]},"topic_id":"eSeVi5k4RI6RtqXgKV2Qjg","adding_replicas":{},'
    b'"removing_replicas":{},"version":3}'
)
TOPIC_ID = bytes.fromhex("7927958b9938448e91b6a5e0295d908e")
STATE = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}'
CONTROLLER = b'{"version":2,"brokerid":1,"timestamp":"1795386934187","kraftControllerEpoch":-1}'
CONFIGURATION = b'{"version":1,"config":{"segment.bytes":"2097152"}}'
CHANGE = b'{"version":2,"entity_path":"topics/t"}'
#: As IsrChangeNotificationSequenceZNode.encode of 2.6.3 and 3.9.1.
ISR_CHANGE = b'{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"u","partition":3}]}'
#: As LogDirEventNotificationSequenceZNode.encode of 1.1.1 and 3.9.1.
LOG_DIR_EVENT = b'{"version":1,"broker":3,"event":1}'
#: As FeatureZNode.encode of 3.9.1, with protocols below 3.3 and from 3.3 on; in the order of a hash map of Scala 2.13.
FEATURES = b'{"features":{},"version":1,"status":1}'
FEATURES_OF_3_3 = b'{"features":{},"version":2,"status":1}'
LEVELS = b'{"features":{"f":{"max_version_level":3,"min_version_level":3}},"version":1,"status":1}'
#: As ReassignPartitionsZNode.encode and TopicZNode.encode of 3.9.1.
REASSIGNMENT = (
    b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[3,4]},'
    b'{"topic":"u","partition":1,"replicas":[1]}]}'
)
REASSIGNED = (
    b'{"partitions":{"0":[3,4,1,2],"1":[1,2]},"topic_id":"eSeVi5k4RI6RtqXgKV2Qjg",'
    b'"adding_replicas":{"0":[3,4]},"removing_replicas":{"0":[1,2]},"version":3}'
)
CLUSTER_ID = b'{"version":"1","id":"AL-91ETTSFaJuS4jN_MpLQ"}'


def test_payloads_are_those_of_3_9_1() -> None:
    state = cluster.LeaderIsrAndControllerEpoch(controller_epoch=1, leader=1, leader_epoch=0, isr=(1,))
    assert cluster.registration_payload("127.0.0.1", 36957, timestamp_ms=1795386934127) == REGISTRATION
    assert cluster.assignment_payload({2: [1], 0: [1], 1: [1]}, TOPIC_ID) == TOPIC
    assert cluster.state_payload(state) == STATE
    assert cluster.controller_payload(1, timestamp_ms=1795386934187) == CONTROLLER
    assert cluster.configuration_payload({"segment.bytes": "2097152"}) == CONFIGURATION
    assert cluster.configuration_change_payload("topics/t") == CHANGE
    assert cluster.isr_change_payload([("t", 0), ("u", 3)]) == ISR_CHANGE
    assert cluster.log_dir_event_payload(3) == LOG_DIR_EVENT
    assert cluster.features_payload(cluster.FinalizedFeatures(enabled=True)) == FEATURES
    assert cluster.features_payload(cluster.FinalizedFeatures(version=2, enabled=True)) == FEATURES_OF_3_3
    assert cluster.features_payload(cluster.FinalizedFeatures(enabled=True, levels={"f": 3})) == LEVELS
    assert cluster.reassignment_payload([(("t", 0), (3, 4)), (("u", 1), (1,))]) == REASSIGNMENT
    moving = cluster.assignment_payload(
        {0: (3, 4, 1, 2), 1: (1, 2)}, TOPIC_ID, adding={0: (3, 4)}, removing={0: (1, 2)}
    )
    assert moving == REASSIGNED
    assert cluster.cluster_id_payload("AL-91ETTSFaJuS4jN_MpLQ") == CLUSTER_ID


def test_what_3_9_1_wrote_is_read() -> None:
    registration = cluster.read_registration(1, REGISTRATION)
    assert registration.address == ("127.0.0.1", 36957)
    assert registration.endpoints == ("PLAINTEXT://127.0.0.1:36957",)
    assert cluster.read_assignment("t", TOPIC).replicas == {0: (1,), 1: (1,), 2: (1,)}
    assert cluster.read_assignment("t", TOPIC).topic_id == cluster.topic_id_text(TOPIC_ID)
    assert cluster.read_state("t", 0, STATE) == cluster.LeaderIsrAndControllerEpoch(
        controller_epoch=1, leader=1, leader_epoch=0, isr=(1,)
    )
    assert cluster.read_controller(CONTROLLER).brokerid == 1
    assert cluster.read_configuration("/config/topics/t", CONFIGURATION) == {"segment.bytes": "2097152"}
    assert cluster.read_isr_change("/isr_change_notification/isr_change_0000000001", ISR_CHANGE) == [("t", 0), ("u", 3)]
    assert cluster.read_log_dir_event("/log_dir_event_notification/log_dir_event_0000000001", LOG_DIR_EVENT) == 3
    assert cluster.read_features(FEATURES) == cluster.FinalizedFeatures(enabled=True)
    assert cluster.read_features(FEATURES_OF_3_3) == cluster.FinalizedFeatures(version=2, enabled=True)
    assert cluster.read_features(LEVELS) == cluster.FinalizedFeatures(enabled=True, levels={"f": 3})
    assert cluster.read_reassignment(REASSIGNMENT) == {("t", 0): (3, 4), ("u", 1): (1,)}
    moving = cluster.read_assignment("t", REASSIGNED)
    assert (moving.adding_replicas, moving.removing_replicas) == ({0: (3, 4)}, {0: (1, 2)})
    assert cluster.read_cluster_id(CLUSTER_ID) == "AL-91ETTSFaJuS4jN_MpLQ"


def test_a_rack_and_no_topic_id() -> None:
    with_rack = cluster.registration_payload("h", 1, timestamp_ms=0, rack="r1")
    assert cluster.read_registration(1, with_rack).rack == "r1"
    without_id = cluster.read_assignment("t", cluster.assignment_payload({0: [1]}))
    assert (without_id.version, without_id.topic_id) == (2, None)


def test_a_topic_id_is_read_as_it_is_written() -> None:
    assert cluster.topic_id_bytes(cluster.topic_id_text(TOPIC_ID)) == TOPIC_ID


@pytest.mark.parametrize("text", ["", "abc", "eSeVi5k4RI6RtqXgKV2Qjgx", "\N{SNOWMAN}" * 22])
def test_what_is_no_topic_id(text: str) -> None:
    with pytest.raises(KafkaException, match="is not a topic id"):
        cluster.topic_id_bytes(text)


def test_a_leader_that_recovers() -> None:
    state = cluster.LeaderIsrAndControllerEpoch(
        controller_epoch=1, leader=2, leader_epoch=3, isr=(2,), leader_recovery_state=1
    )
    assert cluster.read_state("t", 0, cluster.state_payload(state)) == state


def test_older_forms_are_read() -> None:
    of_0_8 = cluster.registration_payload("h", 9092, timestamp_ms=5, version=1)
    assert cluster.read_registration(7, of_0_8).address == ("h", 9092)
    assert cluster.read_assignment("t", b'{"version":1,"partitions":{"1":[2,1],"0":[1,2]}}').replicas == {
        0: (1, 2),
        1: (2, 1),
    }
    assert cluster.read_controller(b"3").brokerid == 3


@pytest.mark.parametrize("partition", ["01", "-1", "x", "", "1.0", "9999999999"])
def test_a_partition_that_is_not_a_number_as_kafka_writes_it(partition: str) -> None:
    with pytest.raises(KafkaException, match=r"/brokers/topics/t.*key"):
        cluster.read_assignment("t", f'{{"version":1,"partitions":{{"{partition}":[1]}}}}'.encode())


def test_a_broker_without_a_plaintext_endpoint_has_no_address() -> None:
    """Such a broker of 3.9 writes `"host":null,"port":-1`."""
    payload = b'{"version":5,"host":null,"port":-1,"endpoints":["SSL://h:9093"],"timestamp":"1"}'
    assert cluster.read_registration(1, payload).address is None


@pytest.mark.parametrize(("version", "rack"), [(2, None), (6, None), (1, "r1")])
def test_registrations_that_nobody_writes(version: int, rack: str | None) -> None:
    with pytest.raises(ValueError, match=r"version"):
        cluster.registration_payload("h", 1, timestamp_ms=0, version=version, rack=rack)


@pytest.mark.parametrize(
    ("read", "data", "says"),
    [
        (lambda data: cluster.read_registration(4, data), b"{", r"/brokers/ids/4 holds '\{'"),
        (lambda data: cluster.read_registration(4, data), b'{"version":1,"host":"h"}', "port"),
        (lambda data: cluster.read_registration(4, data), b'{"version":1,"host":"h","port":70000}', "65535"),
        (lambda data: cluster.read_assignment("t", data), b'{"version":1,"partitions":{"x":[1]}}', "key"),
        (
            lambda data: cluster.read_assignment("t", data),
            b'{"version":1,"partitions":{"0":[-1]}}',
            "/brokers/topics/t",
        ),
        (lambda data: cluster.read_state("t", 2, data), b"null", "/brokers/topics/t/partitions/2/state"),
        (cluster.read_controller, b"\xff", "/controller holds"),
        (lambda data: cluster.read_configuration("/config/topics/t", data), b'{"config":{"a":1}}', "/config/topics/t"),
        (cluster.read_cluster_id, b"", "/cluster/id"),
        (lambda data: cluster.read_log_dir_event("/l/1", data), b'{"version":1}', "/l/1 holds"),
        (cluster.read_features, b'{"features":{},"version":1}', "status"),
        (cluster.read_features, b'{"features":{},"version":3,"status":1}', "/feature holds"),
        (cluster.read_features, b'{"features":{"f":{"max_version_level":1}},"version":1,"status":1}', "feature f has"),
        (
            cluster.read_features,
            b'{"features":{"f":{"max_version_level":1,"min_version_level":2}},"version":1,"status":1}',
            "feature f has no levels",
        ),
    ],
)
def test_what_cannot_be_read_is_named_by_its_path(read, data: bytes, says: str) -> None:
    with pytest.raises(KafkaException, match=says):
        read(data)
