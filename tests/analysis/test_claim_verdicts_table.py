"""Claim verdicts, one by one. All are judged at once: each case is a scenario and a claim of its own."""

from __future__ import annotations

import msgspec
import pytest
from scipy import stats
from verdict_rows import CHECKS, Row, claim, judged, rows_of_trial

from rebalance_lab.analysis.ledger import Claim, Expected, Minimum, Quantifier, Reading
from rebalance_lab.analysis.session import LocalSpark
from rebalance_lab.analysis.verdicts import WORLDS

Told = dict[tuple[str, str], Row]

ONE = Minimum(live=1, simulated=1)
LONG = ("pause_ms > session_timeout_ms",)
LIVE = rows_of_trial("live", "violated", world="processes")
SIMULATED = rows_of_trial("simulated", "violated")
CONTROL_LIVE = rows_of_trial("control-live", "clean", world="processes", control=True, bitten=False)
CONTROL_SIMULATED = rows_of_trial("control-simulated", "clean", control=True, bitten=False)
CONTROLS = [*CONTROL_LIVE, *CONTROL_SIMULATED]
SHORT = {"pause_ms": "500", "session_timeout_ms": "2000"}

MANY_LIVE_CLEAN = [row for n in range(5) for row in rows_of_trial(f"l{n}", "clean", world="processes")]
MANY_CLEAN = [*MANY_LIVE_CLEAN, *(row for n in range(200) for row in rows_of_trial(f"s{n:03}", "clean", seed=n))]

WHY_UNDECIDED = (
    "simulated trials (no fault bit, a check is unknown or does not apply, or nothing proves that it ran live)"
)

#: Cases of an existential claim that is unknown: what there is, and what the verdict says of it.
UNKNOWN = {
    "live only": ([*LIVE, *CONTROLS], "needs one simulated trial"),
    "simulated only": ([*SIMULATED, *CONTROLS], "needs one live trial"),
    "no control": ([*LIVE, *SIMULATED, *CONTROL_LIVE], "needs one clean simulated control (the same with --control)"),
    "a control that is unknown": (
        [*LIVE, *SIMULATED, *CONTROL_LIVE, *rows_of_trial("c", "unknown", control=True, bitten=False)],
        "needs one clean simulated control (the same with --control); unclear: 0 live and 1 simulated controls",
    ),
    "dirty control": (
        [*LIVE, *SIMULATED, *CONTROLS, *rows_of_trial("bad", {"registration": "violated"}, control=True, bitten=False)],
        "a simulated control is violated: bad",
    ),
    "not bitten": (
        [*LIVE, *CONTROLS, *rows_of_trial("gentle", "violated", bitten=False)],
        f"needs one more simulated trial; undecided: 0 live and 1 {WHY_UNDECIDED}",
    ),
    "one of two checks": (
        [*LIVE, *CONTROLS, *rows_of_trial("half", {"belief_overlap": "violated", "effect_overlap": "clean"})],
        "needs one more simulated trial (so far 0 of 1 show it)",
    ),
    "the same history twice": (
        [*MANY_CLEAN[: -len(CHECKS)], *CONTROLS, *rows_of_trial("s-again", "clean", seed=777, history_sha256="s000")],
        "belief_overlap and effect_overlap violated together in none of 5 live and 199 simulated trials"
        " (1 not counted: same seed or history as another trial); to refute it takes 5 live and 200 simulated",
    ),
    "the same seed with other settings": (
        [*MANY_CLEAN[: -len(CHECKS)], *CONTROLS, *rows_of_trial("s-again", "clean", seed=0)],
        "belief_overlap and effect_overlap violated together in none of 5 live and 199 simulated trials"
        " (1 not counted: same seed or history as another trial); to refute it takes 5 live and 200 simulated",
    ),
    "live without proof": (
        [
            *SIMULATED,
            *CONTROLS,
            *rows_of_trial("edited", "violated", world="processes", unproved="it names no boot id"),
        ],
        f"needs one more live trial; undecided: 1 live and 0 {WHY_UNDECIDED}",
    ),
    "a planted bug": (
        [*LIVE, *CONTROLS, *rows_of_trial("planted", "violated", plant="bug")],
        "needs one simulated trial",
    ),
    "a short pause": (
        [*LIVE, *CONTROLS, *rows_of_trial("short", "violated", parameters=SHORT)],
        "needs one simulated trial",
    ),
    "too few to refute": (
        [*MANY_CLEAN[len(CHECKS) :], *CONTROLS],
        "belief_overlap and effect_overlap violated together in none of 4 live and 200 simulated trials;"
        " to refute it takes 5 live and 200 simulated",
    ),
}

UNIVERSAL = claim("always", minimum=Minimum(live=2, simulated=3))
FEW_CLEAN = [
    *(row for n in range(2) for row in rows_of_trial(f"l{n}", "clean", world="processes")),
    *(row for n in range(3) for row in rows_of_trial(f"s{n}", "clean", seed=n)),
]
BOTH_HOLD = claim("always", checks=("registration", "belief_overlap"), minimum=Minimum(live=2, simulated=3))
#: A counter-example counts whether or not a fault bit.
COUNTER = rows_of_trial("counter", {"registration": "violated"}, world="processes", bitten=False)
BOTH_RULES = claim(
    "always",
    Reading("described", Expected.REPRODUCED, "", rules="described"),
    Reading("shipped", Expected.REFUTED, "", rules="shipped"),
    Reading("later", Expected.REFUTED, "", waits_for="needs more"),
    minimum=Minimum(live=0, simulated=1),
)
WAITING = Claim(
    "it is so", Quantifier.TREND, "test", (Reading("all", Expected.REPRODUCED, ""),), waits_for="needs brokers"
)

#: One effect costs the other: overlap of beliefs, and then none of effects. Each is measured.
COSTS = claim(
    "exists",
    checks=("belief_overlap",),
    clean=("effect_overlap",),
    minimum=ONE,
    measures={"belief_overlap_longest_us": "overlap", "effect_overlap_count": "overlaps"},
)


def with_cost(name: str, belief: str, effect: str, numbers: tuple[int, int], **fields: object) -> list[Row]:
    """A trial in which the checks found these; `numbers`: those that the verdict is to say."""
    rows = rows_of_trial(name, {"belief_overlap": belief, "effect_overlap": effect}, **fields)
    return [row | {"longest_us": numbers[0], "count": numbers[1]} for row in rows]


PAID = [
    *with_cost("live", "violated", "clean", (1_500_000, 7), world="processes"),
    *with_cost("s1", "violated", "clean", (1_000_000, 2), seed=1),
    *with_cost("s2", "violated", "clean", (2_000_000, 4), seed=2),
]
NOT_SPARED = [
    *with_cost("live", "violated", "violated", (1, 1), world="processes"),
    *with_cost("s1", "violated", "violated", (1, 1)),
]
NOT_SPARED_IN_CONTROLS = [*CONTROL_LIVE, *rows_of_trial("bad", {"effect_overlap": "violated"}, control=True)]

CASES: dict[str, tuple[Claim, list[Row]]] = {
    **{name: (claim("exists", where=LONG, minimum=ONE), outcomes) for name, (outcomes, _) in UNKNOWN.items()},
    "shown": (claim("exists", where=LONG, minimum=ONE), [*LIVE, *SIMULATED, *CONTROLS]),
    "only a short pause": (
        claim("exists", where=LONG, minimum=ONE),
        [*CONTROLS, *rows_of_trial("short", "clean", parameters=SHORT)],
    ),
    "never seen": (claim("exists", where=LONG, minimum=ONE), MANY_CLEAN),
    "always": (UNIVERSAL, [*CONTROLS, *FEW_CLEAN]),
    "always both": (BOTH_HOLD, [*CONTROLS, *FEW_CLEAN, *COUNTER]),
    "always, too few": (UNIVERSAL, [*CONTROLS, *FEW_CLEAN[: -len(CHECKS)]]),
    "always, but once": (UNIVERSAL, [*CONTROLS, *FEW_CLEAN, *COUNTER]),
    "both rules": (
        BOTH_RULES,
        [*CONTROLS, *rows_of_trial("d", "clean"), *rows_of_trial("s", "violated", rules="shipped")],
    ),
    "waiting": (WAITING, []),
    "paid": (COSTS, [*PAID, *CONTROLS]),
    "paid, with one undecided": (
        COSTS,
        [*PAID, *with_cost("s3", "violated", "unknown", (9_000_000, 9), seed=3), *CONTROLS],
    ),
    "paid, once for nothing": (
        COSTS,
        [*PAID, *with_cost("s3", "violated", "violated", (4_000_000, 0), seed=3), *CONTROLS],
    ),
    "not spared": (COSTS, [*NOT_SPARED, *CONTROLS]),
    "not spared in a control": (COSTS, [*PAID, *NOT_SPARED_IN_CONTROLS]),
    "not looked at in a control": (
        COSTS,
        [*PAID, *CONTROL_LIVE, *rows_of_trial("half", {"belief_overlap": "clean"}, control=True)],
    ),
}


@pytest.fixture(scope="module")
def told(local_spark: LocalSpark) -> dict[tuple[str, str], Row]:
    claims = {
        name: one
        if one.run is None
        else msgspec.structs.replace(one, run=msgspec.structs.replace(one.run, scenario=name))
        for name, (one, _) in CASES.items()
    }
    outcomes = [
        row | {"trial": f"{name}/{row['trial']}", "scenario": name} for name, (_, rows) in CASES.items() for row in rows
    ]
    return judged(local_spark.session, outcomes, claims)


def test_an_existential_claim_is_shown_by_one_trial_of_each_world(told: Told) -> None:
    row = told["shown", "all"]
    assert (row["verdict"], row["status"], row["live"], row["simulated"]) == ("reproduced", "as expected", 1, 1)
    assert row["witness"] == "shown/simulated"  # that one is replayed exactly
    assert row["examples"] == ["shown/live", "shown/control-live", "shown/simulated", "shown/control-simulated"]
    assert row["why"] == (
        "belief_overlap and effect_overlap violated in 1 of 1 live trials (21 to 100 %)"
        " and 1 of 1 simulated trials (21 to 100 %); the controls are clean"
    )


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_is_missing_makes_it_unknown_and_is_said(told: Told, case: str) -> None:
    row = told[case, "all"]
    why = row["why"].replace(f"{case}/", "")
    assert (row["verdict"], row["status"], why) == ("unknown", "unknown", UNKNOWN[case][1])


def test_without_its_trials_it_is_not_run(told: Told) -> None:
    row = told["only a short pause", "all"]
    assert (row["verdict"], row["status"], row["witness"], row["live"]) == ("not run", "not run", None, 0)
    assert row["why"] == "no trial of only a short pause with pause_ms > session_timeout_ms in this store"


def test_an_existential_claim_is_refuted_by_many_that_bit_and_none_that_shows(told: Told) -> None:
    row = told["never seen", "all"]
    assert (row["verdict"], row["status"], row["live"], row["simulated"]) == ("refuted", "surprise", 5, 200)
    assert "violated together in none of 5 live and 200 simulated trials" in row["why"]


def test_a_universal_claim_needs_many_trials(told: Told) -> None:
    row = told["always", "all"]
    assert (row["verdict"], row["status"], row["witness"]) == ("reproduced", "as expected", None)
    assert row["why"] == (
        "registration clean in 2 of 2 live trials (34 to 100 %) and 3 of 3 simulated trials (44 to 100 %); "
        "the controls are clean"
    )
    row = told["always, too few", "all"]
    assert (row["verdict"], row["why"]) == ("unknown", "needs one more simulated trial (so far 2 of 2 show it)")


def test_one_counter_example_refutes_a_universal_claim(told: Told) -> None:
    row = told["always, but once", "all"]
    assert (row["verdict"], row["status"], row["witness"]) == ("refuted", "surprise", "always, but once/counter")
    assert row["why"].startswith("registration violated in 1 of 3 live trials (6 to 79 %) and 0 of 3 simulated trials")


def test_one_of_several_checks_is_enough_to_deny(told: Told) -> None:
    why = told["always both", "all"]["why"]
    assert why.startswith("registration or belief_overlap violated in 1 of 3 live trials (6 to 79 %)")


def test_how_often_it_was_shown_is_told_with_an_interval(told: Told) -> None:
    row = told["always, but once", "all"]
    assert [(each["world"], each["shown"], each["decided"]) for each in row["frequencies"]] == [
        ("live", 2, 3),
        ("simulated", 3, 3),
    ]
    for each in row["frequencies"]:
        other = stats.binomtest(each["shown"], each["decided"]).proportion_ci(method="wilson")
        assert (each["low"], each["high"]) == pytest.approx((other.low, other.high))
    nothing = told["only a short pause", "all"]["frequencies"]
    assert nothing == [
        {"world": w, "shown": 0, "decided": 0, "low": None, "high": None, "undecided": 0} for w in WORLDS
    ]


def test_what_is_spared_must_be_clean(told: Told) -> None:
    row = told["paid", "all"]
    assert (row["verdict"], row["live"], row["simulated"]) == ("reproduced", 1, 2)
    assert row["why"] == (
        "belief_overlap violated with effect_overlap clean in 1 of 1 live trials (21 to 100 %) and 2 of 2 simulated"
        " trials (34 to 100 %); the controls are clean; overlap: 1.500 s in live trials and 1.500 s (1.000 s to"
        " 2.000 s) in simulated trials; overlaps: 7 in live trials and 3 (2 to 4) in simulated trials"
    )
    row = told["not spared", "all"]
    assert (row["verdict"], row["live"], row["simulated"]) == ("unknown", 1, 1)
    assert row["why"].startswith("belief_overlap violated with effect_overlap clean in none of 1 live and 1 simulated")


def test_controls_must_be_clean_in_it(told: Told) -> None:
    assert told["not spared in a control", "all"]["why"].startswith("a simulated control is violated: ")
    why = told["not looked at in a control", "all"]["why"]
    assert why.startswith("needs one clean simulated control (the same with --control)")


def test_what_was_measured_is_told_of_the_decided_trials(told: Told) -> None:
    overlap = {"measure": "belief_overlap_longest_us", "what": "overlap"}
    simulated = {"world": "simulated", "trials": 2, "least": 1_000_000, "median": 1_500_000.0, "most": 2_000_000}
    for case in ("paid", "paid, with one undecided"):
        row = told[case, "all"]
        assert [(each["what"], each["world"], each["trials"]) for each in row["measured"]] == [
            ("overlap", "live", 1),
            ("overlap", "simulated", 2),
            ("overlaps", "live", 1),
            ("overlaps", "simulated", 2),
        ]
        assert row["measured"][1] == overlap | simulated
    row = told["paid, once for nothing", "all"]
    assert row["measured"][1] == overlap | simulated | {"trials": 3, "median": 2_000_000.0, "most": 4_000_000}
    assert told["shown", "all"]["measured"] == []


def test_each_reading_has_its_own_trials_and_expectation(told: Told) -> None:
    statuses = {name: (row["verdict"], row["status"]) for (case, name), row in told.items() if case == "both rules"}
    assert statuses == {
        "described": ("reproduced", "as expected"),
        "shipped": ("refuted", "as expected"),
        "later": ("not run", "not run"),
    }
    assert told["both rules", "later"]["why"] == "needs more"


def test_a_claim_without_a_run_says_what_it_waits_for(told: Told) -> None:
    row = told["waiting", "all"]
    assert (row["verdict"], row["status"], row["why"]) == ("not run", "not run", "needs brokers")
