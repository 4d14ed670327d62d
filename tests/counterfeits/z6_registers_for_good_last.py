"""Z6: a member registers, takes that back, and registers for good only when its watches are set."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import member_path
from zkconsumer.connector import Connector
from zkconsumer.rebalance import Rebalancer

_REGISTER, _SYNCED = Connector._register, Rebalancer.synced


def false(seed: int) -> History:
    connectors: dict[Rebalancer, Connector] = {}

    async def register(self: Connector) -> None:
        await _REGISTER(self)
        connectors[self._rebalancer] = self
        settings = self._settings
        await self._client.delete(member_path(settings.config.group_id, settings.consumer_id))

    async def synced(self: Rebalancer, by: str) -> None:
        if by == "create":
            await _REGISTER(connectors[self])
        await _SYNCED(self, by)

    with patch.object(Connector, "_register", register), patch.object(Rebalancer, "synced", synced):
        return trial("walkthrough", seed)


COUNTERFEIT = Counterfeit(
    claim="Z6",
    check="startup_order",
    world="A member creates its id and deletes it at once. It sets its watches, and registers for good after them.",
    false=false,
    honest=lambda seed: trial("walkthrough", seed),
)
