"""Z8: two views and the same shares, and a member that reports a conflict which it never had."""

from collections import Counter
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from rebalance_lab.history.rebalances import AttemptFailure
from zkconsumer.claims import Plan
from zkconsumer.rebalance import AttemptFailed, Rebalancer

_TAKE = Rebalancer._take

#: Owned by the other member, by whatever view.
_OTHERS = TopicPartition("t1", 1)


def false(seed: int) -> History:
    tries: Counter[Rebalancer] = Counter()

    async def take(self: Rebalancer, plan: Plan) -> AttemptFailed | None:
        tries[self] += 1
        if "host-m1" not in self._settings.consumer_id or tries[self] < 4 or tries[self] % 2:
            return await _TAKE(self, plan)
        assert not await self._claims.take(plan)
        for each, _ in reversed(plan.owners):
            await self._claims._delete(each)
        return AttemptFailed("owned by others: t1/1", AttemptFailure.CONFLICT, (_OTHERS,))

    with patch.object(Rebalancer, "_take", take):
        return trial("split-brain", seed, settings={"partitions": "4"})


COUNTERFEIT = Counterfeit(
    claim="Z8",
    check="disagreement",
    world="Members deal from different lists of members, and the shares are the same. One gives back once what it "
    "claimed, and reports a conflict over a partition of another, which it neither wanted nor tried to claim.",
    false=false,
    honest=lambda seed: trial("split-brain", seed),
)
