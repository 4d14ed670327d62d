"""E5c: a controller that puts changes of a topic's other ISRs off."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.cluster import Stored
from controller.isr_requests import IsrRequests
from controller.stimuli import IsrWanted
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from rebalance_lab.wire.kafka.error_codes import ErrorCode

#: How often a leader of another partition than the first is put off; it asks again with each fetch of the follower.
TIMES = 10

#: The client writes on for some seconds after the broker's return.
DIES = {"trouble": "dies", "messages": "800"}

_result = IsrRequests._result


def put_off(self: IsrRequests, partition: TopicPartition, wanted: IsrWanted, leader: int) -> Stored | ErrorCode | None:
    asked = self.__dict__.setdefault("asked", {})
    asked[partition] = asked.get(partition, 0) + 1
    if partition.partition and asked[partition] <= TIMES:
        return ErrorCode.OPERATION_NOT_ATTEMPTED
    return _result(self, partition, wanted, leader)


def honest(seed: int) -> History:
    return trial("isr-per-partition", seed, settings=DIES)


def false(seed: int) -> History:
    with patch.object(IsrRequests, "_result", put_off):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E5c",
    check="isr_of_topic",
    world="A broker dies and leaves the ISRs of a topic's partitions at once, and in the end all are full again; but "
    "when it returns, the controller lets it join that of the first partition, and puts the leader of the other off.",
    false=false,
    honest=honest,
)
