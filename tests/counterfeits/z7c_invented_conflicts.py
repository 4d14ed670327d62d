"""Z7c: a member reads everything twice and reports the first time as an attempt that met a conflict."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from rebalance_lab.history.rebalances import AttemptFailure
from zkconsumer.rebalance import AttemptFailed, Rebalancer

_ATTEMPT = Rebalancer._attempt


def false(seed: int) -> History:
    seen: dict[int, int] = {}

    async def attempt(self: Rebalancer) -> AttemptFailed | None:
        """Every second attempt is the real one."""
        number = seen[id(self)] = seen.get(id(self), 0) + 1
        if number % 2 == 0 or not self._ownership.topics:
            return await _ATTEMPT(self)
        await self._view.cluster()
        await self._view.threads(self._settings.consumer_id)
        await self._view.brokers()
        assignment = self._decide(self._seen(await self._view.snapshot()))
        await self._view.offsets(each for each, _ in assignment.owners)
        return AttemptFailed("owned by others: t1/0", AttemptFailure.CONFLICT, (TopicPartition("t1", 0),))

    with patch.object(Rebalancer, "_attempt", attempt):
        return trial("herd", seed, rules="shipped", settings={"members": "4"})


COUNTERFEIT = Counterfeit(
    claim="Z7c",
    check="herd_cost",
    world="Members read everything twice, and report the first time as an attempt that failed on a conflict over t1/0. "
    "The reported conflicts account for nearly all of the reads above the formula; the registry saw none.",
    false=false,
    honest=lambda seed: trial("herd", seed, rules="shipped", settings={"members": "4"}),
)
