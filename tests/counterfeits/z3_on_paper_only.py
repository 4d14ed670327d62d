"""Z3: owner znodes as published, and belief and work on other partitions."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from zkconsumer.fetchers import Fetchers, Share
from zkconsumer.report import Report

_start, _owned, _disowned = Fetchers.start, Report.owned, Report.disowned


def _mirrored(each: TopicPartition) -> TopicPartition:
    """Of the three partitions, counted from the other end."""
    return TopicPartition(each.topic, 2 - each.partition)


def _start_others(fetchers: Fetchers, shares: Sequence[Share]) -> None:
    _start(fetchers, [Share(_mirrored(share.partition), share.queue) for share in shares])


def _own_others(report: Report, each: TopicPartition, *, thread: str, offset: int) -> None:
    _owned(report, _mirrored(each), thread=thread, offset=offset)


def _disown_others(report: Report, each: TopicPartition) -> None:
    _disowned(report, _mirrored(each))


def _false(seed: int) -> History:
    with (
        patch.object(Fetchers, "start", _start_others),
        patch.object(Report, "owned", _own_others),
        patch.object(Report, "disowned", _disown_others),
    ):
        return trial("walkthrough", seed)


COUNTERFEIT = Counterfeit(
    claim="Z3",
    check="published_rows",
    world="Members claim the znodes that the article publishes, and believe in and work on others: they count the "
    "partitions from the other end.",
    false=_false,
    honest=lambda seed: trial("walkthrough", seed),
)
