"""unequal_views: brokers that go on telling clients of a topic that has been deleted."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.metadata_cache import MetadataCache
from rebalance_lab.history.files import History
from rebalance_lab.wire.cluster import LEADER_DURING_DELETE
from rebalance_lab.wire.kafka.messages.update_metadata import UpdateMetadataPartitionState

_update = MetadataCache._update


def but_no_deletion(self: MetadataCache, topic: str, topic_id: bytes, state: UpdateMetadataPartitionState) -> None:
    if state.leader != LEADER_DURING_DELETE:
        _update(self, topic, topic_id, state)


def honest(seed: int) -> History:
    return trial("duties", seed, settings={"duty": "delete-topic", "kill_at": "0"})


def false(seed: int) -> History:
    with patch.object(MetadataCache, "_update", but_no_deletion):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="unequal_views",
    world="The topic is gone from ZooKeeper and from all disks, and every broker has answered each request; but they "
    "take a partition whose leader goes for one that waits for the next, and keep it.",
    false=false,
    honest=honest,
)
