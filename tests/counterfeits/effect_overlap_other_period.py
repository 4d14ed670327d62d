"""effect_overlap: a trial that gives a shorter period of work than its members had."""

from __future__ import annotations

import msgspec
from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History


def false(seed: int) -> History:
    history = trial("zombie", seed)
    parameters = {**history.trial.parameters, "work_period_ms": 1}
    return History(msgspec.structs.replace(history.trial, parameters=parameters), history.events)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="effect_overlap",
    world="The trial's parameter says that members report work each millisecond; they report it each 50 ms. Taken for "
    "runs of their own, no two reports fall on one instant. A zombie works for a second beside its successor.",
    false=false,
    honest=lambda seed: trial("zombie", seed, control=True),
)
