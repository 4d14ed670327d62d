"""Claim verdicts against a plain-Python oracle on random outcomes."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from statistics import median
from typing import Any

from ledger_conditions import holds
from pyspark.sql import SparkSession
from verdict_rows import CHECKS, STATEMENT, Row, claim, judged, rows_of_trial

from rebalance_lab.analysis.ledger import Claim, Expected, Minimum, Quantifier, Reading, Run
from rebalance_lab.analysis.verdicts import WORLDS


def oracle(trials: list[list[Row]], claim: Claim, reading: Reading) -> tuple[str, int, int, str | None, Measured]:
    """(verdict, live, simulated, witness, and what was measured in each world), the plain way."""
    run, exists = claim.run, claim.quantifier is Quantifier.EXISTS and not reading.premise
    checks, clean = reading.premise or run.checks, () if reading.premise else run.clean
    roles: dict[str, set[tuple[str, int, str]]] = {role: set() for role in ROLES}
    counted: set[tuple[str, str, str | int]] = set()
    numbers: dict[tuple[str, str], list[dict[str, int]]] = defaultdict(list)
    for rows in sorted(trials, key=lambda rows: (rows[0]["seed"], rows[0]["trial"])):
        one, found = rows[0], {row["check"]: row["outcome"] for row in rows}
        same = one["scenario"] == run.scenario and reading.rules in (None, one["rules"]) and not one["plant"]
        parameters = dict(one["parameters"])
        if not same or not all(holds(parameters, each) for each in (*run.conditions, *reading.conditions)):
            continue
        seen = [found.get(check) for check in checks]
        spared = [found.get(check) for check in clean]
        faultless = not run.needs_fault and one["faults"] == 0
        known = (one["bitten"] or faultless) and {*seen, *spared} <= {"violated", "clean"}
        if one["control"]:
            values = {found[check] for check in found if check in (*checks, *clean) or check != STATEMENT}
            looked_for = not exists or {*seen, *spared} == {"clean"}
            role = "dirty" if "violated" in values else "clean" if values == {"clean"} and looked_for else "unclear"
        elif exists:
            happens = set(seen) == {"violated"} and set(spared) <= {"clean"}
            role = ("shows" if happens else "denies") if known else "undecided"
        else:
            role = "denies" if "violated" in seen else "shows" if known else "undecided"
        world = "simulated" if one["world"] == "simulated" else "live"
        history = (role, world, one["history_sha256"])
        if history in counted:
            continue
        draw = (role, world, one["seed"]) if world == "simulated" else history
        if draw not in counted:
            roles[role].add((world, one["seed"], one["trial"]))
            numbers[role, world].append({row["check"]: row["longest_us"] for row in rows})
        counted |= {history, draw}
    count = {
        (role, world): sum(each[0] == world for each in found) for role, found in roles.items() for world in WORLDS
    }
    minimum, refute = run.minimum, run.to_refute
    clear = decided_enough(count, ("clean", "dirty"), "unclear")
    settled = decided_enough(count, ("shows", "denies"), "undecided")
    controlled = not roles["dirty"] and all(getattr(minimum, world) == 0 or count["clean", world] for world in WORLDS)
    denied = (
        not roles["shows"] and settled and all(count["denies", world] >= getattr(refute, world) for world in WORLDS)
        if exists
        else bool(roles["denies"])
    )
    enough = all(count["shows", world] >= getattr(minimum, world) for world in WORLDS)
    shown = enough and (exists or settled) and controlled and clear
    ran = roles["shows"] or roles["denies"] or roles["undecided"]
    verdict = "not run" if not ran else "refuted" if denied else "reproduced" if shown else "unknown"
    if reading.premise:
        verdict = {"refuted": "applies", "reproduced": "does not apply"}.get(verdict, verdict)
    telling = sorted(roles["shows" if exists else "denies"], key=lambda each: (each[0] != "simulated", *each[1:]))
    decided = [count["shows", world] + count["denies", world] for world in WORLDS]
    measured = [(world, *measure(run, [*numbers["shows", world], *numbers["denies", world]])) for world in WORLDS]
    witness = telling[0][2] if telling else None
    return (verdict, *decided, witness, [each for each in measured if each[1]])  # type: ignore[return-value]


def measure(run: Run, found: list[dict[str, int]]) -> tuple[int, int, float, int]:
    """In how many trials the run's measure was taken, the least, the median, the most."""
    values = sorted(
        each[check] for each in found for check in CHECKS if f"{check}_longest_us" in run.measures and check in each
    )
    return (len(values), values[0], median(values), values[-1]) if values else (0, 0, 0.0, 0)


#: (world, trials, least, median, most).
Measured = list[tuple[str, int, int, float, int]]

ROLES = ("shows", "denies", "undecided", "clean", "dirty", "unclear")


def decided_enough(count: dict[tuple[str, str], int], decided: tuple[str, ...], other: str) -> bool:
    """Half of the live and nine tenths of the simulated trials."""
    shares = {"live": (1, 2), "simulated": (9, 10)}
    return all(
        sum(count[role, world] for role in decided) * of >= (sum(count[role, world] for role in (*decided, other))) * n
        for world, (n, of) in shares.items()
    )


SCENARIOS = [f"s{n}" for n in range(16)]


#: The check that trials may be clean in although the others are violated.
SPARED = CHECKS[1]

MEASURED = ("world", "trials", "least", "median", "most")


def random_trial(dice: random.Random, name: str) -> list[Row]:
    """Most trials of a scenario agree, and most controls are clean: otherwise all is unknown. In every fourth scenario
    one check is mostly clean, and the others are not."""
    scenario = dice.choice(SCENARIOS)
    control = dice.random() < 0.3
    usual = "clean" if control or int(scenario[1:]) % 2 else "violated"
    outcomes = ["clean", "violated", "unknown", *[usual] * (297 if control or dice.random() < 0.9 else 3)]
    spared = ["clean", "violated", *["clean"] * 298] if int(scenario[1:]) % 4 == 0 else outcomes
    parameters = {"session_timeout_ms": "2000", "pause_ms": dice.choice(["500", "5000", "2000"])}
    parameters["assignor"] = dice.choice(["range", "round robin"])
    if dice.random() < 0.1:
        del parameters["pause_ms"]
    rows = rows_of_trial(
        name,
        {
            check: dice.choice(spared if check == SPARED else outcomes)
            for check in CHECKS
            if check == CHECKS[0] or dice.random() < 0.99
        },
        scenario=scenario,
        world=dice.choice(["simulated", "processes", "containers"]),
        rules=dice.choice(["described", "shipped"]),
        seed=dice.randint(1, 40),
        history_sha256=name if dice.random() < 0.9 else f"again {dice.randint(1, 3)}",
        control=control,
        plant=dice.choice([None, None, None, "bug"]),
        **dice.choice(
            [{"faults": 1, "bitten": True}] * 40 + [{"faults": 1, "bitten": False}, {"faults": 0, "bitten": False}]
        ),
        parameters=parameters,
    )
    return [row | {"longest_us": dice.randint(0, 9)} for row in rows]


def random_reading(dice: random.Random, name: str, **fields: Any) -> Reading:
    expected = dice.choice(list(Expected))
    if expected is Expected.DOES_NOT_APPLY:
        fields["premise"] = tuple(dice.sample(CHECKS, dice.randint(1, 2)))
    return Reading(name, expected, "because", **fields)


def random_claim(dice: random.Random) -> Claim:
    quantifier = dice.choice(["exists", "always"])
    names = [("all", None), ("shipped", "shipped"), ("described", "described")]
    where = dice.choice([(), ("pause_ms > session_timeout_ms",), ("pause_ms >= 2000", "pause_ms < 5000")])
    clean = (SPARED,) if quantifier == "exists" and dice.random() < 0.4 else ()
    measures = {f"{check}_longest_us": "longest" for check in dice.sample(CHECKS, dice.randint(0, 1))}
    own = dice.choice([(), (), ("assignor == 'round robin'",), ("assignor != 'range'", "pause_ms < 5000")])
    return claim(
        quantifier,
        *(random_reading(dice, name, rules=rules, where=own) for name, rules in names),
        scenario=dice.choice([*SCENARIOS, "s-never-run"]),
        checks=tuple(dice.sample([each for each in CHECKS if each not in clean], dice.randint(1, 2))),
        clean=clean,
        measures=measures,
        where=where,
        needs_fault=dice.random() < 0.5,
        minimum=Minimum(live=dice.randint(0, 2), simulated=dice.randint(1, 2)),
        to_refute=Minimum(live=dice.randint(0, 2), simulated=dice.randint(1, 3)),
    )


def test_the_table_says_what_its_oracle_says(spark: SparkSession) -> None:
    dice = random.Random(1)
    trials = [random_trial(dice, f"t{n:03}") for n in range(700)]
    claims = {f"X{n}": random_claim(dice) for n in range(300)}
    found = judged(spark, [row for trial in trials for row in trial], claims)
    seen: Counter[Any] = Counter()
    for name, one in claims.items():
        for reading in one.readings:
            row = found[name, reading.name]
            expected = oracle(trials, one, reading)
            measured = [tuple(each[of] for of in MEASURED) for each in row["measured"]]
            said = (row["verdict"], row["live"], row["simulated"], row["witness"], measured)
            assert said == expected, (name, reading.name)
            seen[one.quantifier.value, row["verdict"]] += 1
            seen["measured"] += bool(measured)
            seen["spared"] += bool(one.run.clean and row["verdict"] == "reproduced")
    verdicts = ("reproduced", "refuted", "does not apply", "applies", "unknown", "not run")
    assert set(seen) == {"measured", "spared"} | {
        (quantifier, verdict) for quantifier in ("exists", "always") for verdict in verdicts
    }
    assert min(seen.values()) >= 5, seen
