"""Herd costs: each row of the table states what the check measured, on trials whose changes are spaced."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from stored_trials import RandomTrials, results_of

from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.session import LocalSpark
from rebalance_lab.analysis.tables.trial_results import HERD_COSTS, herd_costs
from rebalance_lab.analysis.trialwise.rows import herd_costs_of as costs_of
from rebalance_lab.history.files import load
from rebalance_lab.trials.api import TrialResult, run
from rebalance_lab.trials.scenario import make_plan

Row = dict[str, Any]

#: Both rule sets, conflicts and none, a broker that comes and goes, members that subscribe to other topics.
PLANS = tuple(
    make_plan(scenario, rules=rules, settings={"fetcher_stop_ms": stop})
    for scenario in ("herd", "walkthrough", "group-scope")
    for rules in ("described", "shipped")
    for stop in ("0", "100")
)
NUMBERS = ("notifications", "rebalances", "reads", "writes")


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> list[TrialResult]:
    store = tmp_path_factory.mktemp("herds")
    return [run(plan, store) for plan in PLANS]


@pytest.fixture(scope="module")
def rows(local_spark: LocalSpark, trials: list[TrialResult]) -> dict[str, list[Row]]:
    """Trial -> its rows, in the order of the changes."""
    with results_of(local_spark.session, trials[0].folder.parent) as results:
        table = rows_of(herd_costs(results))
    return {name: by_time(table, name) for name in (trial.folder.name for trial in trials)}


def by_time(table: list[Row], trial: str) -> list[Row]:
    return sorted((row for row in table if row["trial"] == trial), key=lambda row: row["begin_us"])


def test_each_row_says_what_the_check_measured(trials: list[TrialResult], rows: dict[str, list[Row]]) -> None:
    for trial in trials:
        measures = trial.findings["herd_cost"].measures
        found = rows[trial.folder.name]
        assert measures["changes"] == len(found) > 0
        for number, row in enumerate(found, 1):
            name = f"{row['change']}_{number}"
            assert (row["before"], row["retries"]) == (measures[f"{name}_members"], measures[f"{name}_retries"])
            for each in NUMBERS:
                assert row[each] == measures[f"{name}_{each}"], (trial.folder.name, name, each)
                told = measures.get(f"{name}_expected_{each}")
                assert row[f"expected_{each}"] == told, (trial.folder.name, name, each)


def test_what_conflicts_added_is_that_of_the_check(trials: list[TrialResult], rows: dict[str, list[Row]]) -> None:
    seen = 0
    for trial in trials:
        measures = trial.findings["conflict_cost"].measures
        for each in ("added_reads", "added_writes", "retries"):
            assert measures[each] == sum(row[each] for row in rows[trial.folder.name])
        seen += measures["added_reads"] > 0
    assert seen >= 4  # every pair of scenario and rules has one at 100 ms


def test_brokers_are_counted_at_the_change_and_not_at_the_next_phase(rows: dict[str, list[Row]]) -> None:
    """A broker comes, then goes: 2B of each attempt and of the leader finder's B differ by one each."""
    (came, went) = rows["herd-simulated-described-s1"][4:]
    assert came["change"] == went["change"] == "broker"
    finders = 6  # members that own something
    assert came["expected_reads"] - went["expected_reads"] == 2 * came["members"] + finders


def test_the_group_s_size_is_that_of_the_registry_after_the_change(rows: dict[str, list[Row]]) -> None:
    grows = {"join": 1, "leave": -1, "crash": -1, "broker": 0}
    for found in rows.values():
        assert [row["members"] - row["before"] for row in found] == [grows[row["change"]] for row in found]


def test_the_table_is_the_rows_of_each_trial(random_trials: RandomTrials) -> None:
    table = herd_costs(random_trials.results)
    assert table.schema == HERD_COSTS
    found = rows_of(table)
    seen = 0
    for name, history in random_trials.histories.items():
        wanted = [dataclasses.asdict(cost) for cost in costs_of(history)]
        assert by_time(found, name) == sorted(wanted, key=lambda row: row["begin_us"]), name
        seen += len(wanted)
    assert seen > 20


def test_a_stored_trial_has_the_rows_of_its_history(trials: list[TrialResult], rows: dict[str, list[Row]]) -> None:
    for trial in trials:
        assert rows[trial.folder.name] == [dataclasses.asdict(cost) for cost in costs_of(load(trial.folder))]
