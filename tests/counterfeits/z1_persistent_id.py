"""A member whose id is persistent."""

from __future__ import annotations

from counterfeit import Counterfeit, trial
from counterfeit_servers import crash

from rebalance_lab.history.files import History


def _persistent(seed: int) -> History:
    return trial("crash", seed, plant="persistent-registration")


COUNTERFEIT = Counterfeit(
    claim="Z1",
    check="registration",
    world="Members register with a persistent znode: it outlives them, and their owner znodes go as they should.",
    false=_persistent,
    honest=crash,
)
