"""Z6: a member asks for a watch of the brokers, but for one that does not hear of them."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import BROKER_IDS
from rebalance_lab.zkclient import ChildListener, ZkClient

_SUBSCRIBE = ZkClient.subscribe_child_changes


async def subscribe_child_changes(self: ZkClient, path: str, listener: ChildListener) -> tuple[str, ...] | None:
    if path != BROKER_IDS:
        return await _SUBSCRIBE(self, path, listener)
    self._add(self._data, path, listener)  # type: ignore[misc]
    await self.exists(path)
    return None


def false(seed: int) -> History:
    with patch.object(ZkClient, "subscribe_child_changes", subscribe_child_changes):
        return trial("walkthrough", seed)


COUNTERFEIT = Counterfeit(
    claim="Z6",
    check="startup_order",
    world="At the right place a member sets a watch on /brokers/ids, but with `exists`: ZooKeeper fires that "
    "watch when the znode itself comes, goes or changes, not when a broker does.",
    false=false,
    honest=lambda seed: trial("walkthrough", seed),
)
