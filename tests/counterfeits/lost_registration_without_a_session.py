"""lost_registration: a broker that hears that its session has expired, and serves on for 20 s without another one."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.broker import Broker
from rebalance_lab.history.files import History
from rebalance_lab.kernel import Flag
from rebalance_lab.world.errors import SessionExpired
from rebalance_lab.world.network import Address
from rebalance_lab.zkclient.pipelined import PipelinedClient

_serve = Broker._serve
WAITS_US = 20_000_000


async def and_wait(self: Broker, client: PipelinedClient, address: Address, closing: Flag) -> None:
    try:
        await _serve(self, client, address, closing)
    except SessionExpired:
        await self._environment.tasks.sleep(WAITS_US)
        raise


def honest(seed: int) -> History:
    return trial("controller-failover", seed, settings={"fault": "expire", "rounds": "1", "messages": "1000"})


def false(seed: int) -> History:
    with patch.object(Broker, "_serve", and_wait):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="lost_registration",
    world="A broker whose session has expired opens another one only after 20 s, and registers in it at once. It has "
    "never been in a session without a registration; but until then it has none.",
    false=false,
    honest=honest,
)
