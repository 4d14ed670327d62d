"""unsettled_write: a leader that took over, and says of each record that it was not committed in time."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.apis import produce
from rebalance_lab.broker.calls import Parts
from rebalance_lab.broker.refused import Refused
from rebalance_lab.history.files import History
from rebalance_lab.wire.kafka.error_codes import ErrorCode

_uncommitted = produce._uncommitted


async def late(
    parts: Parts, outcomes: dict[TopicPartition, produce.Outcome], timeout_ms: int
) -> dict[TopicPartition, produce.Outcome]:
    failed = await _uncommitted(parts, outcomes, timeout_ms)
    for each, outcome in outcomes.items():
        if isinstance(outcome, produce._Written) and outcome.leader_epoch > 0:
            failed[each] = Refused(ErrorCode.REQUEST_TIMED_OUT, "it was not committed in time; it may be later")
    return failed


def honest(seed: int) -> History:
    return trial("isr-election", seed, settings={"messages": "60"})


def false(seed: int) -> History:
    with patch.object(produce, "_uncommitted", late):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="unsettled_write",
    world="After a failure the next leader takes each record, replicates and commits it, and answers at once, with an "
    "error that a client may well see after a failure and has to ask again for; but it goes on so for ever.",
    false=false,
    honest=honest,
)
