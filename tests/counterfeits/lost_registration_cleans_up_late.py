"""lost_registration: a broker that cleans up after its former session when it has registered in the next one."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

import rebalance_lab.broker.broker
from rebalance_lab.broker.registration import Endpoint, register
from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import broker_path
from rebalance_lab.zkclient.pipelined import PipelinedClient


async def and_clean_up(
    client: PipelinedClient, broker_id: int, endpoint: Endpoint, *, timestamp_ms: int, last_session: int | None
) -> int:
    epoch = await register(client, broker_id, endpoint, timestamp_ms=timestamp_ms, last_session=last_session)
    if last_session is not None:
        await client.ask(lambda session: session.delete(broker_path(broker_id)))
    return epoch


def honest(seed: int) -> History:
    return trial("controller-failover", seed, settings={"fault": "expire", "rounds": "1"})


def false(seed: int) -> History:
    with patch.object(rebalance_lab.broker.broker, "register", and_clean_up):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="lost_registration",
    world="A broker whose session has expired registers in the next one, and reports the epoch that ZooKeeper gave it. "
    "Then it deletes the znode that its former session may have left, and it is the new one.",
    false=false,
    honest=honest,
)
