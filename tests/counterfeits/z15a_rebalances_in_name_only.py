"""Z15a: members report a rebalance for every change in the group, and carry out only those of their topics."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from zkconsumer.rebalance import Rebalancer

_SYNCED = Rebalancer.synced


def false(seed: int) -> History:
    peers: dict[Rebalancer, list[str]] = {}

    async def synced(self: Rebalancer, by: str) -> None:
        mine = await self._view.threads(self._settings.consumer_id)
        members, _ = await self._view._members()
        before = peers.get(self)
        peers[self] = [each for each in members if mine.keys() & (await self._view.threads(each)).keys()]
        if by != "watcher" or peers[self] != before:
            await _SYNCED(self, by)
            return
        self._report.step(Kind.REBALANCE_BEGAN, by=by)
        self._report.step(Kind.REBALANCE_ENDED, outcome="ok", attempts=0)

    with patch.object(Rebalancer, "synced", synced):
        return trial("group-scope", seed)


COUNTERFEIT = Counterfeit(
    claim="Z15a",
    check="group_is_global",
    world="For each change in the group every member reports that a rebalance began and succeeded; but where none of "
    "its own topics is concerned it makes no attempt, gives nothing up and goes on working.",
    false=false,
    honest=lambda seed: trial("group-scope", seed),
)
