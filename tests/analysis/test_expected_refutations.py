"""A universal claim that is expected to be refuted: by nearly every trial, and by enough of them."""

from __future__ import annotations

from typing import Any

import pytest

from rebalance_lab.analysis.ledger import Expected, Quantifier, read_ledger
from rebalance_lab.analysis.tables.readings import reading_rows
from rebalance_lab.analysis.verdicts import WORLDS, verdict_row

Counts = dict[tuple[str, str], int]

READINGS = {
    (str(row["claim"]), str(row["reading"])): row
    for row in reading_rows(read_ledger())
    if row["expected"] == Expected.REFUTED and row["scenario"] and row["quantifier"] != Quantifier.EXISTS
}
SIMULATED = [which for which in READINGS if which[1] != "real 0.8.2.2"]

#: A shipped member that always does otherwise than the claim says, judged by 5 live and 200 simulated trials.
Z6 = ("Z6", "shipped")


def judged(row: dict[str, Any], counts: Counts, disagrees: tuple[str, ...] = ()) -> dict[str, Any]:
    """The verdict from so many trials of each (role, world); `disagrees`: worlds whose fit does."""
    roles = [
        {"role": role, "world": world, "trials": trials, "first": f"{role}-{world}", "repeats": 0}
        for (role, world), trials in counts.items()
    ]
    fits = {f"{said}_{world}": said == "disagrees" and world in disagrees for world in WORLDS for said in FITS}
    return verdict_row(row | {"roles": roles, "fits": None} | fits)


FITS = ("agrees", "disagrees")


def test_these_expect_it() -> None:
    assert {claim for claim, _ in READINGS} == {"Z5b", "Z6", "Z7b", "Z7c", "Z14"}


@pytest.mark.parametrize("which", SIMULATED, ids=str)
def test_one_denial_among_hundreds_is_a_surprise(which: tuple[str, str]) -> None:
    """The claim is refuted. The reason of the reading would have refuted it everywhere, so it is not what did."""
    counts = {("denies", "simulated"): 1, ("shows", "simulated"): 500, ("shows", "live"): 50, ("dirty", "live"): 3}
    row = judged(READINGS[which], counts)
    assert (row["verdict"], row["status"]) == ("refuted", "surprise")
    assert "violated in 0 of 50 live trials" in row["why"]
    assert "and 1 of 501 simulated trials" in row["why"]
    assert row["why"].endswith("expected in at least 90 % of the decided trials of each world")


def test_a_world_in_which_most_trials_show_it_is_a_surprise() -> None:
    row = judged(READINGS[Z6], {("denies", "simulated"): 200, ("denies", "live"): 1, ("shows", "live"): 9})
    assert (row["verdict"], row["status"]) == ("refuted", "surprise")


@pytest.mark.parametrize(
    ("counts", "missing"),
    [
        (
            {("denies", "simulated"): 1},
            "needs 5 live trials that deny it, needs 199 more simulated trials that deny it",
        ),
        ({("denies", "simulated"): 200, ("denies", "live"): 4}, "needs 1 more live trial that denies it"),
        (
            {("denies", "simulated"): 200, ("undecided", "simulated"): 23, ("denies", "live"): 5},
            "fewer than 90 % of simulated trials are decided",
        ),
    ],
    ids=["one", "one live too few", "most undecided"],
)
def test_too_few_denials_refute_and_are_not_as_expected(counts: Counts, missing: str) -> None:
    row = judged(READINGS[Z6], counts)
    assert (row["verdict"], row["status"]) == ("refuted", "unknown")
    assert f"; refuted, but as expected only with enough trials: {missing}" in row["why"]


@pytest.mark.parametrize("which", list(READINGS), ids=str)
def test_enough_denials_are_as_expected(which: tuple[str, str]) -> None:
    found = READINGS[which]
    row = judged(found, {("denies", world): int(found[f"minimum_{world}"]) for world in WORLDS})
    assert (row["verdict"], row["status"]) == ("refuted", "as expected")
    assert "expected" not in row["why"]


def test_a_tenth_may_show_it() -> None:
    counts = {("denies", "simulated"): 207, ("shows", "simulated"): 23, ("denies", "live"): 5}
    assert judged(READINGS[Z6], counts)["status"] == "as expected"
    assert judged(READINGS[Z6], counts | {("shows", "simulated"): 24})["status"] == "surprise"


def test_one_denial_of_a_claim_that_is_expected_to_hold_is_a_surprise() -> None:
    row = judged(READINGS[Z6] | {"expected": "reproduced"}, {("denies", "simulated"): 1, ("shows", "simulated"): 500})
    assert (row["verdict"], row["status"]) == ("refuted", "surprise")


def test_a_fit_that_disagrees_in_every_world_refutes_a_trend_as_expected() -> None:
    trend = READINGS["Z7c", "shipped, fetchers stop in 100 ms"]
    counts = {("shows", "simulated"): 20, ("shows", "live"): 4}
    assert judged(trend, counts, disagrees=WORLDS)["status"] == "as expected"
    assert judged(trend, counts, disagrees=("simulated",))["status"] == "surprise"
