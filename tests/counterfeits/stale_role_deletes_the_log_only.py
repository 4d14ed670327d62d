"""stale_role: brokers that delete the log of a replica, and keep their role in the partition."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.replicas import Replicas
from rebalance_lab.history.files import History
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.stop_replica import StopReplicaPartitionState

_stopped = Replicas._stopped


async def of_the_log(self: Replicas, partition: TopicPartition, state: StopReplicaPartitionState) -> ErrorCode:
    if not state.delete_partition:
        return await _stopped(self, partition, state)
    self._fetchers.stop(partition)
    await self._logs.delete(partition)
    return ErrorCode.NONE


def honest(seed: int) -> History:
    return trial("duties", seed, settings={"duty": "delete-topic", "kill_at": "0"})


def false(seed: int) -> History:
    with patch.object(Replicas, "_stopped", of_the_log):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="stale_role",
    world="The topic is gone from ZooKeeper, from all metadata and from all disks, and no fetcher runs; but brokers "
    "still take themselves for its leader and followers, and meet a new topic of that name with it.",
    false=false,
    honest=honest,
)
