"""Members report the view that they dealt from: the one that they had read, by the registry."""

from __future__ import annotations

import pytest

from rebalance_lab.checks.reads import read_list
from rebalance_lab.history.events import Kind
from rebalance_lab.history.views import events_of
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.simulated import simulate


@pytest.mark.parametrize("name", ["growth", "split-brain", "unequal-topics"])
def test_a_reported_view_is_the_one_that_was_read(name: str) -> None:
    history, _ = simulate(make_plan(name))
    decisions = events_of(history, Kind.DECIDED)
    assert decisions
    for decided in decisions:
        zxid = decided.of("members_zxid")
        assert isinstance(zxid, int)
        read = read_list(history, decided.group or "", decided, zxid)
        assert read is not None
        assert (read.members, read.digest) == (decided.of("members"), decided.of("view"))
