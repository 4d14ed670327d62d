"""The premise of Z16: members that give back what they claimed, and claim it again once the attempt has failed."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from zkconsumer.claims import Claims, Plan
from zkconsumer.rebalance import AttemptFailed, Rebalancer

_ATTEMPT, _STOP_FETCHERS, _TAKE = Rebalancer._attempt, Rebalancer._stop_fetchers, Claims.take


def false(seed: int) -> History:
    """The fetchers are stopped once more after a failed attempt, which is when the wait begins."""
    failed: dict[Claims, Plan] = {}

    async def take(self: Claims, plan: Plan) -> list[TopicPartition]:
        conflicts = await _TAKE(self, plan)
        if conflicts:
            failed[self] = plan
        return conflicts

    async def stop_fetchers(self: Rebalancer) -> None:
        await _STOP_FETCHERS(self)
        plan = failed.pop(self._claims, None)
        for each, thread in plan.owners if plan is not None else ():
            await self._claims._create(each, thread)

    async def attempt(self: Rebalancer) -> AttemptFailed | None:
        await self._claims.let_go()
        return await _ATTEMPT(self)

    with (
        patch.object(Claims, "take", take),
        patch.object(Rebalancer, "_stop_fetchers", stop_fetchers),
        patch.object(Rebalancer, "_attempt", attempt),
    ):
        return trial("split-brain", seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="kept_claims",
    world="A member gives back what it claimed, reports that the attempt failed, and claims the same again at once: "
    "it holds it while it waits.",
    false=false,
    honest=lambda seed: trial("split-brain", seed),
)
