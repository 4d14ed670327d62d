"""The requests by which a controller tells brokers of leaders and metadata, one of each kind for a broker.

As `ControllerBrokerRequestBatch` of Kafka 3.9.1: LeaderAndIsr requests go out before UpdateMetadata, and these before
StopReplica. Every leadership that is sent to replicas is also sent to all live brokers as metadata. The requests are
sent in the last versions before topic ids, so they do not say that a leader is recovering.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby
from operator import itemgetter

from msgspec.structs import replace

from controller.cluster import Cluster
from controller.forms import ControllerForm
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.cluster import LEADER_DURING_DELETE, PLAINTEXT
from rebalance_lab.wire.kafka.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from rebalance_lab.wire.kafka.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from rebalance_lab.wire.kafka.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from rebalance_lab.wire.kafka.sentinels import EPOCH_DURING_DELETE

ControlRequest = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest

#: Whether replicas are new -> partition -> its leadership.
_Leaderships = dict[bool, dict[TopicPartition, LeaderAndIsrPartitionState]]

_SECURITY_PROTOCOL_PLAINTEXT = 0


@dataclass(frozen=True, slots=True)
class Send:
    """Send `request` to a broker, after those sent to it before. `make`: makes it, when its turn comes, so that
    metadata of many partitions do not hold up the leaderships that go out before it. Kafka makes what a request holds
    at once (`addUpdateMetadataRequestForBrokers`), and only groups and encodes it in the thread that sends it."""

    broker_id: int
    make: Callable[[], ControlRequest]

    @classmethod
    def of(cls, broker_id: int, request: ControlRequest) -> Send:
        """Of a request that is made already."""
        return cls(broker_id, lambda: request)

    @property
    def request(self) -> ControlRequest:
        return self.make()


@dataclass(slots=True)
class RequestBatch:
    """What is to be sent, until `requests` is asked for. `epoch`, `form`: the controller's."""

    cluster: Cluster
    controller_id: int
    epoch: int
    form: ControllerForm = ControllerForm.V2_1
    _leaderships: dict[int, dict[TopicPartition, bool]] = field(default_factory=dict)
    _stops: dict[int, dict[TopicPartition, bool]] = field(default_factory=dict)
    _informed: dict[int, None] = field(default_factory=dict)
    _metadata: dict[TopicPartition, None] = field(default_factory=dict)

    def lead_or_follow(self, brokers: Iterable[int], partition: TopicPartition, *, is_new: bool = False) -> None:
        """Send the partition's leadership to replicas, and to all live brokers as metadata."""
        for broker in brokers:
            of_broker = self._leaderships.setdefault(broker, {})
            of_broker[partition] = is_new or of_broker.get(partition, False)
        self._informed |= dict.fromkeys(self.cluster.brokers)
        if partition in self.cluster.stored:
            self._metadata[partition] = None

    def all_lead_or_follow(self, brokers: Collection[int], partitions: Iterable[TopicPartition]) -> None:
        """As `lead_or_follow`, for the replicas of many partitions that are on these brokers. All have a leadership."""
        topics, alike = self.cluster.topics, dict[tuple[int, ...], list[TopicPartition]]()
        for each in partitions:
            alike.setdefault(topics[each.topic].replicas[each.partition], []).append(each)
        for replicas, those in alike.items():
            here = [each for each in replicas if each in brokers]
            for broker in here:
                of_broker = self._leaderships.setdefault(broker, {})
                of_broker.update(dict.fromkeys([each for each in those if each not in of_broker], False))
            if here:
                self._metadata.update(dict.fromkeys(those))
        if self._metadata:
            self._informed.update(dict.fromkeys(self.cluster.brokers))

    def inform(self, brokers: Iterable[int], partitions: Iterable[TopicPartition] = ()) -> None:
        """Send the live brokers, and the metadata of partitions that have a leadership. All brokers of one batch are
        sent the partitions of all."""
        self._informed.update(dict.fromkeys(brokers))
        self._metadata.update(dict.fromkeys(each for each in partitions if each in self.cluster.stored))

    def stop(self, brokers: Iterable[int], partition: TopicPartition, *, delete: bool) -> None:
        """Stop replicas, and delete them if `delete`."""
        for broker in brokers:
            of_broker = self._stops.setdefault(broker, {})
            of_broker[partition] = delete or of_broker.get(partition, False)

    def requests(self) -> list[Send]:
        """All requests to brokers that are live, in the order to send them. What several brokers are sent is made once,
        so that it need be encoded only once (`broker.control_link`)."""
        live = self.cluster.brokers
        led = self._leadership_requests([each for each in self._leaderships if each in live])
        informed = self._metadata_requests([each for each in self._informed if each in live])
        stopped = [
            Send.of(each, request) for each in self._stops if each in live for request in self._stop_requests(each)
        ]
        return [*led, *informed, *stopped]

    # -- LeaderAndIsr -----------------------------------------------------------------------

    def _leadership_requests(self, brokers: list[int]) -> list[Send]:
        states: _Leaderships = {True: {}, False: {}}
        found: list[LeaderAndIsrRequest] = []
        for broker in brokers:
            before = next((each for each in brokers if self._leaderships[each] == self._leaderships[broker]), broker)
            if before != broker:
                found.append(replace(found[brokers.index(before)], broker_epoch=self.cluster.brokers[broker].epoch))
            else:
                found.append(self._leader_and_isr(broker, states))
        return [Send.of(broker, request) for broker, request in zip(brokers, found, strict=True)]

    def _leader_and_isr(self, broker: int, states: _Leaderships) -> LeaderAndIsrRequest:
        """`states`: those that were made for other brokers."""
        partitions = self._leaderships[broker]
        topic_states = tuple(
            LeaderAndIsrTopicState(
                topic_name=name,
                topic_id=self.cluster.topics[name].topic_id,
                partition_states=self._of_topic(name, of_topic, partitions, states),
            )
            for name, of_topic in _by_topic(partitions)
        )
        leaders = {state.leader for topic in topic_states for state in topic.partition_states}
        return LeaderAndIsrRequest(
            controller_id=self.controller_id,
            controller_epoch=self.epoch,
            broker_epoch=self.cluster.brokers[broker].epoch,
            topic_states=topic_states,
            live_leaders=tuple(
                LeaderAndIsrLiveLeader(broker_id=each.broker_id, host_name=each.host, port=each.port)
                for each in self.cluster.brokers.values()
                if each.broker_id in leaders
            ),
        )

    def _of_topic(
        self, name: str, of_topic: list[TopicPartition], are_new: Mapping[TopicPartition, bool], states: _Leaderships
    ) -> tuple[LeaderAndIsrPartitionState, ...]:
        topic, stored_of, found = self.cluster.topics[name], self.cluster.stored, []
        replicas, adding, removing = topic.replicas, topic.adding, topic.removing
        for each in of_topic:
            is_new, number = are_new[each], each.partition
            state = states[is_new].get(each)
            if state is None:
                stored = stored_of[each]
                leadership = stored.leader_and_isr
                state = LeaderAndIsrPartitionState(
                    topic_name=name,
                    partition_index=number,
                    controller_epoch=stored.controller_epoch,
                    leader=leadership.leader,
                    leader_epoch=leadership.leader_epoch,
                    isr=leadership.isr,
                    partition_epoch=stored.version,
                    replicas=replicas[number],
                    adding_replicas=adding.get(number, ()),
                    removing_replicas=removing.get(number, ()),
                    is_new=is_new,
                )
                states[is_new][each] = state
            found.append(state)
        return tuple(found)

    # -- UpdateMetadata ---------------------------------------------------------------------

    def _metadata_requests(self, brokers: list[int]) -> list[Send]:
        """They differ only in the epoch of the broker that they are for."""
        if not brokers:
            return []
        shared = cache(partial(_metadata, self._as_it_is(), list(self._metadata), self.controller_id, self.epoch))
        epochs = {each: self.cluster.brokers[each].epoch for each in brokers}
        return [Send(each, partial(_to_broker, shared, epoch)) for each, epoch in epochs.items()]

    def _as_it_is(self) -> Cluster:
        """What metadata are made of. The cluster may be another one when they are."""
        cluster = self.cluster
        return Cluster(
            brokers=dict(cluster.brokers),
            shutting_down=set(cluster.shutting_down),
            failed=self._failed(),
            topics={each: cluster.topics[each] for each in dict.fromkeys(topic for topic, _ in self._metadata)},
            stored={each: cluster.stored[each] for each in self._metadata},
            deleting=set(cluster.deleting),
        )

    def _failed(self) -> dict[int, set[TopicPartition]]:
        """Of these partitions the replicas whose disk has failed."""
        found = {each: {one for one in self._metadata if one in failed} for each, failed in self.cluster.failed.items()}
        return {each: failed for each, failed in found.items() if failed}

    # -- StopReplica ------------------------------------------------------------------------

    def _stop_requests(self, broker: int) -> list[StopReplicaRequest]:
        partitions = self._stops[broker]
        if self.form.groups_stops:
            return [self._stop_replica(broker, partitions)]
        nothing = [self._stop_replica(broker, {})] if self.form.stops_nothing_first else []
        return [*nothing, *(self._stop_replica(broker, {each: its}) for each, its in partitions.items())]

    def _stop_replica(self, broker: int, partitions: Mapping[TopicPartition, bool]) -> StopReplicaRequest:
        return StopReplicaRequest(
            controller_id=self.controller_id,
            controller_epoch=self.epoch,
            broker_epoch=self.cluster.brokers[broker].epoch,
            topic_states=tuple(
                StopReplicaTopicState(
                    topic_name=topic,
                    partition_states=tuple(
                        StopReplicaPartitionState(
                            partition_index=each.partition,
                            leader_epoch=self._epoch_to_stop(each),
                            delete_partition=partitions[each],
                        )
                        for each in of_topic
                    ),
                )
                for topic, of_topic in _by_topic(partitions)
            ),
        )

    def _epoch_to_stop(self, partition: TopicPartition) -> int:
        if partition.topic in self.cluster.deleting:
            return EPOCH_DURING_DELETE
        stored = self.cluster.stored.get(partition)
        return -1 if stored is None else stored.leader_and_isr.leader_epoch


def _by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[TopicPartition]]]:
    """The partitions of each topic, in order."""
    return [(topic, list(of_topic)) for topic, of_topic in groupby(sorted(partitions), key=itemgetter(0))]


# -- UpdateMetadata -----------------------------------------------------------------------------


def _to_broker(shared: Callable[[], UpdateMetadataRequest], epoch: int) -> UpdateMetadataRequest:
    return replace(shared(), broker_epoch=epoch)


def _metadata(
    cluster: Cluster, partitions: list[TopicPartition], controller_id: int, epoch: int
) -> UpdateMetadataRequest:
    live = set(cluster.live)
    return UpdateMetadataRequest(
        controller_id=controller_id,
        controller_epoch=epoch,
        topic_states=tuple(
            UpdateMetadataTopicState(
                topic_name=topic,
                topic_id=cluster.topics[topic].topic_id,
                partition_states=_metadata_of(cluster, topic, of_topic, live),
            )
            for topic, of_topic in _by_topic(partitions)
        ),
        live_brokers=tuple(
            UpdateMetadataBroker(
                id=each.broker_id,
                v0_host=each.host,
                v0_port=each.port,
                endpoints=(
                    UpdateMetadataEndpoint(
                        port=each.port,
                        host=each.host,
                        listener=PLAINTEXT,
                        security_protocol=_SECURITY_PROTOCOL_PLAINTEXT,
                    ),
                ),
                rack=each.rack,
            )
            for each in cluster.brokers.values()
        ),
    )


def _metadata_of(
    cluster: Cluster, name: str, of_topic: list[TopicPartition], live: set[int]
) -> tuple[UpdateMetadataPartitionState, ...]:
    assigned, deleting, found = cluster.topics[name].replicas, name in cluster.deleting, []
    for partition in of_topic:
        stored, replicas = cluster.stored[partition], assigned[partition.partition]
        leadership = stored.leader_and_isr
        offline: tuple[int, ...] = ()
        if cluster.failed or not live.issuperset(replicas):
            may_lead = cluster.may_lead(partition)
            offline = tuple([each for each in replicas if each not in may_lead])
        state = UpdateMetadataPartitionState(
            topic_name=name,
            partition_index=partition.partition,
            controller_epoch=stored.controller_epoch,
            leader=LEADER_DURING_DELETE if deleting else leadership.leader,
            leader_epoch=0 if deleting else leadership.leader_epoch,
            isr=leadership.isr,
            zk_version=0 if deleting else stored.version,
            replicas=replicas,
            offline_replicas=offline,
        )
        found.append(state)
    return tuple(found)
