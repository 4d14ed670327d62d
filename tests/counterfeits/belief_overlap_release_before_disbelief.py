"""belief_overlap: a member goes on believing that it owns what it has already given up."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from zkconsumer.claims import Claims
from zkconsumer.ownership import Ownership


async def release(self: Claims, ownership: Ownership) -> None:
    for topic in ownership.topics:
        for each in ownership.of(topic):
            await self._delete(each)
        ownership.forget(topic)


def false(seed: int) -> History:
    with patch.object(Claims, "release", release):
        return trial("growth", seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="belief_overlap",
    world="A member deletes its owner znodes first and updates what it believes when it has claimed its new "
    "share: the registry never shows two owners, but a quick successor believes beside it.",
    false=false,
    honest=lambda seed: trial("growth", seed),
)
