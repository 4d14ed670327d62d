"""E2: when a controller has gone, a loser of the next election takes the winner's /controller for its own."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial
from e1_taken_for_its_own import its_own

import controller.election
from rebalance_lab.history.files import History


def honest(seed: int) -> History:
    return trial("controller-failover", seed, settings={"brokers": "5"})


def false(seed: int) -> History:
    with patch.object(controller.election, "_read_back", its_own):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E2",
    check="two_controllers",
    world="Every broker is told, competes and watches again; but a loser that finds the epoch that it has asked for "
    "believes that it has won, so that two brokers give orders with one epoch.",
    false=false,
    honest=honest,
)
