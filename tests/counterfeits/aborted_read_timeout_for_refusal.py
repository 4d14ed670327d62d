"""aborted_read: a leader that takes a write for refused because too few replicas have it when the time is over."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.apis import produce
from rebalance_lab.broker.calls import Parts
from rebalance_lab.broker.refused import Refused
from rebalance_lab.history.files import History
from rebalance_lab.wire.kafka.error_codes import ErrorCode

#: Two of three brokers die: the leader is alone, and until it notices, its writes wait.
KILLS = {"fault": "kill", "victims": "2", "request_timeout_ms": "1000", "rounds": "6"}

_uncommitted = produce._uncommitted


async def uncommitted(
    parts: Parts, outcomes: dict[TopicPartition, produce.Outcome], timeout_ms: int
) -> dict[TopicPartition, produce.Outcome]:
    failed = await _uncommitted(parts, outcomes, timeout_ms // 2)  # before the client gives up
    return {each: Refused(ErrorCode.NOT_ENOUGH_REPLICAS, str(outcome)) for each, outcome in failed.items()}


def honest(seed: int) -> History:
    return trial("committed-data", seed, settings=KILLS)


def false(seed: int) -> History:
    with patch.object(produce, "_uncommitted", uncommitted):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="aborted_read",
    world="A leader whose followers do not answer waits, and then refuses the write with NOT_ENOUGH_REPLICAS, which is "
    "why it could not be committed. But the record is in its log, and is committed once the followers are back.",
    false=false,
    honest=honest,
)
