"""The frozen ISR: how long it lasts, whoever writes ISRs, and what cures it."""

from __future__ import annotations

import pytest
from as_expected import played

from rebalance_lab.checks import Finding, Outcome, judge
from rebalance_lab.history.files import History
from rebalance_lab.trials.plan import PlanError
from rebalance_lab.trials.scenario import make_plan

WRITERS = ("controller", "leader")

#: The leader drops a follower after 1 to 1.5 s, and reports it 5 to 7.5 s later: the cut must last longer.
BOTH_CUT = {"follower": "cut-off", "lag_ms": "1000", "cut_ms": "12000"}


def run(seed: int = 1, *, control: bool = False, also: dict[str, str] | None = None, **settings: str) -> History:
    """Every check comes out as expected."""
    history, _ = played(make_plan("frozen-isr", seed=seed, control=control, settings={**settings, **(also or {})}))
    return history


def frozen(history: History) -> Finding:
    return judge(history)["frozen_isr"]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("seed", range(1, 4))
def test_nobody_can_tell_the_leader(writer: str, seed: int) -> None:
    """From the follower's death until the cut ends: no write is committed."""
    finding = frozen(run(seed, isr_writer=writer))
    assert finding.outcome is Outcome.VIOLATED
    assert finding.measures["longest_us"] > 6_000_000
    assert finding.measures["stalled_us"] > finding.measures["longest_us"]


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("seed", range(1, 4))
def test_another_controller_tells_it(writer: str, seed: int) -> None:
    measures = frozen(run(seed, isr_writer=writer, move="true")).measures
    assert 2_000_000 < measures["longest_us"] < 3_000_000


def test_without_the_cut_it_is_told_at_once() -> None:
    assert frozen(run(cut="false")).measures["longest_us"] < 100_000


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_leader_that_writes_needs_no_controller_for_a_follower_that_lags(seed: int) -> None:
    """Asked for, the change waits for the controller (KIP-497); the leader itself can write it."""
    stalled_us = {
        writer: frozen(run(seed, isr_writer=writer, also=BOTH_CUT)).measures["stalled_us"] for writer in WRITERS
    }
    assert stalled_us["leader"] < 2_000_000
    assert stalled_us["controller"] > 10_000_000


def test_the_control() -> None:
    measures = frozen(run(control=True)).measures
    assert (measures["count"], measures["longest_us"]) == (0, 0)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"brokers": "2"}, "brokers=2: must be at least 3"),
        ({"min_isr": "2"}, "min_isr=2: must be 1"),
        ({"lag_ms": "3000"}, "lag_ms=3000: must be above 3000"),
        ({"cut_ms": "7500"}, "cut_ms=7500: must be above 7500"),
        ({"follower": "cut-off", "move": "true"}, "follower=cut-off: needs move=false and cut=true"),
        ({"follower": "cut-off", "isr_writer": "leader"}, "cut_ms=9000: must be above 13500"),
    ],
)
def test_settings_with_which_nothing_would_freeze(settings: dict[str, str], why: str) -> None:
    with pytest.raises(PlanError, match=why):
        make_plan("frozen-isr", settings=settings)
