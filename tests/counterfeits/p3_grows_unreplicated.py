"""P3: partitions that are added have one replica each, and all are on one broker."""

from collections.abc import Mapping
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker import new_topics
from rebalance_lab.history.files import History

_new = new_topics._new_partitions


def lone(*asked: object) -> Mapping[int, tuple[int, ...]]:
    return dict.fromkeys(_new(*asked), (1,))  # type: ignore[arg-type]


def honest(seed: int) -> History:
    return trial("grow-only", seed, settings={})


def false(seed: int) -> History:
    with patch.object(new_topics, "_new_partitions", lone):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="P3",
    check="grow_only",
    world="The topic grows, keys move as they should and nothing is lost; but each new partition has one replica "
    "instead of three, and all of them are on broker 1.",
    false=false,
    honest=honest,
)
