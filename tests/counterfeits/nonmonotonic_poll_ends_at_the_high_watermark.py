"""nonmonotonic_poll: a leader that tells clients of no leader epoch that it ends above the high watermark."""

from unittest.mock import patch

import msgspec
from counterfeit import Counterfeit
from counterfeit_followers import kills_beside_slow_followers

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.apis import offset_for_leader_epoch
from rebalance_lab.broker.calls import Parts
from rebalance_lab.history.files import History
from rebalance_lab.wire.kafka.messages.offset_for_leader_epoch import EpochEndOffset, OffsetForLeaderPartition

_answer = offset_for_leader_epoch._answer


def answer(parts: Parts, partition: TopicPartition, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    found = _answer(parts, partition, asked)
    if found.error_code:
        return found
    high_watermark = parts.replicas.all[partition].log.high_watermark
    return msgspec.structs.replace(found, end_offset=min(found.end_offset, high_watermark))


def false(seed: int) -> History:
    with patch.object(offset_for_leader_epoch, "_answer", answer):
        return kills_beside_slow_followers(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="nonmonotonic_poll",
    world="A reader asks each new leader where its last leader epoch ended, and goes back to there. The leader names "
    "no offset that is not committed, as clients may read nothing else; but a new leader learns late what is, so that "
    "the reader goes back to a record that it has read and that everybody has.",
    false=false,
    honest=kills_beside_slow_followers,
)
