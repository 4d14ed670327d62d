"""Outcomes and claims for the tests of claim verdicts."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from rebalance_lab.analysis.frames import rows_of, table
from rebalance_lab.analysis.ledger import Claim, Expected, Ledger, Quantifier, Reading, Run
from rebalance_lab.analysis.tables import claim_verdicts as claim_verdicts_module
from rebalance_lab.analysis.tables.claim_verdicts import VERDICTS, claim_verdicts
from rebalance_lab.analysis.tables.readings import readings_table
from rebalance_lab.analysis.tables.trial_results import FINDINGS, HERD_COSTS, RESULTS

#: The last looks for no anomaly, but tells whether a statement holds.
STATEMENT = "a_statement"
CHECKS = ("belief_overlap", "effect_overlap", "registration", STATEMENT)
Row = dict[str, Any]


def rows_of_trial(name: str, found: dict[str, str] | str, **fields: Any) -> list[Row]:
    """A trial's rows of OUTCOMES. `found`: check to outcome, or one outcome for every check."""
    outcomes = dict.fromkeys(CHECKS, found) if isinstance(found, str) else found
    common = {
        "trial": name,
        "scenario": "zombie",
        "world": "simulated",
        "generation": "zk",
        "rules": "described",
        "seed": 1,
        "control": False,
        "plant": None,
        "parameters": {"pause_ms": "5000", "session_timeout_ms": "2000"},
        "history_sha256": name,
        "faults": 1,
        "bitten": True,
        "unproved": None,
        "witness": [],
        "why": "",
        "longest_us": 0,
        "count": 0,
    }
    row = {"history_sha256": name, **common, **fields}
    row["parameters"] = list(row["parameters"].items())
    return [row | {"check": check, "outcome": outcome} for check, outcome in outcomes.items()]


def as_results(outcomes: list[Row]) -> list[Row]:
    """Rows of OUTCOMES as rows of RESULTS, one for each trial."""
    found: dict[str, Row] = {}
    for row in outcomes:
        bitten = row["faults"] if row["bitten"] else 0
        empty: Row = {"bitten": bitten, "events": 0, "findings": [], "episodes": [], "herd_costs": []}
        of_trial = found.setdefault(row["trial"], {**row, **empty})
        of_trial["findings"].append({name: row[name] for name in FINDINGS.fieldNames()})
    return [{name: row[name] for name in RESULTS.fieldNames()} for row in found.values()]


def claim(quantifier: str, *readings: Reading, **run: Any) -> Claim:
    checks = ("belief_overlap", "effect_overlap") if quantifier == "exists" else ("registration",)
    return Claim(
        statement="it is so",
        quantifier=Quantifier(quantifier),
        source="test",
        readings=readings or (Reading("all", Expected.REPRODUCED, "because"),),
        run=Run(**{"scenario": "zombie", "checks": checks, **run}),
    )


def judged(spark: SparkSession, outcomes: list[Row], claims: dict[str, Claim]) -> dict[tuple[str, str], Row]:
    readings, no_costs = readings_table(spark, Ledger(claims)), table(spark, [], HERD_COSTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claim_verdicts_module, "_statements", lambda: [STATEMENT])
        frame = claim_verdicts(table(spark, as_results(outcomes), RESULTS), readings, no_costs)
        assert frame.columns == VERDICTS.fieldNames()
        return {(row["claim"], row["reading"]): row for row in rows_of(frame)}
