"""orphan_owner: the registry shows an owner for each partition, and one of them does nothing with it."""

from typing import Any
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from zkconsumer.fetchers import Fetchers, Share
from zkconsumer.report import Report

_OWNED, _START = Report.owned, Fetchers.start
LAST = 5


def owned(self: Report, each: Any, **more: Any) -> None:
    if each.partition != LAST:
        _OWNED(self, each, **more)


def start(self: Fetchers, shares: list[Share]) -> None:
    _START(self, [share for share in shares if share.partition.partition != LAST])


def false(seed: int) -> History:
    with patch.object(Report, "owned", owned), patch.object(Fetchers, "start", start):
        return trial("leave", seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="orphan_owner",
    world="A member claims its whole share, and releases it when it must, but never begins with the last "
    "partition, whose fetcher did not start: the registry looks complete at every rest.",
    false=false,
    honest=lambda seed: trial("leave", seed),
)
