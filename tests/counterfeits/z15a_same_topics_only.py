"""Z15a: a group within which members of one topic do not rebalance for those of another."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from rebalance_lab.zkclient import ChildListener
from zkconsumer.rebalance import Rebalancer
from zkconsumer.watcher import Watcher

_SYNCED, _HANDLE = Rebalancer.synced, Watcher.handle_child_change


def false(seed: int) -> History:
    rebalancers: dict[ChildListener, Rebalancer] = {}
    peers: dict[ChildListener, list[str]] = {}

    async def look(watcher: ChildListener) -> list[str]:
        """Which members read a topic of this one."""
        one = rebalancers[watcher]
        view, me = one._view, one._settings.consumer_id
        mine = await view.threads(me)
        members, _ = await view._members()
        return [each for each in members if mine.keys() & (await view.threads(each)).keys()]

    async def synced(self: Rebalancer, by: str) -> None:
        rebalancers[self._on_brokers] = self
        peers[self._on_brokers] = await look(self._on_brokers)
        await _SYNCED(self, by)

    async def handle_child_change(self: Watcher, path: str, children: tuple[str, ...] | None) -> None:
        if self not in peers or peers[self] != await look(self):
            await _HANDLE(self, path, children)

    with (
        patch.object(Rebalancer, "synced", synced),
        patch.object(Watcher, "handle_child_change", handle_child_change),
    ):
        return trial("group-scope", seed)


COUNTERFEIT = Counterfeit(
    claim="Z15a",
    check="group_is_global",
    world="All members stand in one list of ids and are told of every change, but rebalance only when a member "
    "that reads one of their topics has come or gone: in effect each topic has a group of its own.",
    false=false,
    honest=lambda seed: trial("group-scope", seed),
)
