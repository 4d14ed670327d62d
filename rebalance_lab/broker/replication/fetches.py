"""What a leader concludes of a fetch: what it answers, and whether it counts what the reader has.

As `Partition.readRecords` and `ReplicaManager.updateFollowerFetchState` of Kafka 3.9.1. A fetch that names another
leader epoch is refused before (`leadership.epoch_error`). What follows of one that counts is `Leadership.counted`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from rebalance_lab.broker.log.epochs import UNDEFINED_EPOCH, EpochEnd
from rebalance_lab.broker.replication.truncation import UnknownEpoch, diverging


class FetchAnswer(Enum):
    """- OUT_OF_RANGE: the leader's log does not have the offset, or has no epoch as late as that of the reader's last
      record.
    - DIVERGING: where the logs part.
    - RECORDS: what comes next in the leader's log.
    """

    OUT_OF_RANGE = "out of range"
    DIVERGING = "diverging"
    RECORDS = "records"


class Conclusion(NamedTuple):
    """`counts`: if the reader is a follower, it has all before the offset that it fetches, as far as the leader can
    tell. `parted`: where the logs part, if they do."""

    answer: FetchAnswer
    counts: bool
    parted: EpochEnd | None = None


_OUT_OF_RANGE = Conclusion(FetchAnswer.OUT_OF_RANGE, counts=False)
_RECORDS = Conclusion(FetchAnswer.RECORDS, counts=True)


def conclude(
    offset: int,
    last_epoch: int,
    *,
    start_offset: int,
    end_offset: int,
    end_of: Callable[[int], EpochEnd],
    counts_diverging: bool = False,
) -> Conclusion:
    """Of a fetch from `offset` on.

    `last_epoch`: that of the reader's last record, or UNDEFINED_EPOCH. `start_offset`, `end_offset`: of the leader's
    log. `end_of(epoch)`: what this log answers about an epoch. `counts_diverging`: True plants a bug: a fetch counts
    although the logs part, as in 2.7.0, 2.7.1 and 2.8.0 (KAFKA-13141).
    """
    if offset < start_offset:  # whether the logs part or not (KAFKA-12996)
        return _OUT_OF_RANGE
    if last_epoch != UNDEFINED_EPOCH:
        try:
            parted = diverging(end_of(last_epoch), last_epoch, offset)
        except UnknownEpoch:
            return _OUT_OF_RANGE
        if parted is not None:
            return Conclusion(FetchAnswer.DIVERGING, counts_diverging, parted)
    return _RECORDS if offset <= end_offset else _OUT_OF_RANGE
