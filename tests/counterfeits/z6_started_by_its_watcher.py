"""Z6: a member registers and watches; its watcher, not its start, runs the first rebalance."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from zkconsumer.rebalance import Rebalancer

_SYNCED = Rebalancer.synced


async def synced(self: Rebalancer, by: str) -> None:
    await _SYNCED(self, "watcher" if by == "create" else by)


def false(seed: int) -> History:
    with patch.object(Rebalancer, "synced", synced):
        return trial("walkthrough", seed)


COUNTERFEIT = Counterfeit(
    claim="Z6",
    check="startup_order",
    world="A member registers and sets its watches, and its watcher looks around at once: the first rebalance comes as "
    "soon as a forced one would, but the start does not force it.",
    false=false,
    honest=lambda seed: trial("walkthrough", seed),
)
