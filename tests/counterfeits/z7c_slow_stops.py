"""Z7c: members as they are, whose fetchers take a tenth of a second to stop."""

from __future__ import annotations

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History


def herd(seed: int, stop_ms: str) -> History:
    return trial("herd", seed, rules="shipped", settings={"members": "8", "fetcher_stop_ms": stop_ms})


COUNTERFEIT = Counterfeit(
    claim="Z7c",
    check="conflict_cost",
    world="Fetchers take 100 ms to stop, as in a fetch that waits for data (fetch.wait.max.ms): members meet claims "
    "that are not released yet and try again. The group ends as it should, and costs more than the formula says.",
    false=lambda seed: herd(seed, "100"),
    honest=lambda seed: herd(seed, "0"),
)
