"""lost_registration: brokers whose registrations are not ephemeral."""

from contextlib import suppress
from unittest.mock import patch

from counterfeit import Counterfeit, trial

import rebalance_lab.broker.broker
from rebalance_lab.broker.registration import Endpoint
from rebalance_lab.history.files import History
from rebalance_lab.wire.cluster import registration_payload
from rebalance_lab.wire.paths import broker_path
from rebalance_lab.world.errors import NoNode
from rebalance_lab.world.ports import Create, Set, Stat
from rebalance_lab.zkclient.pipelined import PipelinedClient


async def to_stay(
    client: PipelinedClient, broker_id: int, endpoint: Endpoint, *, timestamp_ms: int, last_session: int | None
) -> int:
    del last_session
    path = broker_path(broker_id)
    payload = registration_payload(endpoint.host, endpoint.port, timestamp_ms=timestamp_ms, version=5, rack=None)
    with suppress(NoNode):
        await client.ask(lambda session: session.delete(path))
    stat = (await client.multi([Create(path, b""), Set(path, payload, 0)])).value[1]
    assert isinstance(stat, Stat)
    return stat.czxid


def honest(seed: int) -> History:
    return trial("all-replicas-down", seed, settings={})


def false(seed: int) -> History:
    with patch.object(rebalance_lab.broker.broker, "register", to_stay):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="lost_registration",
    world="Each broker creates its registration in the session that it has, and anew when it comes back. But the "
    "znode is not ephemeral: a broker that dies stays registered, and its partitions keep a leader that is dead.",
    false=false,
    honest=honest,
)
