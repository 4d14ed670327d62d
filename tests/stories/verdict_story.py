"""A verdict of the ledger for tests of what is made of verdicts: claim Z10, shown by live and simulated trials."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rebalance_lab.analysis.ledger import Expected, Judgement, Quantifier, Status
from rebalance_lab.analysis.results import Frequency, Verdict

_REPRODUCED = Verdict(
    claim="Z10",
    reading="all",
    statement="A paused member works on",
    quantifier=Quantifier.EXISTS,
    expected=Expected.REPRODUCED,
    verdict=Judgement.REPRODUCED,
    status=Status.AS_EXPECTED,
    live=1,
    simulated=200,
    witness=None,
    replay=None,
    why="201 of 201 trials show it",
    frequencies=(Frequency("live", 1, 1, 0.2065, 1.0, 0), Frequency("simulated", 180, 200, 0.8506, 0.9342, 3)),
)


def reproduced(**changes: Any) -> Verdict:
    """It, with other values of some fields."""
    return replace(_REPRODUCED, **changes)
