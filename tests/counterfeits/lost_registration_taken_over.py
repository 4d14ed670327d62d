"""lost_registration: a broker whose registration another session has taken over."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.broker import Broker
from rebalance_lab.history.files import History
from rebalance_lab.wire.cluster import registration_payload
from rebalance_lab.wire.paths import broker_path
from rebalance_lab.world.network import Address
from rebalance_lab.world.ports import Create, Set
from rebalance_lab.zkclient.pipelined import PipelinedClient

_register = Broker._register


def honest(seed: int) -> History:
    return trial("controller-failover", seed, settings={"fault": "expire", "rounds": "1", "messages": "200"})


def false(seed: int) -> History:
    clients: dict[int, PipelinedClient] = {}

    async def and_be_taken_over(self: Broker, client: PipelinedClient, address: Address) -> None:
        again = self._last_session is not None
        await _register(self, client, address)
        number = self._settings.config.broker_id
        clients[number] = client
        if again:
            other = clients[min(each for each in clients if each != number)]
            path, now_ms = broker_path(number), self._environment.clock.wall_ms()
            payload = registration_payload(address.host, address.port, timestamp_ms=now_ms, version=5, rack=None)
            await other.ask(lambda session: session.delete(path))
            await other.multi([Create(path, b"", ephemeral=True), Set(path, payload, 0)])

    with patch.object(Broker, "_register", and_be_taken_over):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="lost_registration",
    world="When a broker has registered again, another one deletes its znode and creates it in a session of its own. "
    "The id is registered all the time, but by a session that says nothing of the broker.",
    false=false,
    honest=honest,
)
