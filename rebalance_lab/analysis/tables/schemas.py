"""Schemas that several tables share. Spark's workers import this: keep it light."""

from __future__ import annotations

from pyspark.sql.types import (
    BooleanType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)


def column(name: str, kind: object, *, null: bool = False) -> StructField:
    """A column; it cannot be null by default."""
    return StructField(name, kind, nullable=null)


#: (actor, n), as `history.events.EventId`. The fields may be null because Arrow cannot read a null struct otherwise.
EVENT_ID = StructType([column("actor", StringType(), null=True), column("n", LongType(), null=True)])

#: One row an event, as `history.events.Event`, beside the trial (its folder's name).
#: `at_us` in microseconds; `detail` as JSON text.
EVENTS = StructType(
    [
        column("trial", StringType()),
        column("actor", StringType()),
        column("n", LongType()),
        column("at_us", LongType()),
        column("layer", StringType()),
        column("kind", StringType()),
        column("member", StringType(), null=True),
        column("session", StringType(), null=True),
        column("group", StringType(), null=True),
        column("generation", LongType(), null=True),
        column("topic", StringType(), null=True),
        column("partition", IntegerType(), null=True),
        column("epoch", LongType(), null=True),
        column("zxid", LongType(), null=True),
        column("cause", EVENT_ID, null=True),
        column("detail", StringType(), null=True),
    ]
)

#: One row a trial. `parameters` as text, numbers as JSON writes them; `document` is the whole
#: `history.files.Trial` as JSON text.
TRIALS = StructType(
    [
        column("trial", StringType()),
        column("scenario", StringType()),
        column("world", StringType()),
        column("generation", StringType()),
        column("rules", StringType()),
        column("seed", LongType()),
        column("control", BooleanType()),
        column("plant", StringType(), null=True),
        column("parameters", MapType(StringType(), StringType(), False)),
        column("document", StringType()),
    ]
)

#: One row a trial and where it lies: its `folder`, and what the files there look like (`analysis.store.looks`); its
#: events in `part`, a Parquet file, and the row groups there. These are null, and `history_sha256` is what `trial.json`
#: says, if the events are only in the folder.
HISTORIES = StructType(
    [
        *TRIALS.fields,
        column("history_sha256", StringType()),
        column("folder", StringType()),
        column("looks", StringType()),
        column("part", StringType(), null=True),
        column("first_group", LongType(), null=True),
        column("groups", LongType(), null=True),
    ]
)
