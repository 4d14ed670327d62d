"""Scenario summaries against an oracle on random histories."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec
import numpy as np
from stored_trials import RandomTrials

from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.results import MEASURES
from rebalance_lab.analysis.tables.scenario_summaries import SUMMARIES, scenario_summaries
from rebalance_lab.analysis.tables.trial_results import trial_measures
from rebalance_lab.checks import judge

NUMBERS = ("trials", "least", "p50", "p90", "p99", "most", "mean")


def settings_of(trials: list[Any]) -> dict[str, tuple[tuple[str, str], ...]]:
    """What tells a trial from the others of its scenario: parameters that not all have alike."""
    found = {}
    for trial in trials:
        others = [other.parameters for other in trials if other.scenario == trial.scenario]
        varied = [name for name in trial.parameters if any(o.get(name) != trial.parameters[name] for o in others)]
        texts = {name: trial.parameters[name] for name in sorted(varied)}
        found[trial.id] = tuple(
            (n, v if isinstance(v, str) else msgspec.json.encode(v).decode()) for n, v in texts.items()
        )
    return found


def oracle(
    random_trials: RandomTrials, measures: dict[str, dict[str, int]]
) -> dict[tuple[Any, ...], tuple[float, ...]]:
    trials = [history.trial for history in random_trials.histories.values()]
    settings = settings_of(trials)
    values: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    lengths = {
        (trial.id, check): finding.measures.get("longest_us", 0)
        for trial in trials
        for check, finding in judge(random_trials.histories[trial.id]).items()
    }
    measuring = {check for (_, check), longest_us in lengths.items() if longest_us > 0}
    for trial in trials:
        kind = (trial.scenario, trial.world, trial.rules, trial.control, trial.plant, settings[trial.id])
        for name in MEASURES:
            values[*kind, name].append(measures[trial.id][name])
        for (owner, check), longest_us in lengths.items():
            if owner == trial.id and check in measuring:
                values[*kind, f"{check}_longest_us"].append(longest_us)
    return {
        kind: (len(each), min(each), *np.percentile(each, [50, 90, 99]).tolist(), max(each), sum(each) / len(each))
        for kind, each in values.items()
    }


def test_the_table_says_what_its_oracle_says(random_trials: RandomTrials) -> None:
    measures = trial_measures(random_trials.results)
    table = scenario_summaries(random_trials.results, measures)
    assert table.schema.simpleString() == SUMMARIES.simpleString()
    expected = oracle(random_trials, {row["trial"]: row for row in rows_of(measures)})
    found = {}
    for row in rows_of(table):
        settings = tuple((each["name"], each["value"]) for each in row["settings"])
        kind = tuple(row[name] for name in ("scenario", "world", "rules", "control", "plant"))
        found[*kind, settings, row["measure"]] = tuple(row[name] for name in NUMBERS)
    assert set(found) == set(expected)
    for kind, numbers in expected.items():
        np.testing.assert_allclose(found[kind], numbers, err_msg=str(kind))
    assert len({kind[5] for kind in expected}) == 4  # with and without a work period, of three lengths
    assert any(kind[6].endswith("_longest_us") for kind in expected)
