"""A leader that syncs each record commits none before it has appended it."""

from __future__ import annotations

import pytest

from rebalance_lab.checks.log_ends import LogEnds, end_in
from rebalance_lab.checks.partition_states import place_of
from rebalance_lab.history.replicas import COMMITTED, high_watermark_in
from rebalance_lab.history.views import events_of
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate


@pytest.mark.parametrize("seed", [1, 2, 1000])
def test_the_high_watermark_waits_for_the_leaders_own_sync(seed: int) -> None:
    """Its followers may have the record, and have synced it, before the leader has. With seed 1000 one had."""
    history, _ = simulate(make_plan("committed-data", seed=seed, settings={"flush_messages": "1"}))
    ends, compared = LogEnds(), 0
    for event in events_of(history, *LogEnds.KINDS, COMMITTED):
        ends.take(event)
        if event.kind is COMMITTED and (end := ends.of(event.actor, place_of(event))) is not None:
            assert high_watermark_in(event) <= end_in(end), event
            compared += 1
    assert compared > 100
