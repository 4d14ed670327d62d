"""grow_only: a growth that gives the partitions that are there other replicas."""

from collections.abc import Mapping
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker import topic_store
from rebalance_lab.history.files import History
from rebalance_lab.wire.cluster import assignment_payload


def honest(seed: int) -> History:
    return trial("grow-only", seed)


def false(seed: int) -> History:
    def turned(replicas: Mapping[int, tuple[int, ...]], topic_id: bytes | None) -> bytes:
        return assignment_payload({each: its[::-1] for each, its in replicas.items()}, topic_id)

    with patch.object(topic_store, "assignment_payload", turned):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="grow_only",
    world="The topic has as many partitions as were asked for, and no record is lost; but the replicas of the old "
    "partitions stand in another order, so that other leaders are preferred.",
    false=false,
    honest=honest,
)
