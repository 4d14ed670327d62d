"""isr-per-partition: two partitions with the same replicas, and what becomes of their ISRs (E5c)."""

from __future__ import annotations

import pytest

from rebalance_lab.checks import Finding, Outcome, judge
from rebalance_lab.checks.partition_states import partition_states
from rebalance_lab.trials.plan import PlanError
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate


def play(seed: int = 1, *, control: bool = False, **settings: str) -> tuple[dict[str, Finding], dict[int, set[int]]]:
    """What the checks find, and the sizes that the ISR of each partition had."""
    history, _ = simulate(make_plan("isr-per-partition", seed=seed, control=control, settings=settings))
    sizes = {place[1]: {len(each.isr) for _, each in states} for place, states in partition_states(history).items()}
    return judge(history), sizes


@pytest.mark.parametrize("seed", [1, 2])
def test_a_follower_that_is_cut_off_from_one_leader_leaves_one_isr(seed: int) -> None:
    found, sizes = play(seed)
    assert found["isr_of_topic"].outcome is Outcome.VIOLATED
    assert sizes == {0: {2, 3}, 1: {3}}


@pytest.mark.parametrize("seed", [1, 2])
def test_a_broker_that_dies_leaves_both(seed: int) -> None:
    found, sizes = play(seed, trouble="dies")
    assert found["isr_of_topic"].outcome is Outcome.CLEAN
    assert sizes == {0: {2, 3}, 1: {2, 3}}


def test_the_control_decides_nothing() -> None:
    found, sizes = play(control=True)
    assert "isr_of_topic" not in found
    assert sizes == {0: {3}, 1: {3}}
    assert {each.outcome for each in found.values()} == {Outcome.CLEAN}


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"brokers": "3"}, "brokers=3: must be 4"),
        ({"min_isr": "3"}, "min_isr=3: must be less than the 3 replicas"),
        ({"away_ms": "4000"}, "away_ms=4000: must be above 4000"),
    ],
)
def test_settings_with_which_nothing_would_happen(settings: dict[str, str], why: str) -> None:
    with pytest.raises(PlanError, match=why):
        make_plan("isr-per-partition", settings=settings)
