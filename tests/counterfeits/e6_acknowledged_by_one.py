"""E6: a leader that counts its followers, and does not wait for them."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.broker.replication.fetcher import ReplicaFetcher
from rebalance_lab.history.files import History

KILLS = {"fault": "kill", "rounds": "8", "victims": "2", "pause_us": "30000", "messages": "1000"}

#: Followers fetch so rarely, and still often enough to stay in sync. The high watermark is honest: if it were always
#: the leader's end, a follower that has fallen behind could not join again.
PAUSE_US = 1_800_000

_fetch = ReplicaFetcher._fetch


async def fetch_rarely(self: ReplicaFetcher, *arguments: object) -> None:
    await self._tasks.sleep(PAUSE_US)
    await _fetch(self, *arguments)  # type: ignore[arg-type]


def honest(seed: int) -> History:
    return trial("committed-data", seed, settings=KILLS)


def false(seed: int) -> History:
    with patch.object(ReplicaFetcher, "_fetch", fetch_rarely):
        return trial("committed-data", seed, settings=KILLS, plant="acks-before-replication")


COUNTERFEIT = Counterfeit(
    claim="E6",
    check="lost_write",
    world="Three replicas are in sync, and the leader acknowledges what it has written; its followers fetch every "
    "two seconds. As long as no leader dies, every record is soon in every log.",
    false=false,
    honest=honest,
)
