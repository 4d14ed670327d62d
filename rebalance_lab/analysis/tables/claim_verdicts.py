"""Claim verdicts: what all trials of a store show about each reading in the ledger.

The rules are those of `ledger` (Run; the module's text for trends and premises). Live trials (those of every world but
`simulated`) and simulated ones are counted separately. A verdict is *reproduced* or *refuted*; for a reading with a
premise *does not apply* or *applies*; *unknown* if there were trials but they do not decide (`why` says what is
missing); or *not run* if there was no trial, or the reading waits for something.

Trials of one history count once, because a copied folder proves nothing new. So do simulated trials of one seed with
the same result, whatever their settings: what chance decides is drawn anew only with another seed. A live trial
without proof that it ran live (`trialwise.credentials`) is undecided; such a control is unclear.
"""

from __future__ import annotations

from functools import partial, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the usual name
from pyspark.sql.types import ArrayType, LongType, StringType, StructType

from rebalance_lab.analysis.frames import schema_of
from rebalance_lab.analysis.ledger import MEASURES, Quantifier
from rebalance_lab.analysis.results import Measured, Verdict
from rebalance_lab.analysis.tables.fits import trend_fits
from rebalance_lab.analysis.tables.schemas import column
from rebalance_lab.analysis.tables.trial_results import all_bitten
from rebalance_lab.analysis.verdicts import verdict_row
from rebalance_lab.analysis.workers import map_rows
from rebalance_lab.checks import CHECKS

#: One row per reading: the fields of `results.Verdict`, without its command, and some that only tables need.
#: `position`: in the ledger. `shows_…`: of the decided trials of a world (`live`, `simulated`), those that show it.
#: `measured`: null in files of version 1 (`analysis.published`).
#: `examples`: trials worth a picture: the first that decided in each world, and a control of each.
VERDICTS = StructType(
    [
        column("position", LongType()),
        *(field for field in schema_of(Verdict) if field.name not in ("replay", "measured")),
        column("measured", ArrayType(schema_of(Measured), False), null=True),
        column("shows_live", LongType()),
        column("shows_simulated", LongType()),
        column("examples", ArrayType(StringType(), False)),
    ]
)

#: The columns that trials with the same result for a reading share.
_SAME = ("position", "world", "role")


def claim_verdicts(results: DataFrame, readings: DataFrame, costs: DataFrame) -> DataFrame:
    """RESULTS, READINGS and HERD_COSTS to VERDICTS: one row for each reading, in no order.

    What is grouped by reading and more is put together by reading once, before the first grouping.
    """
    histories = _histories(_judged(_trials(results), readings).repartition("position"))
    trends = F.broadcast(trend_fits(histories, readings, costs))
    counted = _counts(_distinct(histories), readings).join(trends, "position", "left")
    # Some hundred readings with their counts are left: plain Python decides what they mean.
    return map_rows(counted, VERDICTS, lambda row: [verdict_row(row)])


def _trials(results: DataFrame) -> DataFrame:
    """One row for each trial without a planted bug: `found` maps check to outcome, and `numbers` measure to value. One
    to which no check applies is left out."""
    return results.where(F.col("plant").isNull() & (F.size("findings") > 0)).select(
        *("trial", "scenario", "rules", "generation", "seed", "control", "faults", "history_sha256", "unproved"),
        "parameters",
        all_bitten().alias("bitten"),
        F.when(F.col("world") == "simulated", "simulated").otherwise("live").alias("world"),
        F.map_from_arrays("findings.check", "findings.outcome").alias("found"),
        F.map_from_arrays(
            F.concat(*(F.transform("findings.check", partial(_named, ending)) for ending in MEASURES)),
            F.concat(*(f"findings.{ending.removeprefix('_')}" for ending in MEASURES)),
        ).alias("numbers"),
    )


def _named(ending: str, check: Column) -> Column:
    """The name of a check's measure."""
    return F.concat(check, F.lit(ending))


def _judged(trials: DataFrame, readings: DataFrame) -> DataFrame:
    """A row for each reading and each trial that counts for it. `role` is what the trial shows: shows, denies or
    undecided; of a control: clean, dirty or unclear. `numbers`: of each of the reading's measures; null if its check
    does not apply."""
    sought = readings.where(F.col("scenario").isNotNull()).select(
        "position",
        "quantifier",
        "checks",
        "clean",
        "measures",
        "conditions",
        "needs_fault",
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
    found = F.when(F.col("control"), _control_role()).otherwise(_trial_role())
    nothing = F.when(F.col("control"), "unclear").otherwise("undecided")
    role = F.when(F.col("unproved").isNull(), found).otherwise(nothing).alias("role")
    numbers = F.transform("measures", lambda each: F.try_element_at("numbers", each["measure"])).alias("values")
    return matching.select("position", "world", role, "history_sha256", "seed", "trial", numbers)


def _histories(judged: DataFrame) -> DataFrame:
    """Of the trials with the same history and the same role in a reading: the `first` (seed, trial, values), and the
    number of `trials`."""
    return judged.groupBy(*_SAME, "history_sha256").agg(
        F.min(F.struct("seed", "trial", "values")).alias("first"), F.count("*").alias("trials")
    )


def _distinct(histories: DataFrame) -> DataFrame:
    """Of the simulated histories with the same seed and the same role in a reading: the `first`, and the number of
    its `repeats`. Live histories are all kept."""
    seed = F.col("first.seed").cast("string")
    same = F.when(F.col("world") == "simulated", seed).otherwise(F.col("history_sha256"))
    return histories.groupBy(*_SAME, same.alias("same")).agg(
        F.min("first").alias("first"), (F.sum("trials") - 1).alias("repeats")
    )


def _number(text: Column) -> Column:
    return text.try_cast("double")


def _holds(condition: Column) -> Column:
    """Whether a trial meets a condition of its reading; null where a parameter is missing."""
    said = F.try_element_at("parameters", condition["parameter"])
    text = condition["text"]
    same = F.when(condition["operator"] == "==", said == text).otherwise(said != text)
    value = _number(said)
    bound = F.coalesce(_number(F.try_element_at("parameters", condition["bound"])), _number(condition["bound"]))
    tests = {"<": value < bound, "<=": value <= bound, ">": value > bound, ">=": value >= bound, "!=": value != bound}
    by_value = reduce(
        lambda other, name: F.when(condition["operator"] == name, tests[name]).otherwise(other), tests, value == bound
    )
    return F.when(text.isNotNull(), same).otherwise(by_value)


def _having(outcome: str, checks: str = "checks") -> Column:
    """The number of the reading's checks with this outcome."""
    return F.size(F.filter(checks, lambda check: F.try_element_at("found", check) == outcome))


def _all_clean() -> Column:
    """Whether every check of the reading that must be clean is, beside those that it sorts trials by."""
    return _having("clean", "clean") == F.size("clean")


def _trial_role() -> Column:
    violated, all_checks = _having("violated"), F.size("checks")
    bitten = F.col("bitten") | (~F.col("needs_fault") & (F.col("faults") == 0))
    known = reduce(
        lambda others, name: others & (_having("violated", name) + _having("clean", name) == F.size(name)),
        ("checks", "clean"),
        F.lit(True),
    )
    decided = bitten & known
    happens = (violated == all_checks) & _all_clean()
    shows = decided & F.when(_is_exists(), happens).otherwise(violated == 0)
    denies = F.when(_is_exists(), decided & ~happens).otherwise(violated > 0)
    return F.when(shows, "shows").when(denies, "denies").otherwise("undecided")


def _control_role() -> Column:
    """By every check that looks for an anomaly, and the reading's own: nothing may go wrong in a control."""
    statement, own = F.array(*map(F.lit, _statements())), F.concat("checks", "clean")
    asked = F.map_filter("found", lambda check, _: F.array_contains(own, check) | ~F.array_contains(statement, check))
    found = F.map_values(asked)
    looked_for = ~_is_exists() | ((_having("clean") == F.size("checks")) & _all_clean())
    clean = F.forall(found, lambda outcome: outcome == "clean") & (F.size(found) > 0) & looked_for
    dirty = F.exists(found, lambda outcome: outcome == "violated")
    return F.when(dirty, "dirty").when(clean, "clean").otherwise("unclear")


def _statements() -> list[str]:
    """Checks of statements. All others look for anomalies, including checks that this lab no longer has."""
    return sorted(name for name, check in CHECKS.items() if check.statement)


def _counts(distinct: DataFrame, readings: DataFrame) -> DataFrame:
    """Readings with `roles`: for each world and role the number of distinct trials, the first of them (by seed, then
    name), the number of repeats, which do not count, and the values of each trial, if the reading has measures."""
    values = F.col("first.values")
    of_role = distinct.groupBy("position", "role", "world").agg(
        F.count("*").alias("trials"),
        F.min("first")["trial"].alias("first"),
        F.sum("repeats").alias("repeats"),
        F.collect_list(F.when(F.size(values) > 0, values)).alias("values"),
    )
    struct = F.struct("role", "world", "trials", "first", "repeats", "values")
    roles = of_role.groupBy("position").agg(F.collect_list(struct))
    return readings.join(F.broadcast(roles.toDF("position", "roles")), "position", "left")


def _is_exists() -> Column:
    return F.col("quantifier") == Quantifier.EXISTS.value
