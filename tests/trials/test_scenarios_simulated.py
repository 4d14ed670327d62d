"""Every scenario comes out as it expects, under each rule set of its subject, and so does its control."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import cast

import pytest
from thorough import THOROUGH, usual

from rebalance_lab.checks import judge
from rebalance_lab.checks.model import Outcome
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.subjects.replication.subject import REPLICATED
from rebalance_lab.trials import api
from rebalance_lab.trials.scenario import make_plan, scenario, scenario_names
from rebalance_lab.trials.stages.simulated.stage import simulate

SEEDS = range(1, usual(3, 4))


def status(history: History) -> str:
    """Whether the trial came out as its scenario expects: `as expected`, `surprise` or `unknown`."""
    return api.TrialResult(Path(), history.trial, judge(history)).status


SIMULATED = [name for name in scenario_names() if "simulated" in scenario(name).worlds]


def come_out_as_expected(name: str, rules: str, seeds: Iterable[int], *, control: bool) -> None:
    for seed in seeds:
        history, _ = simulate(make_plan(name, rules=rules, seed=seed, control=control))
        assert status(history) == api.TrialStatus.AS_EXPECTED, (rules, seed, control)


#: How brokers truncate logs. That matters to few scenarios, and a trial with brokers takes a second, so the default
#: tier has only the one that users get. It matters to no control, in which nothing fails.
TRUNCATION = frozenset(REPLICATED.rules[1:])

#: Of those, a usual run has the first and one in between.
PLAYED = TRUNCATION if THOROUGH else {"high-watermark", "kip-279"}

WITH_RULES = [
    pytest.param(name, rules, control, marks=[pytest.mark.slow] if rules in TRUNCATION else [])
    for name in SIMULATED
    for rules in scenario(name).subject.rules
    for control in (False, True)
    if rules not in TRUNCATION or (rules in PLAYED and (THOROUGH or not control))
]


@pytest.mark.parametrize(("name", "rules", "control"), WITH_RULES)
def test_a_scenario_comes_out_as_expected(name: str, rules: str, control: bool) -> None:
    come_out_as_expected(name, rules, SEEDS[:1], control=control)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATED)
def test_a_scenario_comes_out_as_expected_with_more_seeds(name: str) -> None:
    for rules in set(scenario(name).subject.rules) - TRUNCATION:
        for control in (False, True):
            come_out_as_expected(name, rules, SEEDS[1:], control=control)


def test_a_check_that_is_unknown_leaves_its_trial_unknown() -> None:
    """Also one of which the scenario expects neither outcome: one late report does not show that a zombie worked."""
    history, _ = simulate(make_plan("blind-release", seed=1, settings={"work_period_ms": "50"}))
    found = judge(history)
    assert api.expectation(history.trial)["zombie_overlap"] is None
    assert [name for name, finding in found.items() if finding.outcome is Outcome.UNKNOWN] == [
        "effect_overlap",
        "zombie_overlap",
    ]
    assert status(history) == api.TrialStatus.UNKNOWN


@pytest.mark.parametrize("check_owner", ["false", "true"])
def test_a_blind_release_is_never_unknown(check_owner: str) -> None:
    for seed in range(1, 21):
        history, _ = simulate(make_plan("blind-release", seed=seed, settings={"check_owner": check_owner}))
        ill = Outcome.CLEAN if check_owner == "true" else Outcome.VIOLATED
        assert api.expectation(history.trial)["registration"] is ill
        assert status(history) == api.TrialStatus.AS_EXPECTED, seed


@pytest.mark.parametrize(
    ("name", "ill", "cure"),
    [
        ("uncontrolled", "unowned_window", {"rebalance_max_retries": "20"}),
        ("uncontrolled", "non_convergence", {"rebalance_max_retries": "20"}),
        ("mixed-settings", "contradiction", {"second": "range"}),
        ("unequal-topics", "non_convergence", {"assignor": "range"}),
        ("fast-restart", "non_convergence", {"rebalance_max_retries": "20"}),
        ("fast-restart", "non_convergence", {"clean": "true"}),
        ("deadlock", "non_convergence", {"keep": "false"}),
        ("deadlock", "non_convergence", {"cure": "release-before-retry"}),
        ("deadlock", "non_convergence", {"cure": "release-on-watch"}),
        ("deadlock", "hold_and_wait", {"keep": "false"}),
        ("deadlock", "hold_and_wait", {"cure": "release-before-retry"}),
        ("deadlock", "hold_and_wait", {"cure": "release-on-watch"}),
        ("blind-release", "registration", {"check_owner": "true"}),
        ("leftover-claims", "orphan_owner", {"undo": "true"}),
        ("duplicate-id", "registration", {"check_session": "true"}),
        ("duplicate-id", "registration", {"first_leaves": "true"}),
    ],
)
def test_a_cure_cures(name: str, ill: str, cure: dict[str, str]) -> None:
    for seed in SEEDS:
        as_it_was, _ = simulate(make_plan(name, seed=seed))
        cured, _ = simulate(make_plan(name, seed=seed, settings=cure))
        assert judge(as_it_was)[ill].outcome is Outcome.VIOLATED, seed
        assert judge(cured)[ill].outcome is Outcome.CLEAN, seed
        assert status(cured) == api.TrialStatus.AS_EXPECTED, seed


@pytest.mark.parametrize("rules", ["described", "shipped"])
@pytest.mark.parametrize(
    ("name", "settings", "check", "expected"),
    [
        # The first member gives three partitions up, a lag each: its list is older than the second join from 3 s on.
        ("split-brain", {"partitions": "12"}, "disagreement", None),
        ("split-brain", {"partitions": "12", "after_ms": "3300"}, "disagreement", Outcome.VIOLATED),
        ("split-brain", {"fetcher_stop_ms": "1500"}, "disagreement", None),
        ("split-brain", {"fetcher_stop_ms": "1500", "after_ms": "3400"}, "disagreement", Outcome.VIOLATED),
        # Range and round robin deal the same: all to the first, or by chance.
        ("mixed-settings", {"partitions": "1"}, "contradiction", Outcome.CLEAN),
        ("mixed-settings", {"streams": "2"}, "contradiction", Outcome.CLEAN),
        ("mixed-settings", {"partitions": "5", "streams": "2"}, "contradiction", Outcome.VIOLATED),
        ("mixed-settings", {"members": "13"}, "contradiction", Outcome.VIOLATED),
        ("deadlock", {"streams": "2"}, "hold_and_wait", Outcome.VIOLATED),
        ("deadlock", {"assignor": "roundrobin"}, "hold_and_wait", Outcome.VIOLATED),
    ],
)
def test_expectations_follow_the_settings(
    name: str, settings: dict[str, str], check: str, expected: Outcome | None, rules: str
) -> None:
    plan = make_plan(name, rules=rules, settings=settings)
    assert scenario(name).expects(plan)[check] is expected
    history, _ = simulate(plan)
    assert status(history) == api.TrialStatus.AS_EXPECTED


@pytest.mark.parametrize("rules", ["described", "shipped"])
def test_a_multi_read_saves_requests_and_no_reads(rules: str) -> None:
    """For each read of C registrations C - 1 requests. `described` adds to `shipped` only its watch of the brokers.
    Counted from the first rest: before it, members that start at slightly other times meet other members."""
    counts = []
    for cure in ("false", "true"):
        history, _ = simulate(make_plan("herd", rules=rules, settings={"multi_read": cure}))
        assert judge(history)["herd_cost"].outcome is Outcome.CLEAN
        rested_us = next(event.at_us for event in history.events if event.kind is Kind.REST_REACHED)
        changes = [event for event in history.events if event.at_us > rested_us and event.actor.startswith("m")]
        invoked = [event for event in changes if event.kind is Kind.INVOKED]
        together = [
            len(cast(tuple[object, ...], event.of("parts"))) for event in invoked if event.of("op") == "multi_read"
        ]
        counts.append((len(invoked), len(invoked) + sum(parts - 1 for parts in together), len(together)))
    (plain, plain_reads, none), (cured, cured_reads, several) = counts
    assert none == 0 < several
    assert plain_reads == plain == cured_reads > cured


@pytest.mark.parametrize(
    ("stop_ms", "outcome"), [(4000, Outcome.CLEAN), (5600, Outcome.CLEAN), (6000, None), (6500, Outcome.VIOLATED)]
)
def test_with_kafka_s_back_off_only_a_stop_of_more_than_six_seconds_is_uncontrolled(
    stop_ms: int, outcome: Outcome | None
) -> None:
    settings = {"rebalance_backoff_ms": "2000", "session_timeout_ms": "6000", "slow_stop_ms": str(stop_ms)}
    for seed in SEEDS:
        history, _ = simulate(make_plan("uncontrolled", rules="shipped", seed=seed, settings=settings))
        findings = judge(history)
        assert api.expectation(history.trial)["omission"] is outcome
        assert outcome in (None, findings["omission"].outcome)
        assert status(history) == api.TrialStatus.AS_EXPECTED


def test_live_a_stop_close_to_the_budget_may_end_either_way() -> None:
    settings = {"rebalance_backoff_ms": "2000", "session_timeout_ms": "6000", "slow_stop_ms": "6500"}
    near = make_plan("uncontrolled", world="processes", settings=settings)
    far = make_plan("uncontrolled", world="processes")
    expects = scenario("uncontrolled").expects
    assert (expects(near)["omission"], expects(far)["omission"]) == (None, Outcome.VIOLATED)


def test_only_in_the_simulator_a_restart_takes_no_time() -> None:
    """Live, an interpreter starts first: the ghost may be gone by then."""
    expected = scenario("fast-restart").expects
    assert expected(make_plan("fast-restart"))["non_convergence"] is Outcome.VIOLATED
    assert expected(make_plan("fast-restart", world="processes"))["non_convergence"] is None


@pytest.mark.parametrize(("rules", "outcome"), [("described", Outcome.CLEAN), ("shipped", Outcome.VIOLATED)])
def test_a_member_with_a_filter_starts_in_its_own_order(rules: str, outcome: Outcome) -> None:
    history, _ = simulate(make_plan("walkthrough", rules=rules, settings={"filter": "true"}))
    findings = judge(history)
    assert findings["startup_order"].outcome is outcome
    assert findings["published_rows"].outcome is Outcome.CLEAN
    assert status(history) == api.TrialStatus.AS_EXPECTED
    watched = [event for event in history.events if event.of("path") == "/brokers/topics" and event.of("watch")]
    assert watched


def test_flapping_costs_attempts_on_members_that_vanished() -> None:
    """In a third of the trials. Where members start at once (`start_max_us` 0) it is nearly every one."""
    histories = (simulate(make_plan("flapping", rules="shipped", seed=seed))[0] for seed in range(1, 21))
    failed = (event for history in histories for event in history.events if event.kind is Kind.ATTEMPT_FAILED)
    assert any(str(event.of("why")).startswith("NoNode") for event in failed)


def test_a_storm_shows_members_different_lists() -> None:
    """In one of eight trials. Where members start at once (`start_max_us` 0) it is nearly every one."""
    found = (judge(simulate(make_plan("storm", seed=seed))[0])["disagreement"].outcome for seed in range(1, 31))
    assert Outcome.VIOLATED in found
