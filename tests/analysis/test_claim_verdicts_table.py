"""Claim verdicts: against an oracle on random outcomes, and told one by one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession
from scipy import stats

from rebalance_lab.analysis.frames import rows_of, table
from rebalance_lab.analysis.ledger import Claim, Condition, Expected, Ledger, Minimum, Quantifier, Reading, Run
from rebalance_lab.analysis.session import LocalSpark
from rebalance_lab.analysis.tables import claim_verdicts as claim_verdicts_module
from rebalance_lab.analysis.tables.claim_verdicts import VERDICTS, claim_verdicts
from rebalance_lab.analysis.tables.herd_costs import HERD_COSTS
from rebalance_lab.analysis.tables.readings import readings_table
from rebalance_lab.analysis.tables.trial_outcomes import OUTCOMES

#: The last looks for no anomaly, but tells whether a statement holds.
STATEMENT = "a_statement"
CHECKS = ("belief_overlap", "effect_overlap", "registration", STATEMENT)
Row = dict[str, Any]
Told = dict[tuple[str, str], Row]


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
        "course": name,
        "unproved": None,
        "witness": [],
        "why": "",
        "longest_us": 0,
        "count": 0,
    }
    row = {"history_sha256": name, **common, **fields}
    row["parameters"] = list(row["parameters"].items())
    return [row | {"check": check, "outcome": outcome} for check, outcome in outcomes.items()]


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
    frame = claim_verdicts(table(spark, outcomes, OUTCOMES), readings, no_costs)
    assert frame.columns == VERDICTS.fieldNames()
    return {(row["claim"], row["reading"]): row for row in rows_of(frame)}


@pytest.fixture(autouse=True, scope="module")
def _statement() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claim_verdicts_module, "_STATEMENTS", [STATEMENT])
        yield


# --- the oracle ------------------------------------------------------------------------------


def oracle(trials: list[list[Row]], claim: Claim, reading: Reading) -> tuple[str, int, int, str | None]:
    """(verdict, live, simulated, witness), the plain way."""
    run, exists = claim.run, claim.quantifier is Quantifier.EXISTS and not reading.premise
    checks = reading.premise or run.checks
    roles: dict[str, set[tuple[str, int, str]]] = {role: set() for role in ROLES}
    counted: set[tuple[str, str, str]] = set()
    for rows in sorted(trials, key=lambda rows: (rows[0]["seed"], rows[0]["trial"])):
        one, found = rows[0], {row["check"]: row["outcome"] for row in rows}
        same = one["scenario"] == run.scenario and reading.rules in (None, one["rules"]) and not one["plant"]
        parameters = dict(one["parameters"])
        if not same or not all(holds(parameters, each) for each in (*run.conditions, *reading.conditions)):
            continue
        seen = [found.get(check) for check in checks]
        faultless = not run.needs_fault and one["faults"] == 0
        known = (one["bitten"] or faultless) and all(outcome in ("violated", "clean") for outcome in seen)
        if one["control"]:
            values = {outcome for check, outcome in found.items() if check in checks or check != STATEMENT}
            looked_for = not exists or set(seen) == {"clean"}
            role = "dirty" if "violated" in values else "clean" if values == {"clean"} and looked_for else None
        elif exists:
            role = ("shows" if set(seen) == {"violated"} else "denies") if known else "undecided"
        else:
            role = "denies" if "violated" in seen else "shows" if known else "undecided"
        world = "simulated" if one["world"] == "simulated" else "live"
        if role and (role, world, one["history_sha256"]) not in counted:
            counted.add((role, world, one["history_sha256"]))
            roles[role].add((world, one["seed"], one["trial"]))
    count = {
        (role, world): sum(each[0] == world for each in found) for role, found in roles.items() for world in WORLDS
    }
    minimum, refute = run.minimum, run.to_refute
    controlled = not roles["dirty"] and all(getattr(minimum, world) == 0 or count["clean", world] for world in WORLDS)
    denied = (
        not roles["shows"] and all(count["denies", world] >= getattr(refute, world) for world in WORLDS)
        if exists
        else bool(roles["denies"])
    )
    shown = all(count["shows", world] >= getattr(minimum, world) for world in WORLDS)
    ran = roles["shows"] or roles["denies"] or roles["undecided"]
    verdict = "not run" if not ran else "refuted" if denied else "reproduced" if shown and controlled else "unknown"
    if reading.premise:
        verdict = {"refuted": "applies", "reproduced": "does not apply"}.get(verdict, verdict)
    telling = sorted(roles["shows" if exists else "denies"], key=lambda each: (each[0] != "simulated", *each[1:]))
    decided = [count["shows", world] + count["denies", world] for world in WORLDS]
    return (verdict, *decided, telling[0][2] if telling else None)


WORLDS = ("live", "simulated")
ROLES = ("shows", "denies", "undecided", "clean", "dirty")


def holds(parameters: dict[str, str], condition: Condition) -> bool:
    name, operator, bound = condition.parameter, condition.operator, condition.bound
    if name not in parameters:
        return False
    if bound is None:
        return (parameters[name] == condition.text) is (operator == "==")
    value, limit = float(parameters[name]), float(parameters.get(bound, bound))
    return {"<": value < limit, ">=": value >= limit, "==": value == limit, ">": value > limit}[operator]


SCENARIOS = [f"s{n}" for n in range(16)]


def random_trial(dice: random.Random, name: str) -> list[Row]:
    """Most trials of a scenario agree, and most controls are clean: otherwise all is unknown."""
    scenario = dice.choice(SCENARIOS)
    control = dice.random() < 0.3
    usual = "clean" if control or int(scenario[1:]) % 2 else "violated"
    outcomes = ["clean", "violated", "unknown", *[usual] * (97 if control or dice.random() < 0.8 else 3)]
    parameters = {"session_timeout_ms": "2000", "pause_ms": dice.choice(["500", "5000", "2000"])}
    parameters["assignor"] = dice.choice(["range", "round robin"])
    if dice.random() < 0.1:
        del parameters["pause_ms"]
    return rows_of_trial(
        name,
        {check: dice.choice(outcomes) for check in CHECKS if check == CHECKS[0] or dice.random() < 0.95},
        scenario=scenario,
        world=dice.choice(["simulated", "processes", "containers"]),
        rules=dice.choice(["described", "shipped"]),
        seed=dice.randint(1, 20),
        history_sha256=name if dice.random() < 0.8 else f"again {dice.randint(1, 3)}",
        control=control,
        plant=dice.choice([None, None, None, "bug"]),
        **dice.choice(
            [{"faults": 1, "bitten": True}] * 8 + [{"faults": 1, "bitten": False}, {"faults": 0, "bitten": False}]
        ),
        parameters=parameters,
    )


def random_reading(dice: random.Random, name: str, **fields: Any) -> Reading:
    expected = dice.choice(list(Expected))
    if expected is Expected.DOES_NOT_APPLY:
        fields["premise"] = tuple(dice.sample(CHECKS, dice.randint(1, 2)))
    return Reading(name, expected, "because", **fields)


def random_claim(dice: random.Random) -> Claim:
    quantifier = dice.choice(["exists", "always"])
    names = [("all", None), ("shipped", "shipped"), ("described", "described")]
    where = dice.choice([(), ("pause_ms > session_timeout_ms",), ("pause_ms >= 2000", "pause_ms < 5000")])
    own = dice.choice([(), (), ("assignor == 'round robin'",), ("assignor != 'range'", "pause_ms < 5000")])
    return claim(
        quantifier,
        *(random_reading(dice, name, rules=rules, where=own) for name, rules in names),
        scenario=dice.choice([*SCENARIOS, "s-never-run"]),
        checks=tuple(dice.sample(CHECKS, dice.randint(1, 2))),
        where=where,
        needs_fault=dice.random() < 0.5,
        minimum=Minimum(live=dice.randint(0, 2), simulated=dice.randint(1, 2)),
        to_refute=Minimum(live=dice.randint(0, 2), simulated=dice.randint(1, 3)),
    )


def test_the_table_says_what_its_oracle_says(spark: SparkSession) -> None:
    dice = random.Random(1)
    trials = [random_trial(dice, f"t{n:03}") for n in range(500)]
    claims = {f"X{n}": random_claim(dice) for n in range(150)}
    found = judged(spark, [row for trial in trials for row in trial], claims)
    seen = Counter()
    for name, one in claims.items():
        for reading in one.readings:
            row = found[name, reading.name]
            expected = oracle(trials, one, reading)
            assert (row["verdict"], row["live"], row["simulated"], row["witness"]) == expected, (name, reading.name)
            seen[one.quantifier.value, row["verdict"]] += 1
    verdicts = ("reproduced", "refuted", "does not apply", "applies", "unknown", "not run")
    assert set(seen) == {(quantifier, verdict) for quantifier in ("exists", "always") for verdict in verdicts}
    assert min(seen.values()) >= 5, seen


# --- told one by one, judged in one go: each case is a scenario and a claim of its own ---------

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

#: Cases of an existential claim that is unknown: what there is, and what the verdict says of it.
UNKNOWN = {
    "live only": ([*LIVE, *CONTROLS], "needs one simulated trial"),
    "simulated only": ([*SIMULATED, *CONTROLS], "needs one live trial"),
    "no control": ([*LIVE, *SIMULATED, *CONTROL_LIVE], "needs one clean simulated control (the same with --control)"),
    "a control that is unknown": (
        [*LIVE, *SIMULATED, *CONTROL_LIVE, *rows_of_trial("c", "unknown", control=True, bitten=False)],
        "needs one clean simulated control (the same with --control)",
    ),
    "dirty control": (
        [*LIVE, *SIMULATED, *CONTROLS, *rows_of_trial("bad", {"registration": "violated"}, control=True, bitten=False)],
        "a simulated control is violated: bad",
    ),
    "not bitten": (
        [*LIVE, *CONTROLS, *rows_of_trial("gentle", "violated", bitten=False)],
        "needs one more simulated trial (1 decide nothing: no fault bit, or a check is unknown or does not apply)",
    ),
    "one of two checks": (
        [*LIVE, *CONTROLS, *rows_of_trial("half", {"belief_overlap": "violated", "effect_overlap": "clean"})],
        "needs one more simulated trial (so far 0 of 1 show it)",
    ),
    "the same history twice": (
        [*MANY_CLEAN[: -len(CHECKS)], *CONTROLS, *rows_of_trial("s-again", "clean", history_sha256="s000")],
        "belief_overlap and effect_overlap never violated together in 5 live and 199 simulated trials whose faults bit"
        " (1 not counted: another's history again); refuted when it is 5 live and 200 simulated",
    ),
    "the same course from the same seed": (
        [*MANY_CLEAN[: -len(CHECKS)], *CONTROLS, *rows_of_trial("s-again", "clean", seed=0, course="s000")],
        "belief_overlap and effect_overlap never violated together in 5 live and 199 simulated trials whose faults bit"
        " (1 not counted: another's history again); refuted when it is 5 live and 200 simulated",
    ),
    "live without proof": (
        [
            *SIMULATED,
            *CONTROLS,
            *rows_of_trial("edited", "violated", world="processes", unproved="it names no boot id"),
        ],
        "needs one more live trial (1 decide nothing: no fault bit, or a check is unknown or does not apply)",
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
        "belief_overlap and effect_overlap never violated together in 4 live and 200 simulated trials whose faults bit;"
        " refuted when it is 5 live and 200 simulated",
    ),
}

UNIVERSAL = claim("always", minimum=Minimum(live=2, simulated=3))
FEW_CLEAN = [
    *(row for n in range(2) for row in rows_of_trial(f"l{n}", "clean", world="processes")),
    *(row for n in range(3) for row in rows_of_trial(f"s{n}", "clean", seed=n)),
]
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

CASES: dict[str, tuple[Claim, list[Row]]] = {
    **{name: (claim("exists", where=LONG, minimum=ONE), outcomes) for name, (outcomes, _) in UNKNOWN.items()},
    "shown": (claim("exists", where=LONG, minimum=ONE), [*LIVE, *SIMULATED, *CONTROLS]),
    "only a short pause": (
        claim("exists", where=LONG, minimum=ONE),
        [*CONTROLS, *rows_of_trial("short", "clean", parameters=SHORT)],
    ),
    "never seen": (claim("exists", where=LONG, minimum=ONE), MANY_CLEAN),
    "always": (UNIVERSAL, [*CONTROLS, *FEW_CLEAN]),
    "always, too few": (UNIVERSAL, [*CONTROLS, *FEW_CLEAN[: -len(CHECKS)]]),
    "always, but once": (UNIVERSAL, [*CONTROLS, *FEW_CLEAN, *COUNTER]),
    "both rules": (
        BOTH_RULES,
        [*CONTROLS, *rows_of_trial("d", "clean"), *rows_of_trial("s", "violated", rules="shipped")],
    ),
    "waiting": (WAITING, []),
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
        " and 1 of 1 simulated trials (21 to 100 %); their controls are clean"
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
    assert "never violated together in 5 live and 200 simulated trials" in row["why"]


def test_a_universal_claim_needs_many_trials(told: Told) -> None:
    row = told["always", "all"]
    assert (row["verdict"], row["status"], row["witness"]) == ("reproduced", "as expected", None)
    assert row["why"] == (
        "registration clean in all 2 live and 3 simulated trials whose faults bit; their controls are clean"
    )
    row = told["always, too few", "all"]
    assert (row["verdict"], row["why"]) == ("unknown", "needs one more simulated trial (so far 2 of 2 show it)")


def test_one_counter_example_refutes_a_universal_claim(told: Told) -> None:
    row = told["always, but once", "all"]
    assert (row["verdict"], row["status"], row["witness"]) == ("refuted", "surprise", "always, but once/counter")
    assert row["why"].startswith("registration violated in 1 of 3 live trials (6 to 79 %) and 0 of 3 simulated trials")


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
    assert nothing == [{"world": w, "shown": 0, "decided": 0, "low": None, "high": None} for w in WORLDS]


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
