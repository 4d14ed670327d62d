"""Ownership intervals of many trials, by the rules of `history.intervals` (its oracle).

Belief and registry are sequences of *marks* (a claim is said to begin or to end): a mark that
repeats the one before changes nothing, and an interval runs from a begin to the next change.
Effect is gaps and islands: reports of work at most two work periods apart are one island.

A *claim* is (trial, group, topic, partition, member).
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # as all the world writes it
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from rebalance_lab.analysis.tables.schemas import EVENT_ID, column
from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.intervals import KILL, PAUSE, WORK_PERIOD_MS

#: One row an interval. Times in microseconds; `begin` and `end` are the events that bound it,
#: `end` is null (and `end_us` the trial's last event) where the history ends first.
INTERVALS = StructType(
    [
        column("trial", StringType()),
        column("layer", StringType()),
        column("member", StringType()),
        column("group", StringType()),
        column("topic", StringType()),
        column("partition", IntegerType()),
        column("begin_us", LongType()),
        column("end_us", LongType()),
        column("begin", EVENT_ID),
        column("end", EVENT_ID, null=True),
    ]
)

_CLAIM = ("trial", "group", "topic", "partition", "member")
_EVENT = ("at_us", "actor", "n")  # an event, and its place in the merge order


def ownership_intervals(events: DataFrame, trials: DataFrame) -> DataFrame:
    """EVENTS and TRIALS to INTERVALS, in no order: all three layers.

    Claims whose events lack member, topic or partition are left out (the checks refuse such a
    history). `trials` tells the work period; trials that it lacks have no effect intervals.
    """
    named = events.withColumn("group", F.coalesce("group", F.lit("")))
    claimed = named.where(F.col("member").isNotNull() & F.col("topic").isNotNull() & F.col("partition").isNotNull())
    faults = _faults(events)
    last = events.groupBy("trial").agg(F.max("at_us").alias("last_us"))
    tables = (
        _from_marks(_belief_marks(named, claimed, faults), last, Layer.BELIEF, _EVENT),
        _from_marks(_registry_marks(claimed), last, Layer.REGISTRY, ("zxid", "n")),
        _effect(claimed, faults, trials),
    )
    whole = reduce(DataFrame.unionByName, tables)
    return whole.select(INTERVALS.fieldNames())


def _is(*kinds: Kind) -> Column:
    return F.col("kind").isin([kind.value for kind in kinds])


def _event() -> Column:
    return F.struct(*_EVENT)


def _faults(events: DataFrame) -> DataFrame:
    """Beginnings and ends of faults: trial, kind, fault, target (an actor), event."""
    return events.where(_is(Kind.FAULT_BEGAN, Kind.FAULT_ENDED)).select(
        "trial",
        "kind",
        F.get_json_object("detail", "$.fault").alias("fault"),
        F.get_json_object("detail", "$.target").alias("target"),
        _event().alias("event"),
    )


def _kills(faults: DataFrame) -> DataFrame:
    """The first kill of each actor: trial, actor, killed (the event)."""
    kills = faults.where(_is(Kind.FAULT_BEGAN) & (F.col("fault") == KILL))
    return kills.groupBy("trial", F.col("target").alias("actor")).agg(F.min("event").alias("killed"))


def _alive(claimed: DataFrame, faults: DataFrame, kind: Kind) -> DataFrame:
    """Claimed events of a kind, without those that an actor recorded after its kill."""
    reports = claimed.where(_is(kind)).join(_kills(faults), ["trial", "actor"], "left")
    return reports.where(F.col("killed").isNull() | (_event() < F.col("killed"))).drop("killed")


def _belief_marks(named: DataFrame, claimed: DataFrame, faults: DataFrame) -> DataFrame:
    """Claim, begins, event. A mark that ends names the events that end more than one claim."""
    owned = _alive(claimed, faults, Kind.OWNED)
    holders = owned.select(*_CLAIM, "actor").distinct()
    closed = named.where(_is(Kind.MEMBER_CLOSED)).select("trial", "member", *_EVENT)
    kills = faults.where(_is(Kind.FAULT_BEGAN) & (F.col("fault") == KILL))
    killed = holders.join(kills.withColumn("actor", F.col("target")), ["trial", "actor"])
    return (
        _marks(owned, begins=True)
        .unionByName(_marks(claimed.where(_is(Kind.DISOWNED)), begins=False))
        .unionByName(_marks(holders.drop("actor").join(closed, ["trial", "member"]), begins=False))
        .unionByName(killed.select(*_CLAIM, F.lit(False).alias("begins"), "event.*"))
    )


def _marks(rows: DataFrame, *, begins: bool, order: tuple[str, ...] = _EVENT) -> DataFrame:
    return rows.select(*_CLAIM, F.lit(begins).alias("begins"), *dict.fromkeys((*_EVENT, *order)))


def _registry_marks(claimed: DataFrame) -> DataFrame:
    """As the belief's, with zxid. CHANGED to one member is a mark for all who ever had the place."""
    order = ("zxid", "n")
    registry = claimed.where(F.col("layer") == Layer.REGISTRY.value)
    changed = registry.where(_is(Kind.CHANGED)).withColumnRenamed("member", "to")
    holders = registry.where(_is(Kind.CREATED, Kind.CHANGED)).select(*_CLAIM).distinct()
    passed_on = holders.join(changed, ["trial", "group", "topic", "partition"])
    return (
        _marks(registry.where(_is(Kind.CREATED)), begins=True, order=order)
        .unionByName(_marks(registry.where(_is(Kind.DELETED)), begins=False, order=order))
        .unionByName(
            passed_on.select(
                *_CLAIM, (F.col("member") == F.col("to")).alias("begins"), *dict.fromkeys((*_EVENT, *order))
            )
        )
    )


def _from_marks(marks: DataFrame, last: DataFrame, layer: Layer, order: tuple[str, ...]) -> DataFrame:
    """Intervals: from each change to "begins" to the change that follows it, if one does."""
    in_claim = Window.partitionBy(*_CLAIM).orderBy(*order)
    before = F.coalesce(F.lag("begins").over(in_claim), F.lit(False))
    changes = marks.withColumn("before", before).where(F.col("begins") != F.col("before"))
    bounded = changes.withColumn("end", F.lead(_event()).over(in_claim)).where("begins").join(last, "trial")
    return bounded.select(
        *_CLAIM,
        F.lit(layer.value).alias("layer"),
        F.col("at_us").alias("begin_us"),
        # Never before its begin: a server's wall clock may step back, its zxids do not.
        F.greatest("at_us", F.coalesce("end.at_us", "last_us")).alias("end_us"),
        F.struct("actor", "n").alias("begin"),
        _id("end"),
    )


def _effect(claimed: DataFrame, faults: DataFrame, trials: DataFrame) -> DataFrame:
    """Islands of work. A kill or pause of the actor, and the end of a pause, cut an island."""
    periods = trials.select("trial", _period_us().alias("period_us"))
    worked = _alive(claimed, faults, Kind.WORKED)
    cutting = (_is(Kind.FAULT_BEGAN) & F.col("fault").isin(KILL, PAUSE)) | (
        _is(Kind.FAULT_ENDED) & (F.col("fault") == PAUSE)
    )
    cuts = faults.where(cutting).withColumn("actor", F.col("target"))
    workers = worked.select(*_CLAIM, "actor").distinct()
    marks = _marks(worked, begins=True).unionByName(
        workers.join(cuts, ["trial", "actor"]).select(*_CLAIM, F.lit(False).alias("begins"), "event.*")
    )
    in_claim = Window.partitionBy(*_CLAIM).orderBy(*_EVENT)
    before = F.lag(F.struct("begins", "at_us")).over(in_claim)
    near = before["begins"] & (F.col("at_us") - before["at_us"] <= 2 * F.col("period_us"))
    starts = F.when(F.col("begins") & F.coalesce(near, F.lit(False)), 0).otherwise(1)
    islands = marks.join(F.broadcast(periods), "trial").withColumn("starts", starts)
    islands = islands.withColumn("island", F.sum("starts").over(in_claim)).where("begins")
    runs = islands.groupBy(*_CLAIM, "island").agg(F.min(_event()).alias("first"), F.max(_event()).alias("end"))
    return runs.select(
        *_CLAIM,
        F.lit(Layer.EFFECT.value).alias("layer"),
        F.col("first.at_us").alias("begin_us"),
        F.col("end.at_us").alias("end_us"),
        F.struct("first.actor", "first.n").alias("begin"),
        _id("end"),
    )


def _period_us() -> Column:
    said = F.try_element_at("parameters", F.lit("work_period_ms")).cast("double").cast("long")
    return F.coalesce(said, F.lit(WORK_PERIOD_MS)) * 1000


def _id(name: str) -> Column:
    """The id of an event, null where there is none."""
    return F.when(F.col(name).isNotNull(), F.struct(f"{name}.actor", f"{name}.n")).alias(name)
