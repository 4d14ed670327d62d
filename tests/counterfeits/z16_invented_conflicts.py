"""Z16: two members that own their whole shares, and report conflicts over each other's."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from rebalance_lab.history.rebalances import AttemptFailure
from zkconsumer.claims import Plan
from zkconsumer.fetchers import Share
from zkconsumer.rebalance import AttemptFailed, Rebalancer

_ALL = [TopicPartition("t1", number) for number in range(4)]


async def take(self: Rebalancer, plan: Plan) -> AttemptFailed | None:
    """With all partitions, or none, a member goes to work. With a part of them it keeps these and reports that it
    failed on the others."""
    conflicts = await self._claims.take(plan)
    if conflicts:
        await self._claims.let_go()
        return AttemptFailed("owned by others", AttemptFailure.CONFLICT, tuple(conflicts))
    shares = dict(plan.owners)
    others = tuple(each for each in _ALL if each not in shares)
    if len(others) in (0, len(_ALL)):
        self._ownership.swap(plan.owners, plan.offsets)
        queue = self._streams.queue
        self._fetchers.start([Share(each, queue(each.topic, thread)) for each, thread in plan.owners])
        return None
    self._claims._held, self._claims._won = plan, dict.fromkeys(shares)
    return AttemptFailed("owned by others", AttemptFailure.CONFLICT, others)


def false(seed: int) -> History:
    with patch.object(Rebalancer, "_take", take):
        return trial("deadlock", seed)


COUNTERFEIT = Counterfeit(
    claim="Z16",
    check="hold_and_wait",
    world="Two members hold partitions, and each reports conflicts over the other's until it gives up. But each owns "
    "its whole share, and never tried to claim more.",
    false=false,
    honest=lambda seed: trial("deadlock", seed),
)
