"""P1: a broker that refuses a topic after it has written the topic's settings."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker import new_topics
from rebalance_lab.broker.calls import Parts
from rebalance_lab.broker.new_topics import NewTopic, Replicas
from rebalance_lab.broker.refused import Refused
from rebalance_lab.history.files import History

_created = new_topics._created


async def settings_first(parts: Parts, topic: NewTopic, *, validate_only: bool) -> Replicas:
    try:
        return await _created(parts, topic, validate_only=validate_only)
    except Refused:
        await parts.topics.write_configuration(topic.name, {}, notify=False)
        raise


def honest(seed: int) -> History:
    return trial("placement", seed)


def false(seed: int) -> History:
    with patch.object(new_topics, "_created", settings_first):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="P1",
    check="replication_limit",
    world="The controller answers that there are too few brokers, and no such topic exists, but its settings are in "
    "ZooKeeper, where the next topic of that name would find them.",
    false=false,
    honest=honest,
)
