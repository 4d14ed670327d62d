"""All replicas of a broker, as controllers order them about (`kafka.server.ReplicaManager`, Kafka 3.9.1).

Orders are obeyed one request after another, and only those of the newest controller that was heard of: a request with
an older controller epoch, for an earlier life of this broker, or with a leader epoch that is not newer, changes nothing
(claim E3).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping

from controller.request_batch import ControlRequest
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.log.errors import LogError
from rebalance_lab.broker.log.log import PartitionLog
from rebalance_lab.broker.log.manager import LogManager
from rebalance_lab.broker.metadata_cache import MetadataCache
from rebalance_lab.broker.partition import Partition, ReplicaContext, ReplicaRole
from rebalance_lab.broker.refused import Refused
from rebalance_lab.broker.replication.fetcher import ReplicaFetchers
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from rebalance_lab.wire.kafka.messages.stop_replica import StopReplicaPartitionState, StopReplicaRequest
from rebalance_lab.wire.kafka.messages.update_metadata import UpdateMetadataRequest
from rebalance_lab.wire.kafka.sentinels import EPOCH_DURING_DELETE, NO_BROKER_EPOCH, NO_LEADER_EPOCH
from rebalance_lab.world.network import Address

Errors = dict[TopicPartition, ErrorCode]


class Replicas:
    """- `fetchers`: get the records of leaders.
    - `broker_epoch()`: the czxid of this broker's registration.
    - `log_of(partition)`: its log, made with the topic's settings if it is not there.
    - `metadata`: what the controller has told of the cluster.
    - `warn` takes a line for whoever runs the broker.
    """

    def __init__(
        self,
        around: ReplicaContext,
        fetchers: ReplicaFetchers,
        logs: LogManager,
        *,
        log_of: Callable[[TopicPartition], Awaitable[PartitionLog]],
        broker_epoch: Callable[[], int],
        metadata: MetadataCache,
        warn: Callable[[str], None],
    ) -> None:
        self.controller_epoch = 0
        self._around = around
        self._fetchers = fetchers
        self._logs = logs
        self._log_of = log_of
        self._broker_epoch = broker_epoch
        self._metadata = metadata
        self._warn = warn
        self._last_update: UpdateMetadataRequest | None = None
        self._partitions: dict[TopicPartition, Partition] = {}
        self._ordering = around.tasks.lock("orders of controllers")

    async def run(self) -> None:
        """Drop followers from the ISR that have fallen behind; until it is cancelled."""
        while True:
            await self._around.tasks.sleep(self._around.lag.time_us // 2)
            for each in list(self._partitions.values()):
                each.drop_laggards()

    @property
    def all(self) -> Mapping[TopicPartition, Partition]:
        """Those that a controller has given a role."""
        return self._partitions

    def led(self, partition: TopicPartition, known_epoch: int = NO_LEADER_EPOCH) -> Partition:
        """The replica, if it leads. Raises Refused."""
        found = self._partitions.get(partition)
        if found is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if self._metadata.has(partition):  # the client's metadata are old, or this broker has not been told yet
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise Refused(code, f"this broker has no partition {partition.topic}-{partition.partition}")
        found.check_leader(known_epoch)
        return found

    def fence(self, request: ControlRequest) -> None:
        """Take note of the controller's epoch. Raises Refused for a request of a deposed controller, or for an earlier
        life of this broker."""
        self._fence_other_lives(request.broker_epoch)
        if request.controller_epoch < self.controller_epoch and self._around.fences_orders:
            raise Refused(
                ErrorCode.STALE_CONTROLLER_EPOCH,
                f"controller {request.controller_id} has epoch {request.controller_epoch}, and {self.controller_epoch} "
                "has been heard of",
            )
        self.controller_epoch = request.controller_epoch

    def _fence_other_lives(self, epoch: int) -> None:
        """The controller may hear of a registration before the broker does, which asked for it. Brokers of 2.2 to 2.4
        answer what it sends then with an error (KAFKA-9839)."""
        known = self._broker_epoch()
        told = f"the request is for broker epoch {epoch}, and this life has {known}"
        if epoch != NO_BROKER_EPOCH and epoch < known and self._around.fences_lives:
            raise Refused(ErrorCode.STALE_BROKER_EPOCH, told)
        if epoch > known != NO_BROKER_EPOCH and not self._around.accepts_newer_epochs:
            raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, told)

    def _obeys(self, order: str, request: ControlRequest) -> None:
        """Record what this broker acts by."""
        self._around.observe(
            "obeys",
            None,
            {
                "order": order,
                "controller": request.controller_id,
                "controller_epoch": request.controller_epoch,
                "broker_epoch": request.broker_epoch,
            },
        )

    # -- UpdateMetadata ---------------------------------------------------------------------

    def update_metadata(self, request: UpdateMetadataRequest) -> None:
        """What the controller knows of the cluster. Raises Refused."""
        self.fence(request)
        last, self._last_update = self._last_update, request
        self._update_metadata(request)
        if self._around.obeys_late_orders and last is not None and last.controller_epoch < request.controller_epoch:
            self._update_metadata(last)

    def _update_metadata(self, request: UpdateMetadataRequest) -> None:
        self._obeys("update-metadata", request)
        self._metadata.update(request)

    # -- LeaderAndIsr -----------------------------------------------------------------------

    async def lead_or_follow(self, request: LeaderAndIsrRequest) -> Errors:
        """What came of each partition. Raises Refused for the request as a whole."""
        leaders = {each.broker_id: Address(each.host_name, each.port) for each in request.live_leaders}
        if self._around.leaders_from_metadata:
            leaders = {each.broker_id: Address(each.host, each.port) for each in self._metadata.nodes.values()}
        async with self._ordering:
            self.fence(request)
            self._obeys("leader-and-isr", request)
            errors = {each: await self._take_role(each, state, leaders) for each, state in _leaderships(request)}
            self._fetchers.stop_idle()
            return errors

    async def _take_role(
        self, partition: TopicPartition, state: LeaderAndIsrPartitionState, leaders: Mapping[int, Address]
    ) -> ErrorCode:
        known = self._partitions.get(partition)
        if known is not None and known.role is ReplicaRole.OFFLINE:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if known is not None and state.leader_epoch <= known.leader_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if self._around.broker_id not in state.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if known is not None and known.role is ReplicaRole.LEADER and self._around.obeys_after_us:
            await self._around.tasks.sleep(self._around.obeys_after_us)
        try:
            replica = known or Partition(self._around, partition, await self._log_of(partition))
            if self._around.leads_by(state):
                if not self._around.keeps_fetchers:
                    self._fetchers.stop(partition)
                await replica.lead(state)
            elif state.leader in leaders:
                await self._follow(replica, state, leaders[state.leader])
        except LogError as error:
            return error.code
        except Exception as error:  # the controller would send the whole request again, and nothing after it
            return self._failed(partition, error)
        self._partitions[partition] = replica
        return ErrorCode.NONE

    async def _follow(self, replica: Partition, state: LeaderAndIsrPartitionState, leader: Address) -> None:
        """Follow a leader that is live. Of one that is not, or of none, nothing can be fetched, and nothing changes (as
        in the original)."""
        followed = replica.followed
        self._fetchers.stop(replica.partition)
        await replica.follow(state)
        self._fetchers.follow(replica, state.leader, leader, state.leader_epoch, followed=followed)

    def _failed(self, partition: TopicPartition, error: Exception) -> ErrorCode:
        self._warn(f"an order for {partition.topic}-{partition.partition} failed: {type(error).__name__}: {error}")
        return ErrorCode.UNKNOWN_SERVER_ERROR

    # -- StopReplica ------------------------------------------------------------------------

    async def stop(self, request: StopReplicaRequest) -> Errors:
        """What came of each partition. Raises Refused for the request as a whole."""
        async with self._ordering:
            self.fence(request)
            self._obeys("stop-replica", request)
            errors = {each: await self._stopped(each, state) for each, state in _stops(request)}
            self._fetchers.stop_idle()
            return errors

    async def _stopped(self, partition: TopicPartition, state: StopReplicaPartitionState) -> ErrorCode:
        known = self._partitions.get(partition)
        if known is not None:
            if known.role is ReplicaRole.OFFLINE:
                return ErrorCode.KAFKA_STORAGE_ERROR
            if (
                state.leader_epoch not in (EPOCH_DURING_DELETE, NO_LEADER_EPOCH)
                and state.leader_epoch < known.leader_epoch
            ):
                return ErrorCode.FENCED_LEADER_EPOCH
            self._fetchers.stop(partition)
            await known.stop()
            del self._partitions[partition]
        try:
            if state.delete_partition:
                await self._logs.delete(partition)
        except LogError as error:
            return error.code
        except Exception as error:
            return self._failed(partition, error)
        return ErrorCode.NONE


def _leaderships(request: LeaderAndIsrRequest) -> Iterator[tuple[TopicPartition, LeaderAndIsrPartitionState]]:
    for state in request.ungrouped_partition_states:
        yield TopicPartition(state.topic_name, state.partition_index), state
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield TopicPartition(topic.topic_name, state.partition_index), state


def _stops(request: StopReplicaRequest) -> Iterator[tuple[TopicPartition, StopReplicaPartitionState]]:
    """Before version 3 the request says once for all whether to delete, and no leader epochs."""
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield TopicPartition(topic.topic_name, state.partition_index), state
    older = [(each.topic_name, each.partition_index) for each in request.ungrouped_partitions]
    older += [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    for name, index in older:
        yield (
            TopicPartition(name, index),
            StopReplicaPartitionState(partition_index=index, delete_partition=request.delete_partitions),
        )
