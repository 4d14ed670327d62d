"""Partitions that get other replicas, with whole brokers on a simulated ZooKeeper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from cluster_stage import ClusterStage

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.replication.rules import IsrWriter
from rebalance_lab.wire.cluster import NO_LEADER, TopicAssignment, read_assignment, reassignment_payload
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from rebalance_lab.wire.kafka.messages.delete_topics import DeleteTopicsRequest
from rebalance_lab.wire.kafka.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from rebalance_lab.wire.paths import REASSIGNMENT, topic_path

E = ErrorCode
T0 = TopicPartition("t", 0)
MOVE = {T0: (3, 4)}


class Reassigned(ClusterStage):
    """Four brokers; the topic `t` with one partition."""

    def __init__(self, **config: Any) -> None:
        super().__init__((1, 2, 3, 4), auto_leader_rebalance_enable=False, replica_lag_time_max_ms=2000, **config)

    async def assignment(self) -> TopicAssignment:
        reply = await self.zookeeper.ask(lambda session: session.get(topic_path("t")))
        return read_assignment("t", reply.value.data)

    async def there(self, path: str) -> bool:
        reply = await self.zookeeper.ask(lambda session: session.exists(path))
        return reply.value is not None

    async def written(self, targets: Mapping[TopicPartition, Sequence[int]]) -> None:
        """As a tool asks for it."""
        payload = reassignment_payload(targets.items())
        await self.zookeeper.ask(lambda session: session.create(REASSIGNMENT, payload))

    async def asked(self, targets: Mapping[TopicPartition, Sequence[int] | None], broker_id: int | None = None) -> Any:
        """As a client asks for it: the error of the request, and that of each partition."""
        topics = tuple(
            ReassignableTopic(
                name=each.topic,
                partitions=(
                    ReassignablePartition(
                        partition_index=each.partition, replicas=None if target is None else tuple(target)
                    ),
                ),
            )
            for each, target in targets.items()
        )
        request = AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=topics)
        answer = await self.ask(self.controller() if broker_id is None else broker_id, request, 0)
        results = {
            TopicPartition(topic.name, each.partition_index): E(each.error_code)
            for topic in answer.responses
            for each in topic.partitions
        }
        return E(answer.error_code), results

    async def listed(self, topics: tuple[ListPartitionReassignmentsTopics, ...] | None = None) -> Any:
        """What is being reassigned: partition -> its replicas, those that are added, those that are removed."""
        answer = await self.ask(self.controller(), ListPartitionReassignmentsRequest(topics=topics), 0)
        assert answer.error_code == E.NONE
        return {
            (topic.name, each.partition_index): (each.replicas, each.adding_replicas, each.removing_replicas)
            for topic in answer.topics
            for each in topic.partitions
        }

    async def until_moved(self, target: tuple[int, ...]) -> None:
        """Until the topic's znode has these replicas and no others, and the request is gone."""
        for _ in range(10_000):
            found = await self.assignment()
            if found.replicas == {0: target} and not found.adding_replicas and not await self.there(REASSIGNMENT):
                return
            await self.tasks.sleep(5_000)
        raise AssertionError(f"the assignment stays {found}")

    async def until_held_by(self, brokers: tuple[int, ...]) -> None:
        """Until these brokers have a replica, and no others."""

        def held() -> bool:
            brokers_by_id = {each: running.broker for each, running in self.brokers.items()}
            started = {each: broker.parts for each, broker in brokers_by_id.items() if hasattr(broker, "parts")}
            return [each for each, parts in started.items() if T0 in parts.replicas.all] == list(brokers)

        await self.until(held, f"replicas on {brokers}")

    async def created(self, *values: str) -> None:
        await self.create((1, 2))
        await self.until(lambda: self.leads(1), "the first leader")
        assert (await self.produce(1, *values)).error_code == E.NONE


@pytest.mark.parametrize("by_znode", [True, False])
def test_a_partition_moves_to_other_brokers_with_its_records(by_znode: bool) -> None:
    async def story(stage: Reassigned) -> None:
        await stage.created("a", "b")
        before = await stage.state()
        if by_znode:
            await stage.written(MOVE)
        else:
            assert await stage.asked(MOVE) == (E.NONE, {T0: E.NONE})
        await stage.until_moved((3, 4))
        await stage.until_held_by((3, 4))
        after = await stage.state()
        assert (after.leader, set(after.isr)) == (3, {3, 4})
        # one epoch for the new replicas, one for their leader, one for the ISR without the old ones
        assert after.leader_epoch == before.leader_epoch + 3
        assert await stage.read_log(3) == await stage.read_log(4) == ["a", "b"]
        await stage.until(lambda: stage.leads(3), "the new leader")
        assert (await stage.produce(3, "c")).error_code == E.NONE
        assert await stage.listed() == {}

    Reassigned().play(story)


def test_a_leader_that_stays_leads_on() -> None:
    async def story(stage: Reassigned) -> None:
        await stage.created("a")
        await stage.written({T0: (4, 1)})
        await stage.until_moved((4, 1))
        await stage.until_held_by((1, 4))
        after = await stage.state()
        assert (after.leader, set(after.isr)) == (1, {1, 4})

    Reassigned().play(story)


def test_another_order_needs_no_new_replica() -> None:
    async def story(stage: Reassigned) -> None:
        await stage.created("a")
        before = await stage.state()
        await stage.written({T0: (2, 1)})
        await stage.until_moved((2, 1))
        assert (await stage.state()).leader_epoch == before.leader_epoch + 1

    Reassigned().play(story)


def test_a_dead_target_is_waited_for() -> None:
    """A tool may ask for it; a client may not."""

    async def story(stage: Reassigned) -> None:
        await stage.created("a")
        stage.kill(4)
        await stage.until(lambda: 4 not in stage.brokers[1].broker.parts.metadata.nodes, "the death of broker 4")
        assert await stage.asked(MOVE) == (E.NONE, {T0: E.INVALID_REPLICA_ASSIGNMENT})
        assert await stage.listed() == {}
        await stage.written(MOVE)
        await stage.until_state(lambda state: 3 in state.isr)
        await stage.tasks.sleep(5_000_000)
        found = await stage.assignment()
        assert (found.replicas[0], found.adding_replicas, found.removing_replicas) == (
            (3, 4, 1, 2),
            {0: (3, 4)},
            {0: (1, 2)},
        )
        assert await stage.listed() == {("t", 0): ((3, 4, 1, 2), (3, 4), (1, 2))}
        other = (ListPartitionReassignmentsTopics(name="t", partition_indexes=(1,)),)
        assert await stage.listed(other) == {}
        await stage.start(4)
        await stage.until_moved((3, 4))
        await stage.until_held_by((3, 4))

    Reassigned().play(story)


async def stuck(stage: Reassigned) -> None:
    """The move waits for broker 4, which is dead; broker 3 is in sync."""
    await stage.created("a")
    stage.kill(4)
    await stage.until(lambda: 4 not in stage.brokers[1].broker.parts.metadata.nodes, "the death of broker 4")
    await stage.written(MOVE)
    await stage.until_state(lambda state: 3 in state.isr)


def test_what_waits_can_be_taken_back() -> None:
    async def story(stage: Reassigned) -> None:
        await stuck(stage)
        assert await stage.asked({T0: None}) == (E.NONE, {T0: E.NONE})
        await stage.until_moved((1, 2))
        await stage.until_held_by((1, 2))
        after = await stage.state()
        assert (after.leader, set(after.isr)) == (1, {1, 2})
        assert await stage.asked({T0: None}) == (E.NONE, {T0: E.NO_REASSIGNMENT_IN_PROGRESS})

    Reassigned().play(story)


def test_a_later_request_takes_the_place_of_what_waits() -> None:
    async def story(stage: Reassigned) -> None:
        await stuck(stage)
        assert await stage.asked({T0: (2, 3)}) == (E.NONE, {T0: E.NONE})
        await stage.until_moved((2, 3))
        await stage.until_held_by((2, 3))
        await stage.start(4)
        await stage.tasks.sleep(5_000_000)
        assert (await stage.assignment()).replicas == {0: (2, 3)}

    Reassigned().play(story)


def test_as_in_kafka_taking_it_back_may_delete_the_only_replica_in_sync() -> None:
    async def story(stage: Reassigned) -> None:
        await stuck(stage)
        for each in (1, 2):
            stage.kill(each)
        await stage.until_state(lambda state: (state.leader, state.isr) == (3, (3,)))
        assert await stage.asked({T0: None}) == (E.NONE, {T0: E.NONE})
        after = await stage.until_state(lambda state: state.leader == NO_LEADER)
        assert after.isr == (3,)
        assert (await stage.assignment()).replicas == {0: (1, 2)}
        await stage.until(lambda: T0 not in stage.brokers[3].broker.parts.replicas.all, "the end of the replica")
        for each in (1, 2):
            await stage.start(each)
        await stage.until(lambda: len(stage.brokers[3].broker.parts.metadata.nodes) == 3, "the return of the others")
        await stage.tasks.sleep(5_000_000)
        assert (await stage.state()).leader == NO_LEADER

    Reassigned().play(story)


@pytest.mark.parametrize("writer", IsrWriter)
def test_a_successor_goes_on(writer: IsrWriter) -> None:
    """Leaders write their ISRs themselves, or ask the controller."""

    async def story(stage: Reassigned) -> None:
        await stuck(stage)
        dead = stage.controller()
        stage.kill(dead)
        await stage.start(4)
        await stage.start(dead)
        await stage.until_moved((3, 4))
        await stage.until_held_by((3, 4))
        assert await stage.read_log(4) == ["a"]

    Reassigned(lab_isr_writer=writer).play(story)


def test_a_topic_is_deleted_once_it_has_moved() -> None:
    async def story(stage: Reassigned) -> None:
        await stuck(stage)
        request = DeleteTopicsRequest(topic_names=("t",), timeout_ms=1_000)
        await stage.ask(stage.controller(), request, 5)
        await stage.tasks.sleep(5_000_000)
        assert await stage.there(topic_path("t"))
        assert await stage.asked({T0: (1, 2)}) == (E.NONE, {T0: E.UNKNOWN_TOPIC_OR_PARTITION})
        await stage.start(4)
        for _ in range(10_000):
            if not await stage.there(topic_path("t")):
                break
            await stage.tasks.sleep(5_000)
        await stage.until_held_by(())

    Reassigned().play(story)


@pytest.mark.parametrize(
    ("targets", "error"),
    [
        ({T0: ()}, E.INVALID_REPLICA_ASSIGNMENT),
        ({T0: (1, 1)}, E.INVALID_REPLICA_ASSIGNMENT),
        ({T0: (1, -1)}, E.INVALID_REPLICA_ASSIGNMENT),
        ({T0: (1, 9)}, E.INVALID_REPLICA_ASSIGNMENT),
        ({TopicPartition("t", 1): (1, 2)}, E.UNKNOWN_TOPIC_OR_PARTITION),
        ({TopicPartition("u", 0): (1, 2)}, E.UNKNOWN_TOPIC_OR_PARTITION),
        ({TopicPartition("u", 0): None}, E.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_what_is_refused(targets: dict[TopicPartition, Any], error: E) -> None:
    async def story(stage: Reassigned) -> None:
        await stage.created("a")
        assert await stage.asked(targets) == (E.NONE, dict.fromkeys(targets, error))
        assert (await stage.assignment()).replicas == {0: (1, 2)}

    Reassigned().play(story)


def test_only_the_controller_reassigns() -> None:
    async def story(stage: Reassigned) -> None:
        await stage.created("a")
        other = next(each for each in stage.brokers if each != stage.controller())
        assert await stage.asked(MOVE, other) == (E.NOT_CONTROLLER, {})

    Reassigned().play(story)


def test_what_a_tool_asks_for_in_vain_is_dropped_and_said() -> None:
    async def story(stage: Reassigned) -> None:
        await stage.created("a")
        await stage.written({TopicPartition("u", 0): (1, 2), T0: (), TopicPartition("t", 7): (2, 3)})
        for _ in range(10_000):
            if not await stage.there(REASSIGNMENT):
                break
            await stage.tasks.sleep(5_000)
        said = [str(each["message"]) for each in stage.brokers[stage.controller()].said("log")]
        assert [each for each in said if "is not reassigned" in each] == [
            "partition t-0 is not reassigned: partition t-0: no replica is asked for",
            "partition t-7 is not reassigned: The partition does not exist.",
            "partition u-0 is not reassigned: The partition does not exist.",
        ]
        assert (await stage.assignment()).replicas == {0: (1, 2)}
        await stage.written(MOVE)  # the next request is seen
        await stage.until_moved((3, 4))

    Reassigned().play(story)


def test_a_request_that_is_written_over_another_and_seen_counts_more() -> None:
    """The first one waits for a dead broker. No release of Kafka does this."""

    async def story(stage: Reassigned) -> None:
        await stage.created("a")
        stage.kill(4)
        await stage.written(MOVE)
        for _ in range(10_000):
            if (await stage.assignment()).adding_replicas:
                break
            await stage.tasks.sleep(5_000)
        payload = reassignment_payload([(T0, (3, 1))])
        await stage.zookeeper.ask(lambda session: session.set(REASSIGNMENT, payload))
        await stage.until_moved((3, 1))

    Reassigned(lab_reassignment_keeps_requests=True).play(story)


def test_a_request_that_cannot_be_read_stays() -> None:
    async def story(stage: Reassigned) -> None:
        await stage.created("a")
        await stage.zookeeper.ask(lambda session: session.create(REASSIGNMENT, b"{"))
        await stage.tasks.sleep(1_000_000)
        assert await stage.there(REASSIGNMENT)
        said = [str(each["message"]) for each in stage.brokers[stage.controller()].said("log")]
        assert [each for each in said if "no partition is reassigned" in each]

    Reassigned().play(story)


def test_the_replica_of_a_dead_broker_stays_on_its_disk() -> None:
    """As in Kafka: nobody asks again."""

    async def story(stage: Reassigned) -> None:
        await stage.created("a")
        stage.kill(2)
        await stage.until_state(lambda state: state.isr == (1,))
        await stage.written({T0: (1, 3)})
        await stage.until_moved((1, 3))
        await stage.start(2)
        await stage.until(lambda: 2 in stage.brokers[1].broker.parts.metadata.nodes, "the return of broker 2")
        await stage.tasks.sleep(5_000_000)
        parts = stage.brokers[2].broker.parts
        assert T0 not in parts.replicas.all
        assert [each for each in stage.world.disk("b2").files() if each.startswith("t-0/")]

    Reassigned().play(story)
