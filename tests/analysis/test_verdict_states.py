"""From what was counted to verdict and status: each cell of the table."""

from __future__ import annotations

from typing import Any

import pytest

from rebalance_lab.analysis.claims import claim_status, sort, statuses
from rebalance_lab.analysis.ledger import (
    Claim,
    Expected,
    Judgement,
    Ledger,
    Minimum,
    Quantifier,
    Reading,
    Run,
    Status,
    Trend,
)
from rebalance_lab.analysis.results import Verdict
from rebalance_lab.analysis.tables.readings import reading_rows
from rebalance_lab.analysis.verdicts import WORLDS, verdict_row

#: Live and simulated trials that must show it, and those that refute an existential claim.
MINIMUM, TO_REFUTE = Minimum(live=1, simulated=2), Minimum(live=2, simulated=3)

#: What the trials say, as (live, simulated) of each role; controls as (clean, dirty), each of them so many.
NOTHING = {"shows": (0, 0), "denies": (0, 0), "undecided": (0, 0)}
ENOUGH_SHOW = NOTHING | {"shows": (1, 2)}
FEW_SHOW = NOTHING | {"shows": (1, 1)}
UNDECIDED = NOTHING | {"undecided": (3, 3)}
ONE_DENIES = ENOUGH_SHOW | {"denies": (0, 1)}
ENOUGH_DENY = NOTHING | {"denies": (2, 3)}
FEW_DENY = NOTHING | {"denies": (2, 2)}
#: Of six live and twenty simulated trials two and seventeen are decided: too few.
MOST_UNDECIDED = {"undecided": (4, 3)}
SHOW_BUT_MOST_UNDECIDED = {"shows": (2, 17), "denies": (0, 0)} | MOST_UNDECIDED
DENY_BUT_MOST_UNDECIDED = {"shows": (0, 0), "denies": (2, 17)} | MOST_UNDECIDED
ONE_DENIES_MOST_UNDECIDED = SHOW_BUT_MOST_UNDECIDED | {"denies": (0, 1)}
DENY_AND_ONE_SHOWS = NOTHING | {"denies": (2, 3), "shows": (0, 1)}

#: `unclear`: one clean control in each world, and too many that say nothing.
CLEAN, MISSING, DIRTY, UNCLEAR = ALL = "clean", "missing", "dirty", "unclear"
IF_CONTROLLED = dict.fromkeys(ALL, "unknown") | {CLEAN: "reproduced"}

#: (quantifier, what the trials say, the controls) -> the verdict, of a reading without a premise.
CELLS: dict[tuple[str, str], tuple[dict[str, tuple[int, int]], dict[str, str]]] = {
    ("exists", "nothing"): (NOTHING, dict.fromkeys(ALL, "not run")),
    ("exists", "undecided"): (UNDECIDED, dict.fromkeys(ALL, "unknown")),
    ("exists", "enough show"): (ENOUGH_SHOW, IF_CONTROLLED),
    ("exists", "few show"): (FEW_SHOW, dict.fromkeys(ALL, "unknown")),
    ("exists", "one denies"): (ONE_DENIES, IF_CONTROLLED),
    ("exists", "enough deny"): (ENOUGH_DENY, dict.fromkeys(ALL, "refuted")),
    ("exists", "few deny"): (FEW_DENY, dict.fromkeys(ALL, "unknown")),
    ("exists", "show, most undecided"): (
        SHOW_BUT_MOST_UNDECIDED,
        IF_CONTROLLED,
    ),
    ("exists", "deny, most undecided"): (DENY_BUT_MOST_UNDECIDED, dict.fromkeys(ALL, "unknown")),
    ("exists", "one shows"): (DENY_AND_ONE_SHOWS, dict.fromkeys(ALL, "unknown")),
    ("always", "nothing"): (NOTHING, dict.fromkeys(ALL, "not run")),
    ("always", "undecided"): (UNDECIDED, dict.fromkeys(ALL, "unknown")),
    ("always", "enough show"): (ENOUGH_SHOW, IF_CONTROLLED),
    ("always", "few show"): (FEW_SHOW, dict.fromkeys(ALL, "unknown")),
    ("always", "one denies"): (ONE_DENIES, dict.fromkeys(ALL, "refuted")),
    ("always", "enough deny"): (ENOUGH_DENY, dict.fromkeys(ALL, "refuted")),
    ("always", "show, most undecided"): (SHOW_BUT_MOST_UNDECIDED, dict.fromkeys(ALL, "unknown")),
    ("always", "one denies, most undecided"): (ONE_DENIES_MOST_UNDECIDED, dict.fromkeys(ALL, "refuted")),
}

#: Of a reading with a premise, which is judged as a universal statement.
OF_PREMISE = {"reproduced": "does not apply", "refuted": "applies"}


def judged(
    quantifier: str, reading: Reading, said: dict[str, tuple[int, int]], controls: str, fit: str = ""
) -> dict[str, Any]:
    """The row that a worker makes of these counts. `fit`: agrees | disagrees, of a trend."""
    trend = Trend("reads", (0.5, 1.1)) if quantifier == "trend" else None
    run = Run("s", ("c",), minimum=MINIMUM, to_refute=TO_REFUTE, trend=trend)
    (row,) = reading_rows(Ledger({"X1": Claim("it is so", Quantifier(quantifier), "test", (reading,), run)}))
    counts = {(role, world): trials for role, both in said.items() for world, trials in zip(WORLDS, both, strict=True)}
    if controls != MISSING:
        counts |= {(controls, world): 2 for world in WORLDS}
    if controls == UNCLEAR:
        counts |= {(CLEAN, world): 1 for world in WORLDS}
    roles = [
        {"role": role, "world": world, "trials": trials, "first": f"{role}-{world}", "repeats": 0, "values": []}
        for (role, world), trials in counts.items()
        if trials
    ]
    fitted = {f"{each}_{world}": fit == each for each in ("agrees", "disagrees") for world in WORLDS}
    return verdict_row(row | {"roles": roles, "fits": None} | fitted)


def status_of(expected: Expected, verdict: str) -> str:
    """The plain way."""
    if verdict in ("unknown", "not run"):
        return verdict
    if verdict != expected:
        return "surprise"
    return "does not apply" if expected is Expected.DOES_NOT_APPLY else "as expected"


@pytest.mark.parametrize("controls", ALL)
@pytest.mark.parametrize("expected", [Expected.REPRODUCED, Expected.REFUTED])
@pytest.mark.parametrize("cell", CELLS, ids=" ".join)
def test_counts_give_verdict_and_status(cell: tuple[str, str], expected: Expected, controls: str) -> None:
    said, verdicts = CELLS[cell]
    row = judged(cell[0], Reading("all", expected, "so"), said, controls)
    assert row["verdict"] == verdicts[controls]
    assert row["status"] == status_of(expected, row["verdict"])


@pytest.mark.parametrize("controls", ALL)
@pytest.mark.parametrize(
    ("fit", "said", "verdicts"),
    [
        ("agrees", ENOUGH_SHOW, IF_CONTROLLED),
        ("agrees", FEW_SHOW, dict.fromkeys(ALL, "unknown")),
        ("agrees", ONE_DENIES, dict.fromkeys(ALL, "refuted")),
        ("disagrees", ENOUGH_SHOW, dict.fromkeys(ALL, "refuted")),
        ("decides nothing", ENOUGH_SHOW, dict.fromkeys(ALL, "unknown")),
        ("agrees", SHOW_BUT_MOST_UNDECIDED, dict.fromkeys(ALL, "unknown")),
        ("disagrees", SHOW_BUT_MOST_UNDECIDED, dict.fromkeys(ALL, "unknown")),
    ],
)
def test_a_trend_needs_a_fit_that_agrees(
    fit: str, said: dict[str, tuple[int, int]], verdicts: dict[str, str], controls: str
) -> None:
    for expected in (Expected.REPRODUCED, Expected.REFUTED):
        row = judged("trend", Reading("all", expected, "so"), said, controls, fit)
        assert row["verdict"] == verdicts[controls]
        assert row["status"] == status_of(expected, row["verdict"])


@pytest.mark.parametrize("controls", ALL)
@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell[0] == "always"], ids=" ".join)
def test_a_premise_is_judged_as_a_universal_statement(cell: tuple[str, str], controls: str) -> None:
    said, verdicts = CELLS[cell]
    reading = Reading("all", Expected.DOES_NOT_APPLY, "so", premise=("c",))
    for quantifier in ("exists", "always"):
        row = judged(quantifier, reading, said, controls)
        assert row["verdict"] == OF_PREMISE.get(verdicts[controls], verdicts[controls])
        assert row["status"] == status_of(Expected.DOES_NOT_APPLY, row["verdict"])


@pytest.mark.parametrize("quantifier", ["exists", "always"])
def test_controls_that_say_nothing_are_named(quantifier: str) -> None:
    row = judged(quantifier, Reading("all", Expected.REPRODUCED, "so"), ENOUGH_SHOW, UNCLEAR)
    assert row["why"] == (
        "fewer than 50 % of live controls are clean or violated; "
        "fewer than 90 % of simulated controls are clean or violated; unclear: 2 live and 2 simulated controls"
    )


def test_one_trial_with_the_premise_makes_it_a_surprise() -> None:
    reading = Reading("all", Expected.DOES_NOT_APPLY, "so", premise=("c",))
    without, once = judged("exists", reading, ENOUGH_SHOW, CLEAN), judged("exists", reading, ONE_DENIES, CLEAN)
    assert (without["status"], without["witness"]) == ("does not apply", None)
    assert without["why"] == (
        "no trial has what the claim is about: "
        "c clean in 1 of 1 live trials (21 to 100 %) and 2 of 2 simulated trials (34 to 100 %)"
    )
    assert (once["verdict"], once["status"], once["witness"]) == ("applies", "surprise", "denies-simulated")
    assert once["why"].startswith("trials have what the claim is about: c violated in 0 of 1 live trials")


@pytest.mark.parametrize(
    ("minimum", "fields", "why"),
    [
        (MINIMUM, {}, "no trial of s in this store"),
        (Minimum(live=1, simulated=0), {"rules": "real"}, "no live trial of s with rules real in this store"),
        (
            Minimum(live=0, simulated=1),
            {"rules": "shipped", "where": ("members > 1",)},
            "no simulated trial of s with rules shipped and members > 1 in this store",
        ),
    ],
)
def test_what_was_not_run_is_named_with_rules_and_world(minimum: Minimum, fields: dict[str, Any], why: str) -> None:
    run = Run(scenario="s", checks=("c",), minimum=minimum)
    reading = Reading("all", Expected.REPRODUCED, "so", **fields)
    claim = Claim("it is so", Quantifier.ALWAYS, "test", (reading,), run=run)
    (row,) = reading_rows(Ledger({"X1": claim}))
    found = verdict_row(row | {"roles": None, "fits": None})
    assert (found["verdict"], found["why"]) == ("not run", why)


def test_every_status_is_reached() -> None:
    readings = [Reading("all", Expected.REPRODUCED, ""), Reading("all", Expected.DOES_NOT_APPLY, "", premise=("c",))]
    reached = {judged("always", each, said, CLEAN)["status"] for each in readings for said, _ in CELLS.values()}
    assert reached == set(Status)


def verdict(status: str, *, by_construction: bool) -> Verdict:
    return Verdict(
        claim="X1",
        reading="all",
        statement="it is so",
        quantifier=Quantifier.ALWAYS,
        expected=Expected.REPRODUCED,
        verdict=Judgement.REPRODUCED,
        status=Status(status),
        live=1,
        simulated=1,
        witness=None,
        replay=None,
        why="so",
        by_construction=by_construction,
    )


@pytest.mark.parametrize("status", tuple(Status))
def test_what_holds_by_construction_adds_to_no_count(status: Status) -> None:
    built, other = verdict(status, by_construction=True), verdict("as expected", by_construction=False)
    found = sort([built, other])
    if status == "surprise":
        assert (found.tested, found.constructed) == ((built, other), ())
        assert statuses([built, other]) == ["surprise", "as expected"]
        assert claim_status([built]) == "surprise"
        return
    assert found.tested == (other,)
    assert statuses([built, other]) == ["as expected"]
    assert claim_status([built]) == Status.NOT_RUN
    assert found.constructed == (() if status == Status.NOT_RUN else (built,))


@pytest.mark.parametrize("status", tuple(Status))
def test_evidence_is_counted_whatever_its_status(status: Status) -> None:
    found = sort([verdict(status, by_construction=False)])
    assert len(found.tested) == (status != Status.NOT_RUN)
    assert len(found.not_run) == (status == Status.NOT_RUN)
    assert statuses(found.tested + found.not_run) == [status]
