"""lost_registration: a broker that registers again, and goes on with the broker epoch of its former session."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

import rebalance_lab.broker.broker
from rebalance_lab.broker.registration import Endpoint, register
from rebalance_lab.history.files import History
from rebalance_lab.zkclient.pipelined import PipelinedClient


def honest(seed: int) -> History:
    return trial("controller-failover", seed, settings={"fault": "expire", "rounds": "1"})


def false(seed: int) -> History:
    first: dict[int, int] = {}

    async def with_the_first_epoch(
        client: PipelinedClient, broker_id: int, endpoint: Endpoint, *, timestamp_ms: int, last_session: int | None
    ) -> int:
        epoch = await register(client, broker_id, endpoint, timestamp_ms=timestamp_ms, last_session=last_session)
        return first.setdefault(broker_id, epoch)

    with patch.object(rebalance_lab.broker.broker, "register", with_the_first_epoch):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="lost_registration",
    world="A broker whose session has expired registers in the next one, and stands in ZooKeeper as it should. But it "
    "takes the registration of its former session for the one that it has, and speaks with that one's epoch.",
    false=false,
    honest=honest,
)
