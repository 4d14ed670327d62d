"""P2: a broker that has not heard of it that two brokers have changed their racks."""

from collections.abc import Mapping, Sequence
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.placement import Assignment, Start, place
from rebalance_lab.broker import new_topics
from rebalance_lab.history.files import History

SETTINGS = {"racks": "3", "brokers": "6"}


def by_old_racks(
    brokers: Sequence[int], partitions: int, replication: int, start: Start, racks: Mapping[int, str] | None = None
) -> Assignment:
    """As `place`, with the racks of brokers 1 and 2 taken for each other's."""
    old = {**racks, 1: racks[2], 2: racks[1]} if racks else racks
    return place(brokers, partitions, replication, start, old)


def honest(seed: int) -> History:
    return trial("placement", seed, settings=SETTINGS)


def false(seed: int) -> History:
    with patch.object(new_topics, "place", by_old_racks):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="P2",
    check="rack_spread",
    world="Brokers place by racks as Kafka does, but by those from before two brokers changed places: most partitions "
    "have a replica in each rack, and the leaders are even.",
    false=false,
    honest=honest,
)
