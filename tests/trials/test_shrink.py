"""Shrinking: the result is smaller, and shows the same finding."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from rebalance_lab.checks import judge
from rebalance_lab.checks.model import Outcome
from rebalance_lab.history.files import load, seal
from rebalance_lab.subjects.zk_group.lab import GroupLab
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials import api, shrink
from rebalance_lab.trials import scenario as scenarios
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, usual
from rebalance_lab.trials.shrink import Shrunk
from rebalance_lab.trials.stage import TrialError

LARGE = {"members": "5", "partitions": "9", "streams": "2"}


def shrunk(plan: Plan, store: Path, **options: object) -> Shrunk:
    """Shrink a plan's trial, and hold the result to what it promises."""
    folder = api.run(plan, store).folder
    found = shrink.shrink(folder, store, **options)  # type: ignore[arg-type]
    before, after = load(folder), load(found.result.folder)
    assert (len(before.events), len(after.events)) == found.events
    assert shrink.target_of(before, found.target.check) == found.target
    assert found.target.shown_by(after, judge(after)), "the smaller trial shows something else"
    assert api.plan_of(found.result.folder).plant == plan.plant
    return found


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("plant", "check", "settings"),
    [
        (None, "belief_overlap", {}),
        ("never-claim-last", "unowned_window", {}),
        ("persistent-registration", "registration", {}),
        ("ignore-claim-conflict", "belief_overlap", {"fetcher_stop_ms": "100"}),
    ],
)
def test_the_result_shows_the_same_finding_in_fewer_events(
    tmp_path: Path, plant: str | None, check: str, settings: dict[str, str], seed: int
) -> None:
    plan = api.make_plan("zombie", seed=seed, settings=LARGE | settings, plant=plant)
    found = shrunk(plan, tmp_path, check=check)
    assert found.target.surprise == (plant in {"never-claim-last", "persistent-registration"})
    small = api.plan_of(found.result.folder)
    assert small.number("members") <= 2
    assert small.number("partitions") <= 2
    assert small.number("streams") == 1
    assert found.events[1] * 3 < found.events[0]


def test_a_finding_that_needs_no_fault_is_shown_by_the_control(tmp_path: Path) -> None:
    plan = api.make_plan("zombie", settings=LARGE, plant="never-claim-last")
    found = shrunk(plan, tmp_path, check="unowned_window")
    assert api.plan_of(found.result.folder).control
    assert found.changes[0] == "the control"


def test_a_fault_that_the_finding_needs_stays(tmp_path: Path) -> None:
    found = shrunk(api.make_plan("zombie", settings={"members": "2"}), tmp_path, check="belief_overlap")
    assert not api.plan_of(found.result.folder).control


def test_the_same_trial_shrinks_to_the_same_plan(tmp_path: Path) -> None:
    plan = api.make_plan("zombie", settings=LARGE)
    first, second = (shrunk(plan, tmp_path / name, check="effect_overlap") for name in "ab")
    assert (first.changes, first.runs) == (second.changes, second.runs)
    assert first.result.trial == second.result.trial


def test_what_is_smallest_already_stays_as_it_is(tmp_path: Path) -> None:
    plan = api.make_plan("zombie", settings=LARGE, plant="never-claim-last")
    once = shrunk(plan, tmp_path / "once")
    again = shrunk(api.plan_of(once.result.folder), tmp_path / "again")
    assert (again.changes, again.events[0]) == ((), again.events[1])
    assert again.result.trial == once.result.trial


@pytest.mark.parametrize("limit", [1, 2, 10])
def test_no_more_trials_are_run_than_allowed(tmp_path: Path, limit: int) -> None:
    told: list[tuple[int, int]] = []
    plan = api.make_plan("zombie", settings=LARGE, plant="never-claim-last")
    found = shrunk(plan, tmp_path, runs_limit=limit, on_run=lambda number, events: told.append((number, events)))
    assert found.runs == limit == len(told)
    assert [number for number, _ in told] == list(range(1, limit + 1))
    if limit == 1:
        assert (found.changes, found.events[0]) == ((), found.events[1])


def test_the_command_runs_the_smaller_plan(tmp_path: Path) -> None:
    found = shrunk(api.make_plan("zombie", settings=LARGE, rules="shipped", plant="never-claim-last"), tmp_path)
    words = found.command.split()
    assert words[:3] == ["rebalance-lab", "run", "zombie"]
    assert words[words.index("--rules") + 1] == "shipped"
    given = dict(word.split("=") for before, word in pairwise(words) if before == "--set")
    assert given.pop("plant") == "never-claim-last"
    plan = api.plan_of(found.result.folder)
    assert given == {name: str(plan.parameters[name]) for name in plan.changed}
    assert words[-2:] == ["--store", str(tmp_path)]


# -- scenarios that have faults, names and switches as parameters ----------------------------


async def noisy(lab: GroupLab) -> None:
    """A control that talks: each name and the switch cost an event."""
    await lab.prepare()
    names = lab.plan.text("faults").split(",")
    for name in names if lab.plan.text("faults") else []:
        lab.phase(name)
    if lab.plan.parameters["loud"]:
        lab.phase("loud")
    await lab.start_members(lab.plan.number("members"))
    await lab.rest("joined")
    await lab.sleep_ms(4_000)
    await lab.close()


@pytest.fixture
def noise(monkeypatch: pytest.MonkeyPatch) -> str:
    scenarios.scenario_names()  # before ours is there
    parameters = (
        *common_parameters(members=2),
        Parameter("faults", "kill", "", "names of faults"),
        Parameter("loud", False, "", "talk more"),
        Parameter("quota", 7, "", "a number that has no minimum", maximum=1000),
    )
    noise = Scenario("noise", ZK_GROUP, "talks", parameters, noisy, lambda _plan: usual())
    monkeypatch.setitem(scenarios._SCENARIOS, "noise", noise)
    return "noise"


def test_settings_go_back_to_their_defaults(tmp_path: Path, noise: str) -> None:
    settings = {"faults": "a,b,c", "loud": "true", "group": "other", "quota": "99"}
    found = shrunk(api.make_plan(noise, settings=settings, plant="never-claim-last"), tmp_path)
    plan = api.plan_of(found.result.folder)
    assert (plan.parameters["faults"], plan.parameters["loud"]) == ("kill", False)
    assert (plan.parameters["group"], plan.parameters["quota"]) == ("g1", 7)


def test_faults_of_a_list_are_dropped_and_switches_turned_off(
    tmp_path: Path, noise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = scenarios.scenario(noise)
    defaults: dict[str, str | bool] = {"faults": "kill,pause,cut", "loud": True}
    many = dataclasses.replace(
        known,
        parameters=tuple(
            dataclasses.replace(each, default=defaults[each.name]) if each.name in defaults else each
            for each in known.parameters
        ),
    )
    monkeypatch.setitem(scenarios._SCENARIOS, noise, many)
    found = shrunk(api.make_plan(noise, plant="never-claim-last"), tmp_path)
    plan = api.plan_of(found.result.folder)
    assert "," not in plan.text("faults")
    assert plan.parameters["loud"] is False


# -- what cannot be shrunk -------------------------------------------------------------------


def test_there_must_be_something_to_keep(tmp_path: Path) -> None:
    folder = api.run(api.make_plan("zombie", control=True), tmp_path).folder
    with pytest.raises(TrialError, match="has no surprise and no violated check: there is nothing to keep"):
        shrink.shrink(folder, tmp_path)
    with pytest.raises(TrialError, match=r"belief_overlap is clean, and no surprise in .*: there is nothing to keep"):
        shrink.shrink(folder, tmp_path, check="belief_overlap")
    with pytest.raises(TrialError, match="there is no check beliefs; all: rebalance-lab checks"):
        shrink.shrink(folder, tmp_path, check="beliefs")


def test_one_of_several_violations_must_be_chosen(tmp_path: Path) -> None:
    folder = api.run(api.make_plan("zombie"), tmp_path).folder
    with pytest.raises(TrialError, match="choose one with --check: belief_overlap, "):
        shrink.shrink(folder, tmp_path)


def test_a_finding_that_does_not_come_again_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = api.run(api.make_plan("zombie"), tmp_path).folder
    clean = api.make_plan("zombie", control=True)
    monkeypatch.setattr(shrink, "plan_like", lambda _of, **_changed: clean)
    with pytest.raises(TrialError, match="does not show the finding when it is run again"):
        shrink.shrink(folder, tmp_path, check="belief_overlap")


def test_a_live_trial_is_not_shrunk(tmp_path: Path) -> None:
    folder = api.run(api.make_plan("zombie"), tmp_path).folder
    seal(folder, msgspec.structs.replace(load(folder).trial, world="processes"))
    with pytest.raises(TrialError, match="ran on real processes; only simulated trials are shrunk"):
        shrink.shrink(folder, tmp_path)


def test_another_cause_is_another_finding(tmp_path: Path) -> None:
    """A group without brokers owns nothing, and a trial that never rests says less: neither is
    what a forgotten partition looks like."""
    folder = api.run(api.make_plan("zombie", plant="never-claim-last"), tmp_path).folder
    target = shrink.target_of(load(folder), "unowned_window")
    for name, settings in (("herd", {"brokers": "0"}), ("zombie", {"rest_timeout_ms": "1"})):
        plan = api.make_plan(name, control=True, settings=settings, plant="never-claim-last")
        other = api.run(plan, tmp_path)
        assert other.findings["unowned_window"].outcome is Outcome.VIOLATED
        assert not target.shown_by(load(other.folder), other.findings)
