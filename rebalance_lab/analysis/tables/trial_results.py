"""The tables with rows of single trials: one pass over the events of a store makes all of them.

Only the place of a trial travels through Spark; a worker reads its events there, one trial at a time, unless its
judgement is kept (`trialwise.judged`). With a row for each event, transporting the events would take five times as long
as judging them.
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

from rebalance_lab.analysis.arrow_events import READ, REPEATED, events_of
from rebalance_lab.analysis.frames import plain_row, schema_of
from rebalance_lab.analysis.kept import code_that_judges
from rebalance_lab.analysis.results import MEASURES, Episode, HerdCost, Interval, OfTrial, TrialMeasures, TrialOutcome
from rebalance_lab.analysis.store import history_row
from rebalance_lab.analysis.tables.schemas import HISTORIES, TRIALS, column
from rebalance_lab.analysis.tally import count_one, tally_of
from rebalance_lab.analysis.trialwise.episodes import CHANGE
from rebalance_lab.analysis.trialwise.judged import Judged, judgement, judgement_key, keep_judged, kept_judged
from rebalance_lab.analysis.trialwise.rows import intervals_of
from rebalance_lab.analysis.workers import Row, map_rows, why_left_out
from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History, HistoryError, Trial, digest, load

T = TypeVar("T")

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
            if field.name not in ("document", "folder", "looks", "part", "first_group", "groups")
        ),
        column("events", LongType()),
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

#: Where a trial of a store on this machine, or on a disk that all workers see, lies.
PLACES = StructType([column(name, StringType()) for name in ("trial", "folder", "looks")])

_AS_GIVEN = [field.name for field in RESULTS.fields if field.name in HISTORIES.fieldNames()]


def judged_trials(histories: DataFrame, *, rejudge: bool = False) -> DataFrame:
    """HISTORIES to JUDGED, one row a trial.

    A trial is judged once by the same code: its results are kept in the trial's folder (`analysis.kept`). `rejudge`:
    judge all trials again. A trial without events is judged too: nothing happened, so nothing is proved.
    """
    tally = tally_of(histories.sparkSession)

    def judge(row: Row) -> list[Row]:
        judged = judged_row(row, rejudge=rejudge)
        count_one(tally)
        return [judged]

    return map_rows(histories, JUDGED, judge)


def judged_folders(folders: DataFrame, *, rejudge: bool = False) -> DataFrame:
    """PLACES to JUDGED, as `judged_trials`. The workers read `trial.json` too: the driver needs only the names."""
    tally = tally_of(folders.sparkSession)

    def judge(row: Row) -> list[Row]:
        judged = judged_place(row, rejudge=rejudge)
        count_one(tally)
        return [judged]

    return map_rows(folders, JUDGED, judge)


def trial_results(judged: DataFrame) -> DataFrame:
    """JUDGED to RESULTS: the trials that could be judged."""
    return judged.where(F.col("why_left_out").isNull()).drop("why_left_out")


def trials_left_out(judged: DataFrame) -> DataFrame:
    """JUDGED to the trials that could not be judged: trial, why."""
    return judged.where(F.col("why_left_out").isNotNull()).select("trial", F.col("why_left_out").alias("why"))


def held_intervals(histories: DataFrame) -> DataFrame:
    """HISTORIES to INTERVALS, in no order, by the functions of subjects (`history.intervals.holdings_by_subject`);
    for all others there is SQL (`tables.intervals`). Raises HistoryError with the trial's name, when Spark runs it."""
    return map_rows(histories, INTERVALS, lambda row: _read(row, _interval_rows))


def trial_outcomes(results: DataFrame) -> DataFrame:
    """RESULTS to OUTCOMES: a row for each trial and each check that applies to it."""
    rows = results.withColumn("bitten", all_bitten())
    own = [name for name in OUTCOMES.fieldNames() if name not in FINDINGS.fieldNames()]
    return rows.select(*own, F.inline("findings"))


def all_bitten() -> Column:
    """Of RESULTS: whether the trial had faults, and each is shown to have bitten."""
    return (F.col("faults") > 0) & (F.col("bitten") == F.col("faults"))


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


#: The columns of RESULTS that come from `trial.json`, of a trial that could not be read.
_UNREAD: Row = {
    "scenario": "",
    "world": "",
    "generation": "",
    "rules": "",
    "seed": 0,
    "control": False,
    "plant": None,
    "parameters": [],
    "history_sha256": "",
}

#: The columns of RESULTS that come from the events of a trial, of one that could not be judged.
NOT_JUDGED: Row = {
    "events": 0,
    "faults": 0,
    "bitten": 0,
    "unproved": None,
    "findings": [],
    "episodes": [],
    "herd_costs": [],
}


def judged_place(place: Row, *, rejudge: bool = False) -> Row:
    """The row of JUDGED for one of PLACES."""
    folder = Path(place["folder"])
    try:
        row = history_row(folder, place["looks"])
    except HistoryError as error:
        return _UNREAD | NOT_JUDGED | {"trial": place["trial"], "why_left_out": str(error)}
    return judged_row(row, rejudge=rejudge)


def judged_row(row: Row, *, rejudge: bool = False) -> Row:
    """The row of JUDGED for one of HISTORIES."""
    try:
        return result_row(row, rejudge=rejudge) | {"why_left_out": None}
    except Exception as error:  # whatever it is, the other trials can be judged
        given = {name: row[name] for name in _AS_GIVEN}
        return given | NOT_JUDGED | {"why_left_out": why_left_out(error, f"the trial in {row['folder']}")}


def result_row(row: Row, *, rejudge: bool = False) -> Row:
    """The row of RESULTS for one of HISTORIES: what is kept of the trial, or what its events show now. Raises
    HistoryError."""
    given = {name: row[name] for name in _AS_GIVEN}
    code = code_that_judges()
    folder, key = Path(row["folder"]), judgement_key(code or "", row["document"], row["history_sha256"])
    kept = None if code is None or not row["history_sha256"] or rejudge else kept_judged(folder, key)
    if kept is not None and (row["part"] is not None or kept.looks == row["looks"]):
        return given | kept.judgement
    history = _history(row)
    if kept is None:
        kept = Judged(row["looks"], _named(row, judgement, history))
    given["history_sha256"] = row["history_sha256"] or digest(history.events)
    if code is not None and row["history_sha256"]:
        keep_judged(folder, key, Judged(row["looks"], kept.judgement))
    return given | kept.judgement


def _read(row: Row, rows_of: Callable[[History], T]) -> T:
    """What a function makes of the history of a row of HISTORIES. Raises HistoryError with the trial's name."""
    return _named(row, rows_of, _history(row))


def _history(row: Row) -> History:
    """From Parquet if the events are there, else from the trial's folder. Raises HistoryError."""
    if row["part"] is not None:
        return History(msgspec.json.decode(row["document"], type=Trial), stored_events(row))
    try:
        return History(msgspec.json.decode(row["document"], type=Trial), load(Path(row["folder"])).events)
    except OSError as error:
        raise HistoryError(f"the events of {row['folder']} cannot be read: {error}") from error


def _named(row: Row, rows_of: Callable[[History], T], history: History) -> T:
    try:
        return rows_of(history)
    except HistoryError as error:
        raise HistoryError(f"trial {row['trial']}: {error}") from error


def stored_events(place: Row) -> tuple[Event, ...]:
    """The events of a row of HISTORIES, read from Parquet."""
    if place["groups"] == 0:
        return ()
    groups = range(place["first_group"], place["first_group"] + place["groups"])
    return tuple(events_of(_part(place["part"]).read_row_groups(list(groups), columns=list(READ), use_threads=False)))


@lru_cache(maxsize=1)
def _part(path: str) -> pq.ParquetFile:
    """The last part stays open: to open it is to read the places of all its row groups, and the trials of a task lie
    side by side."""
    return pq.ParquetFile(path, read_dictionary=list(REPEATED), pre_buffer=False)


def _interval_rows(history: History) -> list[Row]:
    return _plain(intervals_of(history), INTERVALS)


def _plain(rows: Iterable[Any], schema: StructType) -> list[Row]:
    return [plain_row(row, schema) for row in rows]
