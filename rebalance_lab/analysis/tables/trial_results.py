"""The tables with rows of single trials: one pass over the events of a store makes all of them.

Only the place of a trial travels through Spark; a worker reads its events there, one trial at a time. With a row for
each event, transporting the events would take five times as long as judging them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the usual name
from pyspark.sql.types import ArrayType, BooleanType, LongType, StringType, StructType

from rebalance_lab.analysis.arrow_events import events_of
from rebalance_lab.analysis.frames import plain_row, schema_of
from rebalance_lab.analysis.kept import code_that_judges, keep, kept, key_of
from rebalance_lab.analysis.results import MEASURES, Episode, HerdCost, Interval, OfTrial, TrialMeasures, TrialOutcome
from rebalance_lab.analysis.tables.schemas import HISTORIES, TRIALS, column
from rebalance_lab.analysis.trialwise.credentials import unproved
from rebalance_lab.analysis.trialwise.episodes import CHANGE, episodes
from rebalance_lab.analysis.trialwise.rows import herd_costs_of, intervals_of, outcomes_of
from rebalance_lab.analysis.workers import Row, map_rows, why_left_out
from rebalance_lab.checks import judge
from rebalance_lab.checks.faults import faults
from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History, HistoryError, Trial

T = TypeVar("T")

#: The file in a trial's folder that keeps the columns of RESULTS which come from its events.
JUDGEMENT_FILE = ".judgement"

#: One row an interval, an episode, a spaced change, a trial. The fields are those of the classes.
INTERVALS, EPISODES, HERD_COSTS, TRIAL_MEASURES = map(schema_of, (Interval, Episode, HerdCost, TrialMeasures))

#: What one check reports of a trial: the fields of `results.TrialOutcome` but those of the trial.
FINDINGS = StructType([field for field in schema_of(TrialOutcome) if field.name not in OfTrial.__dataclass_fields__])

#: `faults`: how many the trial had. `unproved`: see `trialwise.credentials`.
_FAULTS, _UNPROVED = column("faults", LongType()), column("unproved", StringType(), null=True)

#: One row a trial: HISTORIES without the place of its events; how many faults it had and how many of them are shown
#: to have bitten; and the rows that it has in three tables.
RESULTS = StructType(
    [
        *(
            field
            for field in HISTORIES.fields
            if field.name not in ("document", "folder", "part", "first_group", "groups")
        ),
        _FAULTS,
        column("bitten", LongType()),
        _UNPROVED,
        column("findings", ArrayType(FINDINGS, False)),
        column("episodes", ArrayType(EPISODES, False)),
        column("herd_costs", ArrayType(HERD_COSTS, False)),
    ]
)

#: RESULTS, and of a trial that could not be judged why; the columns that come from its events are then empty.
JUDGED = StructType([*RESULTS.fields, column("why_left_out", StringType(), null=True)])

#: One row a trial and check that applies to it. `bitten`: the trial had faults, and each is shown to have bitten.
#: `history_sha256` is of the events themselves, as `history.files.digest` computes it, whatever `trial.json` says.
OUTCOMES = StructType(
    [
        *(field for field in TRIALS.fields if field.name != "document"),
        column("history_sha256", StringType()),
        _FAULTS,
        column("bitten", BooleanType()),
        _UNPROVED,
        *FINDINGS.fields,
    ]
)

_AS_GIVEN = [field.name for field in RESULTS.fields if field.name in HISTORIES.fieldNames()]


def judged_trials(histories: DataFrame, *, rejudge: bool = False) -> DataFrame:
    """HISTORIES to JUDGED, one row a trial.

    A trial is judged once by the same code: its results are kept in the trial's folder (`analysis.kept`). `rejudge`:
    judge all trials again. A trial without events is judged too: nothing happened, so nothing is proved.
    """
    return map_rows(histories, JUDGED, lambda row: [judged_row(row, rejudge=rejudge)])


def trial_results(judged: DataFrame) -> DataFrame:
    """JUDGED to RESULTS: the trials that could be judged."""
    return judged.where(F.col("why_left_out").isNull()).drop("why_left_out")


def trials_left_out(judged: DataFrame) -> DataFrame:
    """JUDGED to the trials that could not be judged: trial, why."""
    return judged.where(F.col("why_left_out").isNotNull()).select("trial", F.col("why_left_out").alias("why"))


def ownership_intervals(histories: DataFrame) -> DataFrame:
    """HISTORIES to INTERVALS, in no order: all three layers. Raises HistoryError with the trial's name, when Spark
    runs it."""
    return map_rows(histories, INTERVALS, lambda row: _read(row, _interval_rows))


def trial_outcomes(results: DataFrame) -> DataFrame:
    """RESULTS to OUTCOMES: a row for each trial and each check that applies to it."""
    rows = results.withColumn("bitten", (F.col("faults") > 0) & (F.col("bitten") == F.col("faults")))
    own = [name for name in OUTCOMES.fieldNames() if name not in FINDINGS.fieldNames()]
    return rows.select(*own, F.inline("findings"))


def rebalance_episodes(results: DataFrame) -> DataFrame:
    """RESULTS to EPISODES, in no order."""
    return results.select(F.inline("episodes"))


def herd_costs(results: DataFrame) -> DataFrame:
    """RESULTS to HERD_COSTS, in no order."""
    return results.select(F.inline("herd_costs"))


def trial_measures(results: DataFrame) -> DataFrame:
    """RESULTS to TRIAL_MEASURES: the sums over the episodes of each trial's changes, or 0 if it had none. Its assembly
    and its closing are not part of the experiment."""
    changes = F.filter("episodes", lambda episode: episode["part"] == CHANGE)
    found = results.select("trial", changes.alias("changes"))
    return found.select("trial", *(_sum(name).alias(name) for name in MEASURES))


def _sum(name: str) -> Column:
    if name == "episodes":
        return F.size("changes").cast("long")
    return F.aggregate("changes", F.lit(0).cast("long"), lambda total, each: total + _value(name, each))


def _value(name: str, episode: Column) -> Column:
    return episode["end_us"] - episode["begin_us"] if name == "rebalance_us" else episode[name]


# -- in Spark's workers ---------------------------------------------------------------------------


#: What stands for the events of a trial that could not be judged.
_NOTHING: Row = {"faults": 0, "bitten": 0, "unproved": None, "findings": [], "episodes": [], "herd_costs": []}


def judged_row(row: Row, *, rejudge: bool = False) -> Row:
    """The row of JUDGED for one of HISTORIES."""
    try:
        return result_row(row, rejudge=rejudge) | {"why_left_out": None}
    except Exception as error:  # whatever it is, the other trials can be judged
        given = {name: row[name] for name in _AS_GIVEN}
        return given | _NOTHING | {"why_left_out": why_left_out(error, f"the trial in {row['folder']}")}


def result_row(row: Row, *, rejudge: bool = False) -> Row:
    """The row of RESULTS for one of HISTORIES: what is kept of the trial, or what its events show now. Raises
    HistoryError."""
    given = {name: row[name] for name in _AS_GIVEN}
    code = code_that_judges()
    if code is None:
        return given | _read(row, judgement)
    place, key = Path(row["folder"]) / JUDGEMENT_FILE, key_of(code, row["document"], row["history_sha256"])
    body = None if rejudge else kept(place, key)
    if body is None:
        body = msgspec.json.encode(_read(row, judgement))
        keep(place, key, body)
    return given | msgspec.json.decode(body, type=Row)


def _read(row: Row, rows_of: Callable[[History], T]) -> T:
    """What a function makes of the history of a row of HISTORIES. Raises HistoryError with the trial's name."""
    history = History(msgspec.json.decode(row["document"], type=Trial), stored_events(row))
    try:
        return rows_of(history)
    except HistoryError as error:
        raise HistoryError(f"trial {row['trial']}: {error}") from error


def stored_events(place: Row) -> tuple[Event, ...]:
    """The events of a row of HISTORIES, read from Parquet."""
    if place["groups"] == 0:
        return ()
    groups = range(place["first_group"], place["first_group"] + place["groups"])
    return tuple(events_of(_part(place["part"]).read_row_groups(list(groups), use_threads=False)))


@lru_cache(maxsize=1)
def _part(path: str) -> pq.ParquetFile:
    """The last part stays open: to open it is to read the places of all its row groups, and the trials of a task lie
    side by side."""
    return pq.ParquetFile(path)


def judgement(history: History) -> Row:
    """The columns of RESULTS that come from the events of a trial. Raises HistoryError."""
    findings = judge(history)
    found = faults(history)
    return {
        "faults": len(found),
        "bitten": sum(fault.why_not_bitten is None for fault in found),
        "unproved": unproved(history),
        "findings": _plain(outcomes_of(history.trial, findings), FINDINGS),
        "episodes": _plain(episodes(history), EPISODES),
        "herd_costs": _plain(herd_costs_of(history), HERD_COSTS),
    }


def _interval_rows(history: History) -> list[Row]:
    return _plain(intervals_of(history), INTERVALS)


def _plain(rows: Iterable[Any], schema: StructType) -> list[Row]:
    return [plain_row(row, schema) for row in rows]
