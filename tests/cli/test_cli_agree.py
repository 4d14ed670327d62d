"""`agree`: its answers and exit codes, with simulated trials in the place of live ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from cli_tools import CommandLine

from rebalance_lab.analysis.agreement.causes import SLOWED, Live
from rebalance_lab.analysis.agreement.measures import Measured
from rebalance_lab.analysis.agreement.verdicts import Agreement
from rebalance_lab.cli import agree_samples
from rebalance_lab.cli.agree_compared import compared
from rebalance_lab.cli.agree_samples import (
    LiveSample,
    live_sample,
    measure_simulated,
    simulated_plan,
    slowed_plan,
    stored_trials,
    with_seed,
)
from rebalance_lab.history.files import load, seal
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan

QUICK = {"members": "2", "partitions": "2"}
SET = ["--set", "members=2", "--set", "partitions=2"]

#: Seeds of the trials that stand for live ones: others than those of the simulated sample.
FIRST_SEED = 5000


def in_place_of_live(plan: Plan, number: int, first_seed: int = FIRST_SEED) -> tuple[Measured, ...]:
    simulated = simulated_plan(plan)
    return tuple(measure_simulated(with_seed(simulated, seed)) for seed in range(first_seed, first_seed + number))


@pytest.fixture
def no_live_trial(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Samples of simulated trials instead of live ones; the plans that were asked for."""
    asked: list[Plan] = []

    def sample(world: Live, plan: Plan, number: int, _store: Path) -> LiveSample:
        asked.append(plan)
        return LiveSample(world, plan, in_place_of_live(plan, number), 0, ())

    def one_process(plan: Plan, number: int, _processes: int) -> list[Measured]:
        return [measure_simulated(with_seed(plan, seed)) for seed in range(1, number + 1)]

    monkeypatch.setattr(agree_samples, "live_sample", sample)
    monkeypatch.setattr(agree_samples, "simulated_sample", one_process)
    return asked


def rows_of(shape: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["measure"]: row for row in shape["measures"]}


@pytest.mark.usefixtures("no_live_trial")
def test_two_samples_of_one_world_agree(command: CommandLine, tmp_path: Path) -> None:
    ended = command("agree", "leave", "--live", 30, "--simulated", 60, *SET, "--store", tmp_path, "--json")
    shape = ended.json
    assert (ended.code, shape["verdict"]) == (0, "agrees")
    assert shape["live"] == {"trials": 30, "left_out": [], "stored": 0}
    settling = rows_of(shape)["settled.leaving"]
    assert (settling["verdict"], settling["margin"], settling["live"]["trials"]) == ("agrees", 100_000, 30)
    assert settling["beyond_margin"]["at_most"] <= 0.25
    assert set(settling["simulated"]) == {"trials", "q05", "q25", "q50", "q75", "q95"}


@pytest.mark.usefixtures("no_live_trial")
def test_too_few_trials_are_undecided_and_fit_80_columns(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ended = command("agree", "leave", "--live", 3, "--simulated", 20, *SET, "--store", tmp_path)
    assert ended.code == 2
    assert "verdict  undecided" in ended.out
    assert "with fewer than 11" in ended.out
    drawn = [line for line in ended.out.splitlines() if line.startswith(("│", "┃"))]
    assert drawn and max(map(len, drawn)) <= 80
    assert any("settling: leaving" in line and line.count("│") == 5 for line in drawn), "no cell is folded"


@pytest.mark.usefixtures("no_live_trial")
@pytest.mark.parametrize("suffix", [".svg", ".html"])
def test_a_picture_is_written(command: CommandLine, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"picture{suffix}"
    command("agree", "leave", "--live", 12, "--simulated", 20, *SET, "--store", tmp_path, "--out", out)
    text = out.read_text()
    assert "settling: leaving" in text and "simulated" in text


def test_real_members_are_a_sample_of_their_own(
    command: CommandLine, tmp_path: Path, no_live_trial: list[Plan]
) -> None:
    ended = command("agree", "leave", "--members", "real", "--live", 15, "--simulated", 30, *SET, "--store", tmp_path)
    assert [(plan.world, plan.variant) for plan in no_live_trial] == [("processes", "shipped"), ("processes", "real")]
    assert "real members against simulated" in ended.out
    assert ended.code == 0, "each sample is compared with simulated members that subscribe as its own do"


@pytest.mark.parametrize("scenario", ["leftover-claims", "unequal-topics"])
def test_what_real_members_cannot_play_is_said_before_a_live_trial_of_them(
    command: CommandLine, tmp_path: Path, no_live_trial: list[Plan], scenario: str
) -> None:
    more = ["--members", "real", "--live", 3, "--simulated", 3, "--store", tmp_path]
    assert "has one stream, of one topic or white list" in command.refused("agree", scenario, *more)
    assert "real" not in {plan.variant for plan in no_live_trial}


def test_bad_input_is_refused_in_one_line(command: CommandLine, tmp_path: Path) -> None:
    assert "did you mean zombie" in command.refused("agree", "zombi")
    assert ".svg or .html" in command.refused("agree", "zombie", "--out", tmp_path / "x.png")
    (tmp_path / "file").touch()
    complaint = command.refused("agree", "zombie", "--store", tmp_path / "store", "--out", tmp_path / "file" / "x.svg")
    assert "cannot write --out" in complaint
    assert list((tmp_path / "store").iterdir()) == [], "nothing was run"
    assert "planted bug" in command.refused("agree", "zombie", "--set", "plant=ignore-watch")
    assert "cannot be played in world processes" in command.refused("agree", "minority")
    assert "mixed" in command.refused("agree", "zombie", "--members", "mixed")
    assert "--rules described" in command.refused("agree", "zombie", "--members", "real", "--rules", "described")
    assert "pause_ms=x" in command.refused("agree", "zombie", "--set", "pause_ms=x", "--store", tmp_path)


def stored_as_live(store: Path, plan: Plan, **fields: object) -> None:
    """A trial in the store that says that it was a live one."""
    result = api.run(api.make_plan(plan.scenario, settings=QUICK, seed=plan.seed), store / "simulated")
    history = load(result.folder)
    folder = store / f"{plan.trial_id}-{fields.get('parameters', '')!s:.20}".replace(" ", "").replace("'", "")
    (result.folder).rename(folder)
    trial = {"id": folder.name, "world": "processes", **fields}
    seal(folder, type(history.trial)(**{**{name: getattr(history.trial, name) for name in FIELDS}, **trial}))


FIELDS = ("id", "scenario", "world", "subject", "rules", "seed", "control", "parameters", "history_sha256")


def test_what_the_store_has_is_used_and_only_the_rest_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = api.make_plan("leave", world="processes", settings=QUICK)
    for seed in (1, 3):
        stored_as_live(tmp_path, with_seed(plan, seed))
    stored_as_live(tmp_path, with_seed(plan, 4), parameters={**plan.parameters, "members": 3})
    stored_as_live(tmp_path, with_seed(plan, 5), parameters={**plan.parameters, "latency_max_us": 9000})
    assert [trial.seed for _, trial in stored_trials(plan, tmp_path)] == [1, 3, 5], "latencies are the simulator's"
    asked: list[int] = []

    def attempts(plans: list[Plan], _store: Path, processes: int) -> list[api.FailedTrial]:
        assert processes == 1, "live trials disturb each other"
        asked.extend(each.seed for each in plans)
        return [api.FailedTrial(each, "TrialError: no") for each in plans]

    monkeypatch.setattr(api, "attempts", attempts)
    sample = live_sample(Live.PROCESSES, plan, 5, tmp_path)
    assert asked == [2, 4]
    assert (len(sample.trials), sample.stored, len(sample.failed)) == (3, 3, 2)
    assert live_sample(Live.PROCESSES, plan, 2, tmp_path).stored == 2
    assert asked == [2, 4], "enough were there"


def test_the_slowed_plan_has_operations_as_slow_as_the_median_live_trial() -> None:
    plan = api.make_plan("storm")
    lived = [Measured(None, operation_us=each) for each in (None, 3_000, 4_000, 9_000)]
    simulated = [Measured(None, operation_us=2_200)] * 3
    slowed = slowed_plan(plan, lived, simulated)
    assert slowed is not None
    assert (slowed.number("latency_min_us"), slowed.number("latency_max_us")) == (200, 3_800)
    assert slowed_plan(plan, simulated, simulated) is None, "no slower than simulated ones"
    assert slowed_plan(plan, [Measured(None)], simulated) is None, "not recorded"


def test_operations_that_a_fault_holds_up_in_both_worlds_do_not_slow_the_plan() -> None:
    held_up = [Measured(None, operation_us=15_900)]
    assert slowed_plan(api.make_plan("split-brain"), held_up, held_up) is None


@pytest.mark.slow
@pytest.mark.parametrize("plant", [None, "ignore-watch"])
def test_slow_operations_do_not_excuse_members_that_ignore_watches(
    plant: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = api.make_plan("storm", world="processes")
    slow = {**simulated_plan(plan).parameters, "latency_max_us": 4_000}
    as_live = msgspec.structs.replace(simulated_plan(plan), parameters=slow, plant=plant)
    lived = tuple(measure_simulated(with_seed(as_live, seed)) for seed in range(5_000, 5_020))
    monkeypatch.setattr(agree_samples, "live_sample", lambda *_: LiveSample(Live.PROCESSES, plan, lived, 0, ()))
    found = compared(Live.PROCESSES, plan, 20, 40, tmp_path, 1)
    counts = {row.measure.key: row.verdict for row in found.rows if row.measure.family in SLOWED}
    assert (Agreement.DIFFERS in counts.values()) is (plant is not None)


def test_a_failed_trial_is_named_with_the_command_that_runs_it(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_live_trial: list[Plan]
) -> None:
    failing = agree_samples.live_sample

    def sample(world: Live, plan: Plan, number: int, store: Path) -> LiveSample:
        found = failing(world, plan, number, store)
        return LiveSample(world, plan, found.trials, 0, (api.FailedTrial(plan, "TrialError: m1 never started"),))

    monkeypatch.setattr(agree_samples, "live_sample", sample)
    out = command("agree", "leave", "--live", 2, "--simulated", 3, *SET, "--store", tmp_path).out
    assert "failed: seed 1: TrialError: m1 never started: rebalance-lab run leave --world processes" in out
    assert no_live_trial
