from __future__ import annotations

from pathlib import Path

import pytest

from rebalance_lab.analysis.ledger import (
    Claim,
    Condition,
    LedgerError,
    Minimum,
    Quantifier,
    constructed,
    minimum_of,
    quantifier_of,
    read_ledger,
    run_of,
)

#: The list of claims.
IDS = """
    Z1 Z2 Z3 Z4 Z5a Z5b Z6 Z7a Z7b Z7c Z8 Z9 Z10 Z11 Z12a Z12b Z13 Z14 Z15a Z15b Z16
    E1 E2 E3 E4 E5a E5b E5c E6 E7
    P1 P2 P3 P4 P5 P6
    G1 G2 G3 G4 G5 G6 G7 G8a G8b G9a G9b G9c G10 G11 G12
    A0 A1 A2 A3 A4 A5a A5b A5c A6
    N1 N2 N3 N4 N5 N6 N7 N8 N9 N10 N11
    C1 C2 C3 C4 C5 C6 C7 C8
"""

LEDGER = read_ledger()


def test_every_claim_is_in_the_ledger() -> None:
    assert list(LEDGER.claims) == IDS.split()


def test_every_reading_says_why_and_where_from() -> None:
    for name, claim, reading in LEDGER.readings():
        assert reading.reason, name
        assert claim.source.startswith(f"claims {name}"), name
        assert claim.statement.endswith((".", "}")), name
        assert claim.run is not None or claim.waits_for.startswith("needs "), name


def test_runs_ask_for_what_the_quantifier_needs() -> None:
    z1, z10 = LEDGER.claims["Z1"], LEDGER.claims["Z10"]
    assert (z1.quantifier, minimum_of(z1.quantifier, z1.run)) == (Quantifier.ALWAYS, Minimum(live=5, simulated=200))
    assert (z10.quantifier, minimum_of(z10.quantifier, z10.run)) == (Quantifier.EXISTS, Minimum(live=1, simulated=1))
    assert z10.run.conditions == [
        Condition("pause_ms", ">", bound="session_timeout_ms"),
        Condition("members", ">", bound="1"),  # alone it has no successor
    ]


def test_minima_follow_the_quantifier(tmp_path: Path) -> None:
    exists, always = (one_claim(tmp_path, f'quantifier = "{name}"\n{RUN}') for name in ("exists", "always"))
    assert minimum_of(exists.quantifier, exists.run) == Minimum(live=1, simulated=1)
    assert minimum_of(always.quantifier, always.run) == Minimum(live=5, simulated=200)


READINGS = 'readings = [{ name = "all", rules = "r", expected = "refuted", reason = "so" }]'
RUN = 'run = { scenario = "s", checks = ["c"] }'


def trend_run(trend: str) -> str:
    return f'quantifier = "trend"\nrun = {{ scenario = "s", checks = ["c"], trend = {{ {trend} }} }}'


def one_claim(tmp_path: Path, text: str, readings: str = READINGS) -> Claim:
    path = tmp_path / "ledger.toml"
    path.write_text(f'[X1]\nstatement = "s"\nsource = "here"\n{readings}\n{text}\n')
    return read_ledger(path).claims["X1"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('quantifier = "always"', "needs either a run or what it waits for"),
        (f'quantifier = "always"\nwaits_for = "needs x"\n{RUN}', "needs either a run or what it waits for"),
        (f'quantifier = "trend"\n{RUN}', "needs a `trend` in its run"),
        ('quantifier = "always"\nrun = { scenario = "s", checks = [] }', "without checks: it could not fail"),
        (
            'quantifier = "exists"\nrun = { scenario = "s", checks = ["c"], minimum = { live = 0, simulated = 0 } }',
            "decided by no trial at all",
        ),
        (
            'quantifier = "exists"\nrun = { scenario = "s", checks = ["c"], where = ["pause is long"] }',
            "'pause is long' is not `parameter operator bound`",
        ),
        (trend_run('measure = "speed", between = [1, 2]'), "has a trend with measure 'speed'; there are: reads"),
        (trend_run('measure = "reads", model = "cubic", between = [1, 2]'), "has a trend with model 'cubic'"),
        (trend_run('measure = "reads", against = "age", between = [1, 2]'), "has a trend with against 'age'"),
        (trend_run('measure = "reads", between = [2, 1]'), "lies between 2.0 and 1.0: nothing does"),
        (trend_run('measure = "reads", between = [1, 2], sizes = 2'), "from 2 sizes; the exponent model needs 3"),
        (
            trend_run('measure = "reads", between = [1, 2]').replace("trend", "always", 1),
            "if and only if it is a trend",
        ),
        (
            'quantifier = "exists"\nrun = { scenario = "s", checks = ["c"], where = ["a > \'b\'"] }',
            "compares text: only == and != can",
        ),
        (
            'quantifier = "exists"\nrun = { scenario = "s", checks = ["c"], where = ["a == b c"] }',
            "put text in single quotes",
        ),
        (
            'quantifier = "always"\nrun = { scenario = "s", checks = ["c"], clean = ["d"] }',
            "needs no `clean` in its run",
        ),
        (
            'quantifier = "always"\nrun = { scenario = "s", checks = ["c"], measures = { d_most = "most" } }',
            "has a measure 'd_most', which ends with neither of: _longest_us, _count",
        ),
        ('quantifier = "often"\nwaits_for = "needs x"', "often"),
        ('quantifier = "always"\nwaits_for = "needs x"\nextra = 1', "extra"),
    ],
)
def test_a_ledger_that_contradicts_itself_is_an_error(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(LedgerError, match=rf"(?s)ledger\.toml.*{told}"):
        one_claim(tmp_path, text)


@pytest.mark.parametrize(
    ("readings", "told"),
    [
        ("readings = []", "X1 has no reading"),
        (READINGS[:-1] + "," + READINGS[len("readings = [") :], "X1 has two readings of one name"),
    ],
)
def test_readings_have_names_of_their_own(tmp_path: Path, readings: str, told: str) -> None:
    with pytest.raises(LedgerError, match=told):
        one_claim(tmp_path, 'quantifier = "always"\nwaits_for = "needs x"', readings)


def test_readings_can_have_conditions_and_a_run_of_their_own(tmp_path: Path) -> None:
    readings = """
[[X1.readings]]
name = "kept"
rules = "r"
expected = "reproduced"
reason = "so"
where = ["keep == true", "assignor != 'round robin'", "members >= 3"]

[[X1.readings]]
name = "other"
rules = "r"
expected = "refuted"
reason = "so"
run = { scenario = "other", checks = ["d"] }
"""
    path = tmp_path / "ledger.toml"
    path.write_text(f'[X1]\nstatement = "s"\nsource = "here"\nquantifier = "exists"\n{RUN}\n{readings}')
    claim = read_ledger(path).claims["X1"]
    kept, other = claim.readings
    assert kept.conditions == [
        Condition("keep", "==", text="true"),
        Condition("assignor", "!=", text="round robin"),
        Condition("members", ">=", bound="3"),
    ]
    assert (run_of(claim, kept).scenario, run_of(claim, other).scenario) == ("s", "other")


def test_a_reading_s_conditions_are_looked_at_too(tmp_path: Path) -> None:
    readings = READINGS.replace('reason = "so"', 'reason = "so", where = ["a is b"]')
    with pytest.raises(LedgerError, match="'a is b' is not"):
        one_claim(tmp_path, f'quantifier = "exists"\n{RUN}', readings)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('expected = "does not apply", rules = "r"', "needs a `premise` in a reading if and only if"),
        ('expected = "refuted", rules = "r", premise = ["d"]', "needs a `premise` in a reading if and only if"),
        ('expected = "reproduced", by_construction = true', "can hold by construction only where members of one rule"),
        ('expected = "reproduced"', "needs `rules` or `under` in each reading that is run"),
        ('expected = "refuted", rules = "r", by_construction = true', "can hold by construction only where members"),
    ],
)
def test_a_reading_that_contradicts_itself_is_an_error(tmp_path: Path, more: str, told: str) -> None:
    readings = f'readings = [{{ name = "all", reason = "so", {more} }}]'
    with pytest.raises(LedgerError, match=rf"claim X1 {told}"):
        one_claim(tmp_path, f'quantifier = "exists"\n{RUN}', readings)


def test_a_premise_takes_the_place_of_the_checks(tmp_path: Path) -> None:
    readings = 'readings = [{ name = "all", reason = "so", rules = "r", expected = "does not apply", premise = ["d"] }]'
    costs = RUN.replace("] }", '], clean = ["e"] }')
    claim = one_claim(tmp_path, f'quantifier = "exists"\n{costs}', readings)
    (reading,) = claim.readings
    assert (claim.run.checks, run_of(claim, reading).checks) == (("c",), ("d",))
    assert (claim.run.clean, run_of(claim, reading).clean) == (("e",), ())
    assert quantifier_of(claim, reading) is Quantifier.ALWAYS


def test_a_reading_under_several_rule_sets_is_one_for_each(tmp_path: Path) -> None:
    named = '{ name = "slow", expected = "refuted", reason = "so", under = ["r", "s"] }'
    readings = f"readings = [{named.replace('slow', 'all')}, {named}]"
    claim = one_claim(tmp_path, f'quantifier = "exists"\n{RUN}', readings)
    assert [(each.name, each.rules) for each in claim.readings] == [
        *(("r", "r"), ("s", "s")),
        *(("r, slow", "r"), ("s, slow", "s")),
    ]
    twice = named.replace("under", 'rules = "r", under')
    with pytest.raises(LedgerError, match="'slow' names `rules` and `under`"):
        one_claim(tmp_path, f'quantifier = "exists"\n{RUN}', f"readings = [{twice}]")


def test_constructed_names_what_confirms_itself() -> None:
    assert ("walkthrough", "described", "startup_order") in constructed()
    assert not any(rules != "described" for _, rules, _ in constructed())
