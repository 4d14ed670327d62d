"""non_convergence: a group that is busy for ever, without anybody giving up or anything going wrong."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import member_path
from zkconsumer.rebalance import Rebalancer

_SYNCED = Rebalancer.synced


async def synced(self: Rebalancer, by: str) -> None:
    if by == "watcher":
        path = member_path(self._view._group, self._settings.consumer_id)
        data = (await self._client.read(path)).data
        await self._client.delete(path)
        await self._client.create(path, data, ephemeral=True)
    await _SYNCED(self, by)


#: Longer than the bound of 9.2 s; a group that never rests makes 3,000 events a second.
WAIT = {"rest_timeout_ms": "12000"}


def false(seed: int) -> History:
    with patch.object(Rebalancer, "synced", synced):
        return trial("leave", seed, settings=WAIT)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="non_convergence",
    world="Before each rebalance a member registers anew, to tell the others that it takes part; that makes them "
    "rebalance, and register anew. Every rebalance succeeds, and the group never comes to rest.",
    false=false,
    honest=lambda seed: trial("leave", seed, settings=WAIT),
)
