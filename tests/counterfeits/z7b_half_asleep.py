"""Z7b: every other member rebalances when a broker comes or goes."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import BROKER_IDS
from rebalance_lab.zkclient import ChildListener, ZkClient

_SUBSCRIBE = ZkClient.subscribe_child_changes


def false(seed: int) -> History:
    seen: list[ZkClient] = []

    async def subscribe_child_changes(self: ZkClient, path: str, listener: ChildListener) -> tuple[str, ...] | None:
        if path == BROKER_IDS:
            seen.append(self)
            if len(seen) % 2 == 0:
                return None
        return await _SUBSCRIBE(self, path, listener)

    with patch.object(ZkClient, "subscribe_child_changes", subscribe_child_changes):
        return trial("herd", seed, settings={"members": "4"})


COUNTERFEIT = Counterfeit(
    claim="Z7b",
    check="broker_change_noticed",
    world="Every other member watches /brokers/ids: a broker that comes or goes sets off rebalances, but not of all.",
    false=false,
    honest=lambda seed: trial("herd", seed, settings={"members": "4"}),
)
