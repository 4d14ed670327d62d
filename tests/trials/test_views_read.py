"""Members report the view that they dealt from: the one that they had read, by the registry."""

from __future__ import annotations

import pytest

from rebalance_lab.checks.decisions import view_read
from rebalance_lab.checks.members import member_lives
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate


@pytest.mark.parametrize("name", ["growth", "split-brain", "unequal-topics"])
def test_a_reported_view_is_the_one_that_was_read(name: str) -> None:
    history, _ = simulate(make_plan(name))
    attempts = [(life, each) for life in member_lives(history) for one in life.rebalances for each in one.attempts]
    decisions = [(life, each.began, each.decided) for life, each in attempts if each.decided is not None]
    assert decisions
    for life, began, decided in decisions:
        read = view_read(history, life.group, began, decided)
        assert read is not None
        assert read.is_reported(decided)
        assert read.members == decided.of("members")
