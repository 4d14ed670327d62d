"""Z7b: members rebalance when a broker comes, not when one goes."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import BROKER_IDS
from zkconsumer.watcher import Watcher

_HANDLE = Watcher.handle_child_change


def false(seed: int) -> History:
    known: dict[Watcher, int] = {}

    async def handle_child_change(self: Watcher, path: str, children: tuple[str, ...] | None) -> None:
        if path == BROKER_IDS:
            before, known[self] = known.get(self, 0), len(children or ())
            if known[self] < before:
                return
        await _HANDLE(self, path, children)

    with patch.object(Watcher, "handle_child_change", handle_child_change):
        return trial("herd", seed, settings={"members": "3"})


COUNTERFEIT = Counterfeit(
    claim="Z7b",
    check="broker_change_noticed",
    world="Every member is told of every change of the brokers and rebalances when one comes; of one that "
    "goes it takes no notice, as its fetchers would find new leaders anyway.",
    false=false,
    honest=lambda seed: trial("herd", seed, settings={"members": "3"}),
)
