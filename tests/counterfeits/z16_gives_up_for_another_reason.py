"""Z16: members that keep nothing; one of them gives up, and nobody waits for anybody."""

from collections import Counter
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from rebalance_lab.history.rebalances import AttemptFailure
from zkconsumer.claims import Claims, Plan
from zkconsumer.rebalance import AttemptFailed, Rebalancer

_TAKE, _ATTEMPT = Claims.take, Rebalancer._attempt

#: All attempts that rebalance.max.retries allows in this scenario.
ATTEMPTS = 10


def false(seed: int) -> History:
    tries: Counter[Rebalancer] = Counter()

    async def take(self: Claims, plan: Plan) -> list[TopicPartition]:
        conflicts = await _TAKE(self, plan)
        if conflicts:
            await self.let_go()
        return conflicts

    async def attempt(self: Rebalancer) -> AttemptFailed | None:
        tries[self] += 1
        if "host-m3" in self._settings.consumer_id and tries[self] <= ATTEMPTS:
            return AttemptFailed("NoNode: /consumers/g1/ids", AttemptFailure.ERROR)
        return await _ATTEMPT(self)

    with patch.object(Claims, "take", take), patch.object(Rebalancer, "_attempt", attempt):
        return trial("deadlock", seed)


COUNTERFEIT = Counterfeit(
    claim="Z16",
    check="hold_and_wait",
    world="A member gives up after its last attempt, and the trial's settings tell members to keep what they claimed. "
    "But nobody keeps anything or waits for anybody: the attempts failed for another reason.",
    false=false,
    honest=lambda seed: trial("deadlock", seed),
)
