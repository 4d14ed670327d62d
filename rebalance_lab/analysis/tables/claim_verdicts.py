"""Claim verdicts: what all trials of a store say of each reading in the ledger.

The rules are those of `ledger.Run`, for live (every world but `simulated`) and simulated trials
apart. A verdict is *reproduced*, *refuted*, *unknown* (there were trials, but they do not
decide: `why` says what is missing) or *not run* (no trial, or the reading waits for something).

Trials of one history count once: a copy of a folder, or a plan that differs only in a setting that
changed nothing, proves nothing anew.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it
from pyspark.sql.types import ArrayType, LongType, StringType, StructType

from rebalance_lab.analysis.frames import table
from rebalance_lab.analysis.ledger import Claim, Ledger, Quantifier, Reading, minimum_of
from rebalance_lab.analysis.tables.schemas import column

_CONDITION = StructType(
    [column("parameter", StringType()), column("operator", StringType()), column("bound", StringType())]
)

#: One row a reading of the ledger. Without `scenario` it is not run, for the reason `waits_for`.
READINGS = StructType(
    [
        column("position", LongType()),
        column("claim", StringType()),
        column("reading", StringType()),
        column("statement", StringType()),
        column("quantifier", StringType()),
        column("expected", StringType()),
        column("waits_for", StringType(), null=True),
        column("scenario", StringType(), null=True),
        column("rules", StringType(), null=True),
        column("generation", StringType(), null=True),
        column("checks", ArrayType(StringType(), False)),
        column("conditions", ArrayType(_CONDITION, False)),
        column("minimum_live", LongType()),
        column("minimum_simulated", LongType()),
        column("refute_live", LongType()),
        column("refute_simulated", LongType()),
    ]
)

#: One row a reading. `live`, `simulated`: trials that were decided (they show or deny it), of
#: them `shows_…` show it. `witness`: a trial that shows (exists) or denies (always) it, else null.
#: `examples`: trials worth a picture: the first that decided in each world, and a control of each.
VERDICTS = StructType(
    [
        column("position", LongType()),
        column("claim", StringType()),
        column("reading", StringType()),
        column("statement", StringType()),
        column("quantifier", StringType()),
        column("expected", StringType()),
        column("verdict", StringType()),
        column("status", StringType()),
        column("live", LongType()),
        column("simulated", LongType()),
        column("shows_live", LongType()),
        column("shows_simulated", LongType()),
        column("witness", StringType(), null=True),
        column("examples", ArrayType(StringType(), False)),
        column("why", StringType()),
    ]
)

_WORLDS = ("live", "simulated")
_EARNEST = ("shows", "denies", "undecided")
_OF_TRIAL = ("scenario", "rules", "generation", "seed", "control", "bitten", "history_sha256")


def readings_table(spark: SparkSession, ledger: Ledger) -> DataFrame:
    """The ledger as a table, schema READINGS."""
    return table(spark, [_row(n, *reading) for n, reading in enumerate(ledger.readings())], READINGS)


def _row(position: int, name: str, claim: Claim, reading: Reading) -> dict[str, object]:
    run = None if reading.waits_for else claim.run
    minimum = minimum_of(claim)
    return {
        "position": position,
        "claim": name,
        "reading": reading.name,
        "statement": claim.statement,
        "quantifier": claim.quantifier.value,
        "expected": reading.expected.value,
        "waits_for": reading.waits_for or claim.waits_for,
        "scenario": None if run is None else run.scenario,
        "rules": reading.rules,
        "generation": reading.generation,
        "checks": [] if run is None else list(run.checks),
        "conditions": []
        if run is None
        else [dict(zip(_CONDITION.fieldNames(), condition, strict=True)) for condition in run.conditions],
        "minimum_live": minimum.live,
        "minimum_simulated": minimum.simulated,
        "refute_live": 0 if run is None else run.to_refute.live,
        "refute_simulated": 0 if run is None else run.to_refute.simulated,
    }


def claim_verdicts(outcomes: DataFrame, readings: DataFrame) -> DataFrame:
    """OUTCOMES and READINGS to VERDICTS: one row for each reading, in no order."""
    counted = _counts(_distinct(_judged(_trials(outcomes), readings)), readings)
    verdict = counted.withColumn("verdict", _verdict())
    whole = verdict.select(
        "*",
        _status().alias("status"),
        (F.col("shows_live") + F.col("denies_live")).alias("live"),
        (F.col("shows_simulated") + F.col("denies_simulated")).alias("simulated"),
        _witness().alias("witness"),
        _examples().alias("examples"),
        _why().alias("why"),
    )
    return whole.select(VERDICTS.fieldNames())


def _trials(outcomes: DataFrame) -> DataFrame:
    """One row a trial that may count (no plant): `found` maps check to outcome."""
    return (
        outcomes.where(F.col("plant").isNull())
        .groupBy("trial")
        .agg(
            *(F.first(name).alias(name) for name in _OF_TRIAL),
            F.when(F.first("world") == "simulated", "simulated").otherwise("live").alias("world"),
            F.first("parameters").alias("parameters"),
            F.map_from_entries(F.collect_list(F.struct("check", "outcome"))).alias("found"),
        )
    )


def _judged(trials: DataFrame, readings: DataFrame) -> DataFrame:
    """A row for each reading and each trial that counts for it, with what the trial says:
    `role` is shows, denies or undecided, and for controls clean, dirty or unclear."""
    sought = readings.where(F.col("scenario").isNotNull()).select(
        "position",
        "quantifier",
        "checks",
        "conditions",
        F.col("scenario").alias("of_scenario"),
        F.col("rules").alias("of_rules"),
        F.col("generation").alias("of_generation"),
    )
    joined = trials.join(
        F.broadcast(sought),
        (F.col("scenario") == F.col("of_scenario"))
        & F.coalesce(F.col("rules") == F.col("of_rules"), F.lit(True))
        & F.coalesce(F.col("generation") == F.col("of_generation"), F.lit(True)),
    )
    matching = joined.where(F.coalesce(F.forall("conditions", _holds), F.lit(False)))
    return matching.withColumn("role", F.when(F.col("control"), _control_role()).otherwise(_trial_role()))


def _distinct(judged: DataFrame) -> DataFrame:
    """Of the trials that say the same of a reading by the same history, the first, and how many
    `repeats` of it there are."""
    return judged.groupBy("position", "world", "role", "history_sha256").agg(
        F.min(F.struct("seed", "trial")).alias("first"), (F.count("*") - 1).alias("repeats")
    )


def _number(text: Column) -> Column:
    return text.try_cast("double")


def _holds(condition: Column) -> Column:
    """Whether a trial meets a condition of its reading; null where a parameter is missing."""
    value = _number(F.try_element_at("parameters", condition["parameter"]))
    bound = F.coalesce(_number(F.try_element_at("parameters", condition["bound"])), _number(condition["bound"]))
    tests = {"<": value < bound, "<=": value <= bound, ">": value > bound, ">=": value >= bound, "!=": value != bound}
    return reduce(
        lambda other, name: F.when(condition["operator"] == name, tests[name]).otherwise(other), tests, value == bound
    )


def _having(outcome: str) -> Column:
    """How many of the reading's checks found `outcome`."""
    return F.size(F.filter("checks", lambda check: F.try_element_at("found", check) == outcome))


def _trial_role() -> Column:
    violated, clean, all_checks = _having("violated"), _having("clean"), F.size("checks")
    exists = F.col("quantifier") == Quantifier.EXISTS.value
    decided = F.col("bitten") & (violated + clean == all_checks)
    shows = F.when(exists, decided & (violated == all_checks)).otherwise(decided & (violated == 0))
    denies = F.when(exists, decided & (violated < all_checks)).otherwise(violated > 0)
    return F.when(shows, "shows").when(denies, "denies").otherwise("undecided")


def _control_role() -> Column:
    """Of all checks, not only the reading's: a control is a run in which nothing may go wrong."""
    found = F.map_values("found")
    clean = F.forall(found, lambda outcome: outcome == "clean")
    dirty = F.exists(found, lambda outcome: outcome == "violated")
    return F.when(dirty, "dirty").when(clean, "clean").otherwise("unclear")


def _counts(judged: DataFrame, readings: DataFrame) -> DataFrame:
    """Readings with counts of each role in each world, the first trial (by seed, then name) of
    each, and the repeats that were not counted."""
    kinds = [(role, world) for role in (*_EARNEST, "clean", "dirty") for world in _WORLDS]
    aggregates = []
    for role, world in kinds:
        here = (F.col("role") == role) & (F.col("world") == world)
        aggregates.append(F.count_if(here).alias(f"{role}_{world}"))
        aggregates.append(F.min(F.when(here, F.col("first")))["trial"].alias(f"{role}_{world}_first"))
    for world in _WORLDS:
        earnest = (F.col("world") == world) & F.col("role").isin(*_EARNEST)
        aggregates.append(F.sum(F.when(earnest, F.col("repeats")).otherwise(0)).alias(f"repeats_{world}"))
    counted = readings.join(judged.groupBy("position").agg(*aggregates), "position", "left")
    numbers = [f"{role}_{world}" for role, world in kinds] + [f"repeats_{world}" for world in _WORLDS]
    return counted.fillna(0, numbers)


def _sum(*names: str) -> Column:
    return reduce(lambda total, name: total + F.col(name), names, F.lit(0))


def _earnest() -> Column:
    return _sum(*(f"{role}_{world}" for role in _EARNEST for world in _WORLDS))


def _shown() -> Column:
    """Enough trials show it, in each world."""
    return (F.col("shows_live") >= F.col("minimum_live")) & (F.col("shows_simulated") >= F.col("minimum_simulated"))


def _controlled() -> Column:
    """Each world asked for has a clean control, and no control is violated."""
    per_world = [(F.col(f"minimum_{world}") == 0) | (F.col(f"clean_{world}") > 0) for world in _WORLDS]
    return per_world[0] & per_world[1] & (_sum("dirty_live", "dirty_simulated") == 0)


def _is_exists() -> Column:
    return F.col("quantifier") == Quantifier.EXISTS.value


def _denied() -> Column:
    enough = (F.col("denies_live") >= F.col("refute_live")) & (F.col("denies_simulated") >= F.col("refute_simulated"))
    none = _sum("shows_live", "shows_simulated") == 0
    return F.when(_is_exists(), none & enough).otherwise(_sum("denies_live", "denies_simulated") > 0)


def _verdict() -> Column:
    return (
        F.when(_earnest() == 0, "not run")
        .when(_denied(), "refuted")
        .when(_shown() & _controlled(), "reproduced")
        .otherwise("unknown")
    )


def _status() -> Column:
    return (
        F.when(F.col("verdict").isin("unknown", "not run"), F.col("verdict"))
        .when(F.col("verdict") == F.col("expected"), "as expected")
        .otherwise("surprise")
    )


def _witness() -> Column:
    """Simulated before live: that one is replayed exactly."""
    role = {True: "shows", False: "denies"}
    by_kind = {
        exists: F.coalesce(*(F.col(f"{name}_{world}_first") for world in ("simulated", "live")))
        for exists, name in role.items()
    }
    return F.when(_is_exists(), by_kind[True]).otherwise(by_kind[False])


def _examples() -> Column:
    """In each world the trial that decides, and what its control did."""
    chosen = []
    for world in _WORLDS:
        shows, denies = F.col(f"shows_{world}_first"), F.col(f"denies_{world}_first")
        chosen.append(F.when(_is_exists(), F.coalesce(shows, denies)).otherwise(F.coalesce(denies, shows)))
        chosen.append(F.coalesce(f"dirty_{world}_first", f"clean_{world}_first"))
    return F.array_compact(F.array(*chosen))


# --- why: the verdict in words ---------------------------------------------------------------


def _why() -> Column:
    return (
        F.when(F.col("verdict") == "not run", _why_not_run())
        .when(F.col("verdict") == "reproduced", F.concat(_seen(), F.lit("; their controls are clean")))
        .when(F.col("verdict") == "refuted", F.when(_is_exists(), _never_seen()).otherwise(_seen()))
        .otherwise(_missing())
    )


def _checks() -> Column:
    return F.array_join("checks", " and ")


def _why_not_run() -> Column:
    conditions = F.transform(
        "conditions", lambda each: F.concat_ws(" ", each["parameter"], each["operator"], each["bound"])
    )
    where = F.when(F.size("conditions") > 0, F.concat(F.lit(" with "), F.array_join(conditions, " and ")))
    no_trial = F.concat(F.lit("no trial of "), "scenario", F.coalesce(where, F.lit("")), F.lit(" in this store"))
    return F.when(F.col("scenario").isNull(), F.col("waits_for")).otherwise(no_trial)


def _seen() -> Column:
    """How often the checks came out as they did, in each world."""
    always_kept = ~_is_exists() & (F.col("verdict") == "reproduced")
    kept = F.format_string(
        "%s clean in all %d live and %d simulated trials whose faults bit",
        _checks(),
        F.col("shows_live"),
        F.col("shows_simulated"),
    )
    counted = F.array(
        *(F.when(_is_exists(), _share("shows", world)).otherwise(_share("denies", world)) for world in _WORLDS)
    )
    return F.when(always_kept, kept).otherwise(
        F.concat(_checks(), F.lit(" violated in "), F.array_join(counted, " and "))
    )


def _share(role: str, world: str) -> Column:
    """`3 of 4 live trials (30 to 95 %)`: with Wilson's 95 % interval."""
    z = 1.959964
    k, n = F.col(f"{role}_{world}"), _sum(f"shows_{world}", f"denies_{world}")
    middle = (k + z * z / 2) / (n + z * z)
    half = F.lit(z) / (n + z * z) * F.sqrt(k * (n - k) / F.greatest(n, F.lit(1)) + z * z / 4)
    percent = F.format_string(" (%.0f to %.0f %%)", 100 * (middle - half), 100 * (middle + half))
    return F.format_string(f"%d of %d {world} trials%s", k, n, F.when(n > 0, percent).otherwise(""))


def _never_seen() -> Column:
    return F.format_string(
        "%s never violated together in %d live and %d simulated trials whose faults bit",
        _checks(),
        F.col("denies_live"),
        F.col("denies_simulated"),
    )


def _missing() -> Column:
    """All that keeps an unknown verdict from being one."""
    pieces = []
    for world in _WORLDS:
        dirty = F.concat(F.lit(f"a {world} control is violated: "), f"dirty_{world}_first")
        pieces.append(F.when(F.col(f"dirty_{world}") > 0, dirty))
    for world in _WORLDS:
        need = F.col(f"minimum_{world}") - F.col(f"shows_{world}")
        pieces.append(F.when(need > 0, _needs(need, world)))
        pieces.append(
            F.when((F.col(f"minimum_{world}") > 0) & (F.col(f"clean_{world}") == 0), f"needs one clean {world} control")
        )
    return F.array_join(F.array_compact(F.array(*pieces)), "; ")


def _needs(need: Column, world: str) -> Column:
    decided, undecided = _sum(f"shows_{world}", f"denies_{world}"), F.col(f"undecided_{world}")
    repeats = F.col(f"repeats_{world}")
    return F.concat(
        F.lit("needs "),
        F.when(need == 1, "one").otherwise(need.cast("string")),
        F.when(decided + undecided > 0, " more").otherwise(""),
        F.when(need == 1, f" {world} trial").otherwise(f" {world} trials"),
        F.when(decided > 0, F.format_string(" (so far %d of %d show it)", F.col(f"shows_{world}"), decided)).otherwise(
            ""
        ),
        F.when(
            undecided > 0, F.format_string(" (%d decide nothing: no fault bit, or a check is unknown)", undecided)
        ).otherwise(""),
        F.when(repeats > 0, F.format_string(" (%d not counted: another's history again)", repeats)).otherwise(""),
    )
