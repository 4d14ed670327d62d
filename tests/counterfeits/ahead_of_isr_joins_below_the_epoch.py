"""ahead_of_isr: a leader that lets a follower join that lacks what the leader before has committed."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import PropertyMock, patch

from counterfeit import Counterfeit, trial
from msgspec.structs import replace

from rebalance_lab.broker import partition
from rebalance_lab.broker.replication.fetcher import Following, ReplicaFetcher
from rebalance_lab.broker.replication.leadership import followers_high_watermark
from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.history.files import History
from rebalance_lab.scenarios import committed_data
from rebalance_lab.wire.kafka.messages.fetch import FetchRequest

#: A follower is dropped before the leader dies, so that it lacks what is committed meanwhile.
APART = {"fault": "kill", "victims": "2", "lag_ms": "200", "rounds": "6", "messages": "900"}
WITHIN_US = 1_500_000

#: In these the follower comes back when another leads.
SEEDS = (5, 8, 12)

#: A follower learns of so many commits at once, and fetches so much.
TOLD_OF, FETCHED_BYTES = 100, 300

_fetch_request = ReplicaFetcher._fetch_request


def fetch_request(self: ReplicaFetcher, offsets: dict[Following, int]) -> FetchRequest:
    return replace(_fetch_request(self, offsets), max_bytes=FETCHED_BYTES)


def told_late(leaders: int, start_offset: int, end_offset: int) -> int:
    return followers_high_watermark(leaders - leaders % TOLD_OF, start_offset, end_offset)


@contextmanager
def _learning_late() -> Iterator[None]:
    late = patch.object(partition, "followers_high_watermark", told_late)
    slow = patch.object(ReplicaFetcher, "_fetch_request", fetch_request)
    with late, slow, patch.object(committed_data, "FAULT_WITHIN_US", WITHIN_US):
        yield


def honest(seed: int) -> History:
    with _learning_late():
        return trial("committed-data", SEEDS[seed], settings=APART)


def false(seed: int) -> History:
    with patch.object(ReplicationRules, "joins_from_epoch_start", PropertyMock(return_value=False)):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="ahead_of_isr",
    world="A follower that comes back joins the ISR once it has passed the high watermark. A leader that has just been "
    "elected learns late what is committed, so its own is lower. The follower has all that this leader has committed, "
    "and gets the rest a moment later; but until then it may be elected without it (KAFKA-7128).",
    false=false,
    honest=honest,
)
