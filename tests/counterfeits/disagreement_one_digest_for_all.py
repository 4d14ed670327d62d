"""disagreement: members that dealt from different lists report one and the same view."""

from counterfeit import Counterfeit, trial
from counterfeit_forging import decisions

from rebalance_lab.history.files import History


def false(seed: int) -> History:
    return decisions(trial("split-brain", seed), lambda _: {"view": "0" * 16, "members": 2})


COUNTERFEIT = Counterfeit(
    claim=None,
    check="disagreement",
    world="A split brain, in which every decision reports the same digest of what its member saw, and as many members.",
    false=false,
    honest=lambda seed: trial("split-brain", seed, control=True),
)
