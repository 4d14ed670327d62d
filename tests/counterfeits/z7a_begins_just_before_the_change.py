"""Z7a: a member misses a change, and happens to begin a rebalance less than 2 ms before it."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from zkconsumer.connector import Connector
from zkconsumer.watcher import Watcher

_REGISTER = Connector._register
_TRIGGER = Watcher._trigger
_MEMBERS = 4


def _herd(seed: int, *, misses: bool) -> History:
    """The first member begins a rebalance of its own accord when the first joiner sends its registration."""
    connectors: list[Connector] = []
    deaf: list[Watcher] = []

    async def register(self: Connector) -> None:
        connectors.append(self)
        if len(connectors) == _MEMBERS + 1:
            watcher = connectors[0]._watcher
            deaf.extend([watcher] if misses else [])
            self._tasks.stimulated(None, watcher._flag.raise_)
        await _REGISTER(self)

    def trigger(self: Watcher, path: str) -> None:
        if self in deaf:
            deaf.remove(self)
            return
        _TRIGGER(self, path)

    with patch.object(Connector, "_register", register), patch.object(Watcher, "_trigger", trigger):
        return trial("herd", seed, settings={"members": str(_MEMBERS)})


COUNTERFEIT = Counterfeit(
    claim="Z7a",
    check="missed_watch",
    world="A member ignores the notification of a join. By chance it began a rebalance of its own accord less than "
    "2 ms before, which is closer than the clocks of registry and member can tell; so it looks prompt, and reads the "
    "new list of members too.",
    false=lambda seed: _herd(seed, misses=True),
    honest=lambda seed: _herd(seed, misses=False),
)
