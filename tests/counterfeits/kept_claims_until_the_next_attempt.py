"""The premise of Z16: members that keep their claims while they wait, though they are told not to."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from zkconsumer.claims import Claims
from zkconsumer.rebalance import AttemptFailed, Rebalancer

_ATTEMPT = Rebalancer._attempt
GIVES_BACK = {"keep": "false"}


def false(seed: int) -> History:
    kept: dict[Claims, tuple[TopicPartition, ...]] = {}

    async def let_go(self: Claims) -> None:
        kept[self] = self.won
        self._forget()

    async def attempt(self: Rebalancer) -> AttemptFailed | None:
        for each in reversed(kept.pop(self._claims, ())):
            await self._claims._delete(each)
        return await _ATTEMPT(self)

    with patch.object(Claims, "let_go", let_go), patch.object(Rebalancer, "_attempt", attempt):
        return trial("deadlock", seed, settings=GIVES_BACK)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="kept_claims",
    world="Members say that they keep nothing, never deadlock, and give back all that they claimed, but only just "
    "before the next attempt: they wait with it, and Z16 applies to them.",
    false=false,
    honest=lambda seed: trial("deadlock", seed, settings=GIVES_BACK),
)
