"""Z6: a member watches all that it should, but the brokers only after its first rebalance."""

from dataclasses import replace
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import BROKER_IDS
from zkconsumer.rebalance import Rebalancer
from zkconsumer.rules import DESCRIBED, RULE_SETS

_SYNCED = Rebalancer.synced


async def synced(self: Rebalancer, by: str) -> None:
    await _SYNCED(self, by)
    if by == "create":
        await self._client.subscribe_child_changes(BROKER_IDS, self._on_brokers)


def false(seed: int) -> History:
    late = replace(DESCRIBED, watches_brokers=False)
    with patch.dict(RULE_SETS, described=late), patch.object(Rebalancer, "synced", synced):
        return trial("walkthrough", seed)


COUNTERFEIT = Counterfeit(
    claim="Z6",
    check="startup_order",
    world="Members watch the ids and the brokers, and miss no change at rest; but they begin to watch the "
    "brokers only when their first rebalance is over.",
    false=false,
    honest=lambda seed: trial("walkthrough", seed),
)
