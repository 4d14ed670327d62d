"""Orders for a registration of which the broker has not heard: refused and not sent again, or obeyed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from as_expected import played
from thorough import usual

from rebalance_lab.checks import Finding, Outcome, judge
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import OBEYS
from rebalance_lab.history.views import events_of
from rebalance_lab.history.writes import REGISTERED, REPORTED
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import PlanError
from rebalance_lab.trials.scenario import make_plan, scenario
from rebalance_lab.trials.stages.simulated.stage import simulate

SEEDS = range(1, 5)


def play(seed: int, *, control: bool = False, **settings: str) -> tuple[History, dict[str, Finding]]:
    """The history and what the checks find; everything comes out as expected."""
    return played(make_plan("newer-epoch", seed=seed, control=control, settings=settings))


def obeyed_early(history: History) -> int:
    """Orders that the broker has obeyed after its session had expired and before it knew that it was registered."""
    (expired,) = events_of(history, Kind.EXPIRED)
    own = [event for event in events_of(history, OBEYS, REPORTED) if event.actor == expired.actor]
    known = next(event for event in own if event.n > expired.n and event.of("event") == REGISTERED)
    return sum(event.kind is OBEYS and expired.n < event.n < known.n for event in own)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_follower_goes_on_in_the_epoch_that_is_over(seed: int) -> None:
    history, found = play(seed)
    assert obeyed_early(history) == 0
    assert "in leader epoch 0, and the state znode says that it follows" in found["stale_role"].why
    assert found["unequal_views"].measures["count"] == 1
    assert "has no fetcher" in found["stray_fetcher"].why  # its leader has refused its leader epoch


@pytest.mark.parametrize("seed", SEEDS)
def test_a_former_leader_believes_that_it_leads_and_tells_clients_so(seed: int) -> None:
    history, found = play(seed, who="leader")
    assert obeyed_early(history) == 0
    assert "leads in leader epoch 0, and the state znode says that it follows" in found["stale_role"].why
    assert re.search(r"at rest b(\d) tells clients of leader \1 in leader epoch 0", found["unequal_views"].why)


@pytest.mark.parametrize("who", ["leader", "follower"])
@pytest.mark.parametrize("seed", SEEDS)
def test_brokers_that_accept_newer_epochs_obey(seed: int, who: str) -> None:
    history, found = play(seed, who=who, accepts_newer="true")
    assert obeyed_early(history) >= 2  # the metadata and the leaders
    assert {found[each].outcome for each in ("stale_role", "unequal_views")} == {Outcome.CLEAN}


@pytest.mark.parametrize("rules", ["high-watermark", "kip-101", "kip-279"])
def test_older_rules_do_not_help(rules: str) -> None:
    plan = make_plan("newer-epoch", rules=rules)
    found = judge(simulate(plan)[0])
    assert {found[each].outcome for each in ("stale_role", "unequal_views")} == {Outcome.VIOLATED}
    assert found["stray_fetcher"].outcome is scenario("newer-epoch").expects(plan)["stray_fetcher"] is Outcome.CLEAN


def test_views_are_not_looked_at_before_they_have_stood_for_some_time() -> None:
    for name, value in (("settle_ms", "2500"), ("isr_writer", "leader")):
        plan = make_plan("newer-epoch", settings={name: value})
        assert scenario("newer-epoch").expects(plan)["unequal_views"] is None
    plan = make_plan("newer-epoch", settings={"settle_ms": "2501"})
    assert scenario("newer-epoch").expects(plan)["unequal_views"] is Outcome.VIOLATED


def test_the_control_is_clean() -> None:
    _, found = play(1, control=True)
    assert {each.outcome for each in found.values()} == {Outcome.CLEAN}


@pytest.mark.slow
@pytest.mark.parametrize("who", ["leader", "follower"])
@pytest.mark.parametrize("accepts", usual(["false"], ["false", "true"]))
def test_live(tmp_path: Path, who: str, accepts: str) -> None:
    plan = make_plan("newer-epoch", world="processes", settings={"who": who, "accepts_newer": accepts})
    assert api.run(plan, tmp_path).status is api.TrialStatus.AS_EXPECTED


def test_it_needs_a_controller_a_leader_and_a_follower() -> None:
    with pytest.raises(PlanError, match="brokers=2: must be at least 3"):
        make_plan("newer-epoch", settings={"brokers": "2"})
