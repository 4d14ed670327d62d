"""Topics as clients create, describe, grow and delete them: in bytes, on a simulated ZooKeeper."""

from __future__ import annotations

from typing import Any

import pytest
from broker_stage import BrokerStage

from rebalance_lab.broker.calls import ADMIN_TIMEOUT_MS
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from rebalance_lab.wire.kafka.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from rebalance_lab.wire.kafka.messages.delete_topics import DeleteTopicsRequest
from rebalance_lab.wire.kafka.messages.describe_cluster import DescribeClusterRequest
from rebalance_lab.wire.kafka.messages.metadata import MetadataRequest, MetadataRequestTopic

E = ErrorCode


def topic(name: str, partitions: int = 1, replication: int = 1, **more: Any) -> CreatableTopic:
    fields: dict[str, Any] = {"assignments": (), "configs": (), **more}
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replication, **fields)


def create(*topics: CreatableTopic, timeout_ms: int = 5000, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=validate_only)


def metadata(*names: str, auto_create: bool = False) -> MetadataRequest:
    topics = tuple(MetadataRequestTopic(name=each) for each in names)
    return MetadataRequest(topics=topics, allow_auto_topic_creation=auto_create)


def codes(results: Any) -> dict[str, ErrorCode]:
    return {each.name: E(each.error_code) for each in results}


# -- create ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(7))
def test_a_topic_is_created_and_described(version: int) -> None:
    async def story(stage: BrokerStage) -> None:
        created = await stage.ask(CreateTopicsRequest(topics=(topic("t", 3),), timeout_ms=5000), version)
        assert codes(created.topics) == {"t": E.NONE}
        (described,) = (await stage.ask(metadata("t"), 9)).topics
        assert [(p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes) for p in described.partitions] == [
            (0, 1, (1,), (1,)),
            (1, 1, (1,), (1,)),
            (2, 1, (1,), (1,)),
        ]

    BrokerStage().play(story)


def test_defaults_are_the_broker_s() -> None:
    async def story(stage: BrokerStage) -> None:
        (created,) = (await stage.ask(create(topic("t", -1, -1)), 5)).topics
        assert (created.error_code, created.num_partitions, created.replication_factor) == (E.NONE, 4, 2)

    BrokerStage(others=(2,), num_partitions=4, default_replication_factor=2).play(story)


def test_a_client_s_own_assignment() -> None:
    async def story(stage: BrokerStage) -> None:
        own = tuple(
            CreatableReplicaAssignment(partition_index=at, broker_ids=ids) for at, ids in ((1, (1,)), (0, (2,)))
        )
        assert codes((await stage.ask(create(topic("t", -1, -1, assignments=own)), 6)).topics) == {"t": E.NONE}
        (described,) = (await stage.ask(metadata("t"), 9)).topics
        assert [each.leader_id for each in described.partitions] == [2, 1]

    BrokerStage(others=(2,)).play(story)


def assigned(*replicas: tuple[int, tuple[int, ...]], partitions: int = -1) -> CreatableTopic:
    own = tuple(CreatableReplicaAssignment(partition_index=at, broker_ids=ids) for at, ids in replicas)
    return topic("t", partitions, -1, assignments=own)


@pytest.mark.parametrize(
    ("wanted", "code", "says"),
    [
        (topic("t", 0), E.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
        (topic("t", 2**31 - 1), E.POLICY_VIOLATION, "the limit of this broker is 10000"),
        (topic("t", 1, 0), E.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."),
        (topic("t", 1, 2), E.INVALID_REPLICATION_FACTOR, "Replication factor: 2 larger than available brokers: 1."),
        (topic("a/b"), E.INVALID_TOPIC_EXCEPTION, "a/b"),
        (topic(".."), E.INVALID_TOPIC_EXCEPTION, ".."),
        (topic("here"), E.TOPIC_ALREADY_EXISTS, "Topic 'here' already exists."),
        (topic("he.re_x"), E.INVALID_TOPIC_EXCEPTION, "collides with existing topics: he_re.x"),
        (assigned((0, (1,)), partitions=1), E.INVALID_REQUEST, "Both cannot be used at the same time."),
        (assigned((1, (1,))), E.INVALID_REPLICA_ASSIGNMENT, "consecutive 0-based"),
        (assigned((0, (1, 1))), E.INVALID_REPLICA_ASSIGNMENT, "Duplicate"),
        (assigned((0, (-1,))), E.INVALID_REPLICA_ASSIGNMENT, "There is no broker -1"),
        (assigned(*((each, (1,)) for each in range(10_001))), E.POLICY_VIOLATION, "10001 partitions; the limit"),
        (assigned((0, (1,)), (1, (1, 2))), E.INVALID_REPLICA_ASSIGNMENT, "same number of replicas"),
        (
            topic("t", configs=(CreatableTopicConfig(name="segment.bytes", value=None),)),
            E.INVALID_CONFIG,
            "Null value not supported for topic configs: segment.bytes",
        ),
        (
            topic("t", configs=(CreatableTopicConfig(name="dummy.doesntexist", value="1"),)),
            E.INVALID_CONFIG,
            "Unknown topic config name: dummy.doesntexist",
        ),
    ],
)
def test_what_is_refused_and_why(wanted: CreatableTopic, code: ErrorCode, says: str) -> None:
    """Claim P1 among them. Nothing is created."""

    async def story(stage: BrokerStage) -> None:
        await stage.ask(create(topic("here"), topic("he_re.x")), 6)
        (refused,) = (await stage.ask(create(wanted), 6)).topics
        assert E(refused.error_code) is code
        assert says in refused.error_message
        assert not await stage.there("/brokers/topics/t")

    BrokerStage().play(story)


def test_one_topic_that_is_refused_leaves_the_others() -> None:
    async def story(stage: BrokerStage) -> None:
        found = await stage.ask(create(topic("a"), topic("b", 0), topic("c"), topic("c")), 6)
        assert codes(found.topics) == {"a": E.NONE, "b": E.INVALID_PARTITIONS, "c": E.INVALID_REQUEST}

    BrokerStage().play(story)


def test_validating_creates_nothing() -> None:
    async def story(stage: BrokerStage) -> None:
        found = await stage.ask(create(topic("t", 2), topic("u", 0), validate_only=True), 6)
        assert codes(found.topics) == {"t": E.NONE, "u": E.INVALID_PARTITIONS}
        assert not await stage.there("/brokers/topics/t")

    BrokerStage().play(story)


def test_without_time_the_answer_is_a_timeout_and_the_topic_comes() -> None:
    async def story(stage: BrokerStage) -> None:
        assert codes((await stage.ask(create(topic("t"), timeout_ms=0), 6)).topics) == {"t": E.REQUEST_TIMED_OUT}
        await stage.settle()
        assert codes((await stage.ask(metadata("t"), 9)).topics) == {"t": E.NONE}

    BrokerStage().play(story)


def test_only_the_controller_changes_topics() -> None:
    async def story(stage: BrokerStage) -> None:
        assert codes((await stage.ask(create(topic("t")), 6)).topics) == {"t": E.NOT_CONTROLLER}
        delete = DeleteTopicsRequest(topic_names=("t",), timeout_ms=1000)
        assert codes((await stage.ask(delete, 5)).responses) == {"t": E.NOT_CONTROLLER}
        assert codes((await stage.ask(more("t", 2), 3)).results) == {"t": E.NOT_CONTROLLER}

    BrokerStage(controller=False).play(story)


# -- grow -----------------------------------------------------------------------------------------


def more(name: str, count: int, assignments: Any = None, *, validate_only: bool = False) -> CreatePartitionsRequest:
    wanted = CreatePartitionsTopic(name=name, count=count, assignments=assignments)
    return CreatePartitionsRequest(topics=(wanted,), timeout_ms=5000, validate_only=validate_only)


@pytest.mark.parametrize("version", range(4))
def test_a_topic_grows(version: int) -> None:
    async def story(stage: BrokerStage) -> None:
        await stage.ask(create(topic("t", 2)), 6)
        assert codes((await stage.ask(more("t", 5), version)).results) == {"t": E.NONE}
        (described,) = (await stage.ask(metadata("t"), 9)).topics
        assert [each.partition_index for each in described.partitions] == [0, 1, 2, 3, 4]

    BrokerStage().play(story)


def brokers(*ids: int) -> CreatePartitionsAssignment:
    return CreatePartitionsAssignment(broker_ids=ids)


@pytest.mark.parametrize(
    ("request_", "code", "says"),
    [
        (more("t", 1), E.INVALID_PARTITIONS, "has 2 partitions, which is higher than the requested 1."),
        (more("t", 2**31 - 1), E.POLICY_VIOLATION, "the limit of this broker is 10000"),
        (more("t", 2), E.INVALID_PARTITIONS, "Topic already has 2 partitions."),
        (more("x", 2), E.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'x' does not exist."),
        (more("t", 3, (brokers(9),)), E.INVALID_REPLICA_ASSIGNMENT, "Unknown broker(s) in replica assignment: 9."),
        (more("t", 4, (brokers(1),)), E.INVALID_REPLICA_ASSIGNMENT, "by 2 but 1 assignments provided."),
        (more("t", 10_001, ()), E.POLICY_VIOLATION, "10001 partitions; the limit"),
        (more("t", 3, (brokers(1, 1),)), E.INVALID_REPLICA_ASSIGNMENT, "1 different replicas"),
    ],
)
def test_growth_that_is_refused(request_: CreatePartitionsRequest, code: ErrorCode, says: str) -> None:
    """Claim P3 among them: partitions are never removed."""

    async def story(stage: BrokerStage) -> None:
        await stage.ask(create(topic("t", 2)), 6)
        (refused,) = (await stage.ask(request_, 3)).results
        assert E(refused.error_code) is code
        assert says in refused.error_message

    BrokerStage().play(story)


def test_new_partitions_continue_the_placement() -> None:
    """Kafka's own test of it (`AddPartitionsTest.testReplicaPlacementAllServers`, 3.9.1)."""

    async def story(stage: BrokerStage) -> None:
        await stage.ask(create(assigned((0, (2, 3, 0, 1)))), 6)
        await stage.ask(more("t", 7), 3)
        (described,) = (await stage.ask(metadata("t"), 9)).topics
        assert [each.replica_nodes for each in described.partitions[:5]] == [
            (2, 3, 0, 1),
            (3, 2, 0, 1),
            (0, 3, 1, 2),
            (1, 0, 2, 3),
            (2, 3, 0, 1),
        ]

    BrokerStage(others=(0, 2, 3)).play(story)


# -- delete ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
def test_a_topic_is_deleted(version: int) -> None:
    async def story(stage: BrokerStage) -> None:
        await stage.ask(create(topic("t", 2)), 6)
        delete = DeleteTopicsRequest(topic_names=("t", "x"), timeout_ms=5000)
        found = codes((await stage.ask(delete, version)).responses)
        assert found == {"t": E.NONE, "x": E.UNKNOWN_TOPIC_OR_PARTITION}
        await stage.settle()
        assert not await stage.there("/brokers/topics/t")
        assert codes((await stage.ask(metadata("t"), 9)).topics) == {"t": E.UNKNOWN_TOPIC_OR_PARTITION}

    BrokerStage().play(story)


@pytest.mark.parametrize(("version", "code"), [(2, E.INVALID_REQUEST), (3, E.TOPIC_DELETION_DISABLED)])
def test_a_broker_that_deletes_no_topics(version: int, code: ErrorCode) -> None:
    async def story(stage: BrokerStage) -> None:
        await stage.ask(create(topic("t")), 6)
        delete = DeleteTopicsRequest(topic_names=("t",), timeout_ms=5000)
        assert codes((await stage.ask(delete, version)).responses) == {"t": code}

        assert not await stage.there("/admin/delete_topics/t")

    BrokerStage(delete_topic_enable=False).play(story)


def test_a_request_that_somebody_else_wrote_deletes_nothing_either() -> None:
    async def story(stage: BrokerStage) -> None:
        await stage.ask(create(topic("t")), 6)
        await stage.zookeeper.create_if_missing("/admin/delete_topics/t")
        await stage.settle()
        assert codes((await stage.ask(metadata("t"), 9)).topics) == {"t": E.NONE}
        assert not await stage.there("/admin/delete_topics/t")

    BrokerStage(delete_topic_enable=False).play(story)


@pytest.mark.parametrize("timeout_ms", [3_000, 0])
def test_without_zookeeper_a_client_is_told_in_time(timeout_ms: int) -> None:
    """A client that names no time does not wait for ever, either."""

    async def story(stage: BrokerStage) -> None:
        await stage.ask(create(topic("t")), 6)
        stage.server.cut(stage.process, to_server=True, to_client=True)
        began_us = stage.tasks.now_us()
        grown = CreatePartitionsTopic(name="t", count=2, assignments=None)
        for request, version in (
            (create(topic("u"), topic("v"), timeout_ms=timeout_ms), 6),
            (DeleteTopicsRequest(topic_names=("t",), timeout_ms=timeout_ms), 5),
            (CreatePartitionsRequest(topics=(grown,), timeout_ms=timeout_ms, validate_only=False), 3),
        ):
            found = await stage.ask(request, version)
            results = next(getattr(found, each) for each in ("topics", "responses", "results") if hasattr(found, each))
            assert set(codes(results).values()) == {E.REQUEST_TIMED_OUT}
        assert stage.tasks.now_us() - began_us < 3 * (timeout_ms or ADMIN_TIMEOUT_MS) * 1000 + 1_000_000

    BrokerStage().play(story)


# -- metadata -------------------------------------------------------------------------------------


def test_no_topics_are_all_in_version_0_and_none_later() -> None:
    async def story(stage: BrokerStage) -> None:
        await stage.ask(create(topic("a"), topic("b")), 6)
        assert set(codes((await stage.ask(metadata(auto_create=True), 0)).topics)) == {"a", "b"}
        assert codes((await stage.ask(metadata(auto_create=True), 1)).topics) == {}
        everything = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        assert set(codes((await stage.ask(everything, 4)).topics)) == {"a", "b"}

    BrokerStage().play(story)


def test_who_the_brokers_and_the_controller_are() -> None:
    async def story(stage: BrokerStage) -> None:
        found = await stage.ask(metadata(), 9)
        assert [(each.node_id, each.host, each.port) for each in found.brokers] == [
            (1, "host-b1", 9092),
            (2, "h2", 9092),
        ]
        assert (found.controller_id, found.cluster_id) == (1, stage.parts.cluster_id)
        cluster = await stage.ask(DescribeClusterRequest(include_cluster_authorized_operations=False), 1)
        assert (cluster.controller_id, cluster.cluster_id) == (1, stage.parts.cluster_id)
        assert [each.broker_id for each in cluster.brokers] == [1, 2]

    BrokerStage(others=(2,)).play(story)


def test_a_topic_is_created_by_asking_for_it() -> None:
    async def story(stage: BrokerStage) -> None:
        assert codes((await stage.ask(metadata("t", auto_create=True), 9)).topics) == {"t": E.LEADER_NOT_AVAILABLE}
        await stage.settle()
        assert codes((await stage.ask(metadata("t", auto_create=True), 9)).topics) == {"t": E.NONE}
        assert codes((await stage.ask(metadata("a b", auto_create=True), 9)).topics) == {
            "a b": E.INVALID_TOPIC_EXCEPTION
        }

    BrokerStage().play(story)


@pytest.mark.parametrize(("enabled", "asked"), [(False, True), (True, False)])
def test_a_topic_is_not_created_unless_both_want_it(enabled: bool, asked: bool) -> None:
    async def story(stage: BrokerStage) -> None:
        found = await stage.ask(metadata("t", auto_create=asked), 9)
        assert codes(found.topics) == {"t": E.UNKNOWN_TOPIC_OR_PARTITION}
        await stage.settle()
        assert not await stage.there("/brokers/topics/t")

    BrokerStage(auto_create_topics_enable=enabled).play(story)


def test_a_broker_that_knows_no_brokers_yet_creates_no_topic() -> None:
    async def story(stage: BrokerStage) -> None:
        found = await stage.ask(metadata("t", "a b", auto_create=True), 9)
        assert found.brokers == ()
        assert codes(found.topics) == {"t": E.UNKNOWN_TOPIC_OR_PARTITION, "a b": E.INVALID_TOPIC_EXCEPTION}
        assert not await stage.there("/brokers/topics/t")

    BrokerStage(controller=False).play(story)


def test_a_topic_that_is_being_deleted_does_not_grow() -> None:
    async def story(stage: BrokerStage) -> None:
        await stage.ask(create(topic("t", 2)), 6)
        stage.parts.replicas.stop = None  # type: ignore[method-assign]
        asked = DeleteTopicsRequest(topic_names=("t",), timeout_ms=0)
        assert codes((await stage.ask(asked, 5)).responses) == {"t": E.REQUEST_TIMED_OUT}
        assert codes((await stage.ask(more("t", 3), 3)).results) == {"t": E.INVALID_TOPIC_EXCEPTION}

    BrokerStage().play(story)


def test_a_name_that_no_topic_can_have_is_said_so_also_without_creation() -> None:
    async def story(stage: BrokerStage) -> None:
        found = await stage.ask(metadata("a b"), 9)
        assert codes(found.topics) == {"a b": E.INVALID_TOPIC_EXCEPTION}

    BrokerStage().play(story)


def test_metadata_are_answered_while_zookeeper_is_away() -> None:
    async def story(stage: BrokerStage) -> None:
        await stage.ask(create(topic("t")), 6)
        stage.server.cut(stage.process, to_server=True, to_client=True)
        found = await stage.ask(metadata("t", "new", auto_create=True), 9)
        assert codes(found.topics) == {"t": E.NONE, "new": E.LEADER_NOT_AVAILABLE}

    BrokerStage().play(story)
