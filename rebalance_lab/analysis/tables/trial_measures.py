"""Trial measures: what each trial cost, in numbers."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it

from rebalance_lab.analysis.frames import schema_of
from rebalance_lab.analysis.results import MEASURES, TrialMeasures
from rebalance_lab.analysis.trialwise.episodes import CHANGE

#: One row a trial; the fields are those of `results.TrialMeasures`.
TRIAL_MEASURES = schema_of(TrialMeasures)


def trial_measures(results: DataFrame) -> DataFrame:
    """RESULTS to TRIAL_MEASURES: the sums over the episodes of each trial's changes (its assembly
    and its closing are no part of the experiment); 0 where it had none."""
    changes = F.filter("episodes", lambda episode: episode["part"] == CHANGE)
    found = results.select("trial", changes.alias("changes"))
    return found.select("trial", *(_sum(name).alias(name) for name in MEASURES))


def _sum(name: str) -> Column:
    if name == "episodes":
        return F.size("changes").cast("long")
    return F.aggregate("changes", F.lit(0).cast("long"), lambda total, each: total + _value(name, each))


def _value(name: str, episode: Column) -> Column:
    return episode["end_us"] - episode["begin_us"] if name == "rebalance_us" else episode[name]
