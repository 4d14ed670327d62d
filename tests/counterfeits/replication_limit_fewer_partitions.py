"""replication_limit: brokers that place one partition fewer than a client has asked for."""

from collections.abc import Mapping, Sequence
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.placement import Assignment, Start, place
from rebalance_lab.broker import new_topics
from rebalance_lab.history.files import History


def fewer(
    brokers: Sequence[int], partitions: int, replication: int, start: Start, racks: Mapping[int, str] | None = None
) -> Assignment:
    return place(brokers, max(partitions - 1, 1), replication, start, racks)


def honest(seed: int) -> History:
    return trial("placement", seed, settings={})


def false(seed: int) -> History:
    with patch.object(new_topics, "place", fewer):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="replication_limit",
    world="Topics with too many replicas are refused, and the others are created, with their replicas where Kafka puts "
    "them; but each has one partition fewer than was asked for.",
    false=false,
    honest=honest,
)
