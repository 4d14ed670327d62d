"""The tables of a store that Spark makes: judged trials, what they show of each claim, and summaries."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # the usual name
from pyspark.sql.types import StringType, StructType

from rebalance_lab.analysis.frames import arrow_schema, arrow_table, dealt, each_row, object_of, rows_of, table
from rebalance_lab.analysis.ledger import Ledger
from rebalance_lab.analysis.parquet import scratch_of
from rebalance_lab.analysis.results import (
    Analysis,
    Episode,
    Fit,
    HerdCost,
    KindCount,
    LeftOut,
    OutcomeCount,
    Summary,
    TrialMeasures,
    TrialOutcome,
    Verdict,
)
from rebalance_lab.analysis.session import cores_of
from rebalance_lab.analysis.store import Store
from rebalance_lab.analysis.sweeps import TASKS_PER_CORE
from rebalance_lab.analysis.tables.claim_verdicts import claim_verdicts
from rebalance_lab.analysis.tables.fits import cost_fits
from rebalance_lab.analysis.tables.readings import readings_table
from rebalance_lab.analysis.tables.scenario_summaries import scenario_summaries
from rebalance_lab.analysis.tables.schemas import HISTORIES, column
from rebalance_lab.analysis.tables.trial_counts import first_trials, kind_counts, outcome_counts
from rebalance_lab.analysis.tables.trial_results import (
    PLACES,
    herd_costs,
    judged_folders,
    judged_trials,
    rebalance_episodes,
    trial_measures,
    trial_outcomes,
    trial_results,
    trials_left_out,
)
from rebalance_lab.analysis.workers import Row
from rebalance_lab.history.disk import is_for_want_of_space, no_space

T = TypeVar("T")

_NAMES = StructType([column("trial", StringType())])

#: The tables of an Analysis: the classes of their rows, and the columns by which these are sorted.
_COLLECTED: Mapping[str, tuple[type, tuple[str, ...]]] = {
    "outcomes": (TrialOutcome, ("trial", "check")),
    "measures": (TrialMeasures, ("trial",)),
    "episodes": (Episode, ("trial", "group", "number")),
    "herd_costs": (HerdCost, ("trial", "group", "begin_us")),
    "fits": (Fit, ("scenario", "world", "rules", "change", "measure", "model")),
    "summaries": (Summary, ("scenario", "world", "rules", "control", "plant", "settings", "measure")),
}

#: Small queries keep one core busy.
_COLLECTED_AT_ONCE = 2

_INTERRUPTED_EACH_S = 0.1

#: The most trials that one task judges: those of a lost executor are judged again, and the executors of a cluster come
#: one by one. With fewer trials a task every later query has more tasks (64: 5 % more time for 2,000 trials).
TRIALS_PER_TASK = 256

#: What Spark says of a worker that ended, and what the lab says of its trial.
WORKER_ENDED_IN_SPARK = "Python worker exited unexpectedly"
WORKER_ENDED = "the process that judged it ended; it may need more memory than this machine has"


def summarise(
    spark: SparkSession, store: Store, ledger: Ledger, *, rejudge: bool, most: int | None = None
) -> tuple[Analysis, list[str]]:
    """See `summarised`. Trials are judged where they are recorded. Raises OSError if the disk of Spark's scratch folder
    is full."""
    try:

        def judge(some: Sequence[str]) -> DataFrame:
            return judged_folders(places_of(spark, store, some), rejudge=rejudge)

        with judged_by(judge, list(store.folders), _queries_with(spark, ledger)) as (queries, left_out):
            return _analysis(queries, left_out, most)
    except Exception as error:  # asked while Spark runs, because Spark's errors ask the JVM for their text
        scratch = scratch_of(spark)
        if scratch is None or not is_for_want_of_space(error, scratch):
            raise
        raise no_space(scratch) from error


def summarised(
    spark: SparkSession, places: list[Row], ledger: Ledger, *, rejudge: bool = False, most: int | None = None
) -> tuple[Analysis, list[str]]:
    """An Analysis without trials, intervals and commands, and the ids of the trials that are examples of a verdict.
    `places`: rows of HISTORIES. `rejudge`: judge also the trials of which results are kept. `most`: see `collected`."""
    with _judged_rows(spark, places, _queries_with(spark, ledger), rejudge=rejudge) as (queries, left_out):
        return _analysis(queries, left_out, most)


def places_of(spark: SparkSession, store: Store, trials: Sequence[str]) -> DataFrame:
    """PLACES of some trials of a store. Many are dealt to tasks of about equal numbers: by name, one task would have
    all trials of a costly scenario."""
    base = store.path.resolve()
    columns = {
        "trial": list(trials),
        "folder": [_whole_path(base, store, store.folders[name]) for name in trials],
        "looks": [store.seen[name][0] for name in trials],
    }
    return _to_judge(spark, pa.table(columns, schema=arrow_schema(PLACES)), PLACES)


def _to_judge(spark: SparkSession, rows: pa.Table, schema: StructType, *, neighbours: bool = False) -> DataFrame:
    """A row for each trial, dealt to the tasks that judge them. Few are not worth a shuffle."""
    tasks = max(TASKS_PER_CORE * cores_of(spark), -(-len(rows) // TRIALS_PER_TASK))
    if len(rows) <= tasks:
        return spark.createDataFrame(rows, schema=schema)
    return dealt(spark, rows, schema, tasks, neighbours=neighbours)


def _whole_path(base: Path, store: Store, folder: Path) -> str:
    """A trial's folder, below the store's whole path `base`. The store may be a single trial, and the folder a link."""
    return str(base if folder == store.path else base / folder.name)


@dataclass(frozen=True, slots=True)
class _Queries:
    """RESULTS, and every table that is made of them (`store_tables`). Nothing has been computed."""

    results: DataFrame
    tables: Mapping[str, DataFrame]


def _queries(results: DataFrame, readings: DataFrame) -> _Queries:
    return _Queries(results, store_tables(results, readings))


def _queries_with(spark: SparkSession, ledger: Ledger) -> Callable[[DataFrame], _Queries]:
    """JUDGED to queries."""
    return lambda found: _queries(trial_results(found), readings_table(spark, ledger))


def _analysis(queries: _Queries, left_out: Iterable[LeftOut], most: int | None) -> tuple[Analysis, list[str]]:
    analysis, examples = _collected(queries, most)
    return dataclasses.replace(analysis, left_out=tuple(sorted(left_out, key=attrgetter("trial")))), examples


@contextmanager
def judged(
    spark: SparkSession, places: list[Row], *, rejudge: bool = False
) -> Iterator[tuple[DataFrame, tuple[LeftOut, ...]]]:
    """RESULTS of the trials that can be judged, and the others. `places`: rows of HISTORIES."""
    with _judged_rows(spark, places, trial_results, rejudge=rejudge) as (results, left_out):
        yield results, left_out


def _judged_rows(
    spark: SparkSession, places: list[Row], prepare: Callable[[DataFrame], T], *, rejudge: bool
) -> AbstractContextManager[tuple[T, tuple[LeftOut, ...]]]:
    def judge(some: Sequence[str]) -> DataFrame:
        wanted = set(some)
        rows = [row for row in places if row["trial"] in wanted]
        wanted_rows = arrow_table(rows, HISTORIES)
        # Neighbours are in the same Parquet file, which is opened once for them.
        return judged_trials(_to_judge(spark, wanted_rows, HISTORIES, neighbours=True), rejudge=rejudge)

    return judged_by(judge, [row["trial"] for row in places], prepare)


@contextmanager
def judged_by(
    judge: Callable[[Sequence[str]], DataFrame], trials: Sequence[str], prepare: Callable[[DataFrame], T]
) -> Iterator[tuple[T, tuple[LeftOut, ...]]]:
    """What `prepare` makes of JUDGED of these trials, and those that cannot be judged. `judge` makes JUDGED of trials
    by their ids. `prepare` is called while the workers judge, unless `judge` has had them do so already: building the
    queries of a ledger takes seconds, too. It runs none. A trial that ends the worker which judges it cannot be
    judged."""
    fatal: list[str] = []
    with ExitStack() as done:

        def of(some: Sequence[str]) -> tuple[T, list[Row]]:
            found = judge(some).persist()  # several tables are made of it
            done.callback(found.unpersist)
            with _jobs_aside(found.sparkSession, 1) as submit:
                failed = submit(rows_of, trials_left_out(found))
                return prepare(found), failed.result()

        try:
            prepared, failed = of(trials)
        except Py4JJavaError as error:
            fatal = _fatal(judge, trials, error)
            prepared, failed = of([trial for trial in trials if trial not in fatal])
        left_out = [LeftOut(**row) for row in failed] + [LeftOut(trial, WORKER_ENDED) for trial in fatal]
        yield prepared, tuple(left_out)


@contextmanager
def _jobs_aside(spark: SparkSession, threads: int) -> Iterator[Callable[..., Future[Any]]]:
    """A function that runs another one in one of so many threads. If the block ends with an error or a signal, the jobs
    of these threads are cancelled; otherwise the block would end only after them."""
    running: list[Future[Any]] = []
    with ThreadPoolExecutor(threads) as pool:

        def submit(run: Callable[..., Any], *given: Any) -> Future[Any]:
            running.append(pool.submit(run, *given))
            return running[-1]

        try:
            yield submit
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            with suppress(Py4JError, PySparkException, OSError):  # Spark may be what has failed
                while wait(running, _INTERRUPTED_EACH_S).not_done:  # a job may not have begun yet
                    spark.interruptAll()
            raise


def _fatal(judge: Callable[[Sequence[str]], DataFrame], trials: Sequence[str], error: Py4JJavaError) -> list[str]:
    """The trials that end the worker which judges them: each half is tried until they are alone. Raises `error` if it
    is another one."""
    if WORKER_ENDED_IN_SPARK not in str(error):
        raise error
    if len(trials) == 1:
        return list(trials)
    middle = len(trials) // 2
    fatal = []
    for half in (trials[:middle], trials[middle:]):
        try:
            rows_of(trials_left_out(judge(half)))
        except Py4JJavaError as again:
            fatal += _fatal(judge, half, again)
    return fatal


def store_tables(results: DataFrame, readings: DataFrame) -> dict[str, DataFrame]:
    """RESULTS and READINGS to every table that is made of judged trials, by the names of `results.Analysis`. What the
    commands show and what they publish are these."""
    rows = _rows_of_trials(results)
    return rows | {
        "verdicts": claim_verdicts(results, readings, rows["herd_costs"]),
        "fits": cost_fits(rows["herd_costs"]),
        "summaries": scenario_summaries(results, rows["measures"]),
    }


def _rows_of_trials(results: DataFrame) -> dict[str, DataFrame]:
    """The tables with rows of single trials."""
    return {
        "outcomes": trial_outcomes(results),
        "measures": trial_measures(results),
        "episodes": rebalance_episodes(results),
        "herd_costs": herd_costs(results),
    }


def collected(results: DataFrame, readings: DataFrame, most: int | None = None) -> tuple[Analysis, list[str]]:
    """RESULTS and READINGS to an Analysis without trials, intervals and commands, and the ids of the trials that are
    examples of a verdict. `most`: about how many trials its tables may have rows of, None for all."""
    return _collected(_queries(results, readings), most)


def _collected(queries: _Queries, most: int | None) -> tuple[Analysis, list[str]]:
    results, tables = queries.results, dict(queries.tables)
    verdicts = sorted(rows_of(tables["verdicts"]), key=lambda row: row["position"])
    examples = {trial for row in verdicts for trial in row["examples"]}
    kinds: tuple[KindCount, ...] = ()
    counts: tuple[OutcomeCount, ...] = ()
    if most is not None:
        kinds = tuple(object_of(KindCount, row) for row in each_row(kind_counts(results)))
        counts = tuple(object_of(OutcomeCount, row) for row in each_row(outcome_counts(results)))
        tables |= _rows_of_trials(_sample(results, examples, counts, most))
    with _jobs_aside(results.sparkSession, _COLLECTED_AT_ONCE) as submit:
        coming = {name: submit(_sorted, tables[name], *of) for name, of in _COLLECTED.items()}
        rows = {name: each.result() for name, each in coming.items()}
    analysis = Analysis(
        kinds=kinds,
        counts=counts,
        verdicts=tuple(object_of(Verdict, row | {"replay": None}) for row in verdicts),
        intervals=(),
        trials=(),
        **rows,
    )
    return analysis, sorted(examples)


def _sample(results: DataFrame, examples: Iterable[str], counts: Iterable[OutcomeCount], most: int) -> DataFrame:
    """RESULTS of the trials that a page may show: the examples, the first of each kind with an outcome, and of each
    kind as many as there is room for."""
    chosen = {*islice(sorted({each.first for each in counts}), most), *examples}
    chosen |= {row["trial"] for row in rows_of(first_trials(results, most))}
    names = table(results.sparkSession, [{"trial": trial} for trial in sorted(chosen)], _NAMES)
    return results.join(F.broadcast(names), "trial", "left_semi")


def _sorted(table: DataFrame, kind: type[T], columns: tuple[str, ...]) -> tuple[T, ...]:
    """The rows of a table as objects, sorted by these columns; None comes first."""
    return tuple(sorted((object_of(kind, row) for row in each_row(table)), key=partial(_key, columns)))


def _key(columns: tuple[str, ...], row: object) -> list[tuple[bool, Any]]:
    values = [getattr(row, column) for column in columns]
    return [(value is not None, value) for value in values]
