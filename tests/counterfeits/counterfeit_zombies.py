"""Zombies of scenario `zombie` whose fetchers are fenced: they do nothing after the pause but stop."""

from __future__ import annotations

from unittest.mock import patch

from counterfeit import trial

from rebalance_lab.history.files import History
from zkconsumer.fetchers import Fetchers

_STANDSTILL_US = 1_000_000


async def _fenced(fetchers: Fetchers) -> None:
    """A fetcher looks at the clock before each fetch, and ends by itself after a standstill."""
    await fetchers._finder.find([each.partition for each in fetchers._shares])
    fetchers._working = True
    at_us = fetchers._tasks.now_us()
    while fetchers._tasks.now_us() - at_us < _STANDSTILL_US:
        at_us = fetchers._tasks.now_us()
        fetchers._fetch()
        await fetchers._tasks.sleep(fetchers._period_us)
    fetchers._working = False


async def _stuck(fetchers: Fetchers) -> None:
    """The same, but what the fetcher was asked to stop it reports once more."""
    await _fenced(fetchers)
    fetchers._working = True


async def _fenced_and_late(fetchers: Fetchers) -> None:
    """The same, but after the standstill they write down twice what they did before it."""
    await _fenced(fetchers)
    for _ in range(2):
        fetchers._working = True
        fetchers._fetch()
        fetchers._working = False
        await fetchers._tasks.sleep(1000)


def fenced(seed: int) -> History:
    """They wake, see that they stood still too long, and work no more."""
    with patch.object(Fetchers, "_work", _fenced):
        return trial("zombie", seed)


def stuck(seed: int) -> History:
    """They wake and fetch no more; the only report is that of their stop."""
    with patch.object(Fetchers, "_work", _stuck):
        return trial("zombie", seed)


def late(seed: int) -> History:
    """They wake and fetch no more; two reports for each partition, 1 ms apart, are late."""
    with patch.object(Fetchers, "_work", _fenced_and_late):
        return trial("zombie", seed)


def zombie(seed: int) -> History:
    """Members as they are."""
    return trial("zombie", seed)
