"""What a leader concludes of a fetch. Its log is [2, 6), and has the epochs 1 from 2 and 3 from 4 on."""

from __future__ import annotations

import pytest

from rebalance_lab.broker.log.epochs import UNDEFINED_EPOCH, EpochEnd, EpochStart, LeaderEpochs
from rebalance_lab.broker.replication.fetches import Conclusion, FetchAnswer, conclude

EPOCHS = LeaderEpochs((EpochStart(1, 2), EpochStart(3, 4)))
RECORDS = Conclusion(FetchAnswer.RECORDS, counts=True)
OUT_OF_RANGE = Conclusion(FetchAnswer.OUT_OF_RANGE, counts=False)


def concluded(offset: int, last_epoch: int, *, counts_diverging: bool = False) -> Conclusion:
    return conclude(
        offset,
        last_epoch,
        start_offset=2,
        end_offset=6,
        end_of=lambda epoch: EPOCHS.end_of(epoch, 6),
        counts_diverging=counts_diverging,
    )


@pytest.mark.parametrize(
    ("offset", "last_epoch", "expected"),
    [
        (1, UNDEFINED_EPOCH, OUT_OF_RANGE),
        (2, UNDEFINED_EPOCH, RECORDS),
        (6, UNDEFINED_EPOCH, RECORDS),
        (7, UNDEFINED_EPOCH, OUT_OF_RANGE),
        (4, 1, RECORDS),
        (5, 1, Conclusion(FetchAnswer.DIVERGING, counts=False, parted=EpochEnd(1, 4))),
        (5, 2, Conclusion(FetchAnswer.DIVERGING, counts=False, parted=EpochEnd(1, 4))),
        (6, 3, RECORDS),
        (7, 3, Conclusion(FetchAnswer.DIVERGING, counts=False, parted=EpochEnd(3, 6))),
        (5, 4, OUT_OF_RANGE),  # no epoch of this log is as late
        (1, 2, OUT_OF_RANGE),  # though the logs part, too
    ],
)
def test_only_a_fetch_that_gets_records_counts(offset: int, last_epoch: int, expected: Conclusion) -> None:
    assert concluded(offset, last_epoch) == expected


def test_with_kafka_13141_a_fetch_counts_although_the_logs_part() -> None:
    found = concluded(5, 2, counts_diverging=True)
    assert found == Conclusion(FetchAnswer.DIVERGING, counts=True, parted=EpochEnd(1, 4))
    assert concluded(5, 4, counts_diverging=True) == OUT_OF_RANGE
