"""Z7a: members hear every change but the last."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.checks.missed_watch import member_changes
from rebalance_lab.history.files import History
from zkconsumer.watcher import Watcher

_TRIGGER = Watcher._trigger


def honest(seed: int) -> History:
    return trial("walkthrough", seed)


def false(seed: int) -> History:
    deaf_from_us = member_changes(honest(seed))[-1].at_us - 500

    def trigger(self: Watcher, path: str) -> None:
        if self._tasks.now_us() < deaf_from_us:
            _TRIGGER(self, path)

    with patch.object(Watcher, "_trigger", trigger):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="Z7a",
    check="missed_watch",
    world="Half a millisecond before the last change all members stop to react to watches. The group rests at once, "
    "and is closed in the same microsecond.",
    false=false,
    honest=honest,
)
