"""unowned_window: members subscribe to nothing while they leave partitions alone."""

import json
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import member_path
from zkconsumer.claims import Claims, Plan

_TAKE = Claims.take


async def take(self: Claims, plan: Plan) -> list[TopicPartition]:
    client = self._client
    path = member_path(self._group, client._settings.member)
    node = await client.read(path)
    nothing = json.dumps({**json.loads(node.data), "subscription": {}}).encode()
    await client._retry(lambda zookeeper: zookeeper.set(path, nothing))
    await client._tasks.sleep(10_000_000)
    await client._retry(lambda zookeeper: zookeeper.set(path, node.data))
    return await _TAKE(self, plan)


def false(seed: int) -> History:
    with patch.object(Claims, "take", take):
        return trial("leave", seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="unowned_window",
    world="Members wait ten seconds between release and claim. For that time they set their registration to one "
    "without topics, as if nobody wanted the partitions.",
    false=false,
    honest=lambda seed: trial("leave", seed),
)
