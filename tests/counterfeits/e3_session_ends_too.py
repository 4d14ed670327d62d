"""E3: a zombie whose session has ended as well, so that ZooKeeper refuses what it asks for."""

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History

SETTINGS = {"moment": "deletion", "form": "1.1"}

#: Shorter than the pause.
SHORT = {"session_timeout_ms": "100", "tick_ms": "20"}


def honest(seed: int) -> History:
    return trial("zombie-controller", seed, settings=SETTINGS)


def false(seed: int) -> History:
    return trial("zombie-controller", seed, settings=SETTINGS | SHORT)


COUNTERFEIT = Counterfeit(
    claim="E3",
    check="stale_controller",
    world="The controller is paused in the middle of a deletion, another is elected, and its writes have no condition; "
    "but the pause outlasts its session, so ZooKeeper refuses the write at which it was paused.",
    false=false,
    honest=honest,
)
