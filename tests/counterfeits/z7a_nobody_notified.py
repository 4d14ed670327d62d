"""Z7a: members rebalance without having been notified, in a live history."""

from counterfeit import Counterfeit, trial
from counterfeit_forging import live, without

from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History


def herd(seed: int) -> History:
    return live(trial("herd", seed, settings={"members": "4"}))


COUNTERFEIT = Counterfeit(
    claim="Z7a",
    check="herd_cost",
    world="Every member rebalances after every change, live, but no watch fires: the members poll the list of ids. The "
    "count of notifications is zero, which is below what the formula allows.",
    false=lambda seed: without(herd(seed), lambda event: event.kind is Kind.WATCH_FIRED),
    honest=herd,
)
