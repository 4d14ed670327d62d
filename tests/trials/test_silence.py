"""What plans promise of pauses and cuts: the bounds of `faults.silence`, and that trials keep to them."""

from __future__ import annotations

import pytest

from rebalance_lab.checks import judge
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults import silence
from rebalance_lab.trials.scenario import make_plan, scenario
from rebalance_lab.trials.stages.simulated.stage import simulate

CLEAN, VIOLATED, EITHER = Outcome.CLEAN, Outcome.VIOLATED, None

#: scenario, settings -> what it promises of effect_overlap. Sessions of 2 s, ticks of 500 ms, a
#: takeover of at most 1,050 ms (two attempts, 500 ms of back-off each, and a period of work).
PROMISES = [
    ("zombie", {"pause_ms": "666"}, CLEAN),
    ("zombie", {"pause_ms": "667"}, EITHER),
    ("zombie", {"pause_ms": "2550"}, EITHER),  # + 1,000 = 2,000 + 500 + 1,050
    ("zombie", {"pause_ms": "2551"}, VIOLATED),
    ("zombie", {"pause_ms": "3801", "servers": "3"}, EITHER),  # it may connect, and stop, at once
    ("zombie", {"pause_ms": "5000", "work_period_ms": "1001"}, EITHER),
    ("zombie", {"pause_ms": "5000"}, VIOLATED),
    ("zombie", {"pause_ms": "5000", "fetcher_stop_ms": "2000"}, EITHER),
    ("zombie", {"pause_ms": "5000", "members": "1"}, CLEAN),
    ("cut", {"cut_ms": "233"}, CLEAN),
    ("cut", {"cut_ms": "234"}, EITHER),
    ("cut", {"cut_ms": "3550"}, EITHER),
    ("cut", {"cut_ms": "3551"}, VIOLATED),
    ("cut", {"cut_ms": "3551", "way": "to_server"}, VIOLATED),
    ("cut", {"cut_ms": "4883", "way": "to_client"}, EITHER),  # the server hears pings for 1,333 ms
    ("cut", {"cut_ms": "4884", "way": "to_client"}, VIOLATED),
]


@pytest.mark.parametrize(("name", "settings", "promised"), PROMISES)
def test_what_is_promised_and_kept(name: str, settings: dict[str, str], promised: Outcome | None) -> None:
    plan = make_plan(name, settings=settings)
    assert scenario(name).expects(plan)["effect_overlap"] is promised
    if promised is not EITHER:
        for seed in range(8):
            history, _ = simulate(make_plan(name, seed=seed, settings=settings))
            assert judge(history)["effect_overlap"].outcome is promised, seed


@pytest.mark.parametrize(
    ("settings", "promised"),
    [
        ({"pause_ms": "2500"}, EITHER),  # + 1,000 = 2,000 + 500 + 1,000
        ({"pause_ms": "2501"}, VIOLATED),
        ({"pause_ms": "3750", "servers": "3"}, EITHER),  # = 2,000 + 500 + 250 + 1,000
        ({"pause_ms": "3751", "servers": "3"}, VIOLATED),
    ],
)
def test_belief_is_promised_without_a_report_of_work(settings: dict[str, str], promised: Outcome | None) -> None:
    plan = make_plan("zombie", settings=settings)
    assert scenario("zombie").expects(plan)["belief_overlap"] is promised
    if promised is not EITHER:
        for seed in range(8):
            history, _ = simulate(make_plan("zombie", seed=seed, settings=settings))
            assert judge(history)["belief_overlap"].outcome is promised, seed


@pytest.mark.parametrize(
    ("name", "setting", "length_ms"),
    [("zombie", "pause_ms", 1000), ("cut", "cut_ms", 1000)],
)
def test_between_the_promises_either_comes(name: str, setting: str, length_ms: int) -> None:
    found = set()
    for seed in range(20):
        history, _ = simulate(make_plan(name, seed=seed, settings={setting: str(length_ms)}))
        found.add(judge(history)["effect_overlap"].outcome)
    assert found == {CLEAN, VIOLATED}


def test_a_cut_of_a_third_of_the_session_may_cost_it() -> None:
    """What was lost comes again up to as long after the cut as it lasted: too late for some. The back-off decides when
    the group is at rest, and so when the cut begins after the last ping."""
    settings = {"cut_ms": "666", "rebalance_backoff_ms": "650"}
    harmed = [
        seed
        for seed in (10, 23, 39)
        for history, _ in [simulate(make_plan("cut", seed=seed, settings=settings))]
        if judge(history)["zombie_overlap"].outcome is VIOLATED
    ]
    assert harmed


@pytest.mark.parametrize(("backoff_ms", "zombies"), [("450", 0), ("550", 8)])
def test_the_moment_of_the_last_ping_decides_whether_half_a_session_is_too_long(backoff_ms: str, zombies: int) -> None:
    """The group rests two back-offs after its last request, and the member pings each third of its session."""
    settings = {"pause_ms": "1000", "rebalance_backoff_ms": backoff_ms}
    histories = [simulate(make_plan("zombie", seed=seed, settings=settings))[0] for seed in range(8)]
    assert sum(judge(history)["zombie_overlap"].outcome is VIOLATED for history in histories) == zombies


def test_the_latest_end_of_a_session() -> None:
    plan = make_plan("zombie")
    assert silence.latest_end_ms(plan) == 2500
    assert silence.latest_end_ms(plan, to_server=False) == 3833
    assert silence.latest_end_ms(make_plan("zombie", settings={"servers": "3"})) == 2750
