"""Histories of which it cannot be told what happened: every check that finds nothing says unknown."""

from __future__ import annotations

import msgspec
import pytest
from counterfeit import trial
from counterfeit_forging import without

from rebalance_lab.checks import Outcome, judge
from rebalance_lab.checks.faults import unknown_causes
from rebalance_lab.history.files import History


def as_control(seed: int) -> History:
    """A crash that calls itself a control."""
    history = trial("crash", seed)
    return History(msgspec.structs.replace(history.trial, control=True), history.events)


def registry_cut_short(seed: int) -> History:
    """The log of an epoch of the registry has lost its end. The next transaction is the first of the new epoch,
    so there is no gap."""
    history = trial("servers", seed)
    epochs: dict[int, list[tuple[str, int]]] = {}
    for event in history.events:
        if event.actor == "zookeeper":
            epochs.setdefault((event.zxid or 0) >> 32, []).append(event.id)
    assert len(epochs) == 2
    lost = epochs[min(epochs)][-6:]
    return without(history, lambda event: event.id in lost)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("forged", [as_control, registry_cut_short])
def test_nothing_is_clean(forged: object, seed: int) -> None:
    history = forged(seed)  # type: ignore[operator]
    assert unknown_causes(history) != []
    assert [name for name, found in judge(history).items() if found.outcome is Outcome.CLEAN] == []


@pytest.mark.parametrize("scenario", ["crash", "servers"])
def test_an_honest_history_has_no_cause_of_doubt(scenario: str) -> None:
    assert unknown_causes(trial(scenario, 1)) == []
