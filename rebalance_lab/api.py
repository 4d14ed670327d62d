"""What programs use; `rebalance_lab` re-exports it. Names, settings and errors are those of the commands. Spark, pandas
and the pictures are imported when they are first used."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from rebalance_lab.analysis.errors import SparkStartError, TablesError
from rebalance_lab.analysis.results import Analysis, Episode, HerdCost, Interval, TrialOutcome, trial_facts
from rebalance_lab.analysis.store import read_store
from rebalance_lab.analysis.tabular import MissingLibrary, Tabular, UnknownTable, needed_for
from rebalance_lab.analysis.trialwise.episodes import episodes
from rebalance_lab.analysis.trialwise.judged import keep_judgement
from rebalance_lab.analysis.trialwise.rows import herd_costs_of, intervals_of, outcomes_of
from rebalance_lab.analysis.uri import StoreUri
from rebalance_lab.checks import Finding, Outcome, judge
from rebalance_lab.history import files
from rebalance_lab.history.files import History, HistoryError, Trial
from rebalance_lab.history.scratch import temporary_folder
from rebalance_lab.subjects.zk_group.live_topics import create_topic
from rebalance_lab.testing.ensemble import EMBEDDED, ZooKeeperEnsemble, ZooKeeperFaults, running
from rebalance_lab.trials import api
from rebalance_lab.trials.api import Ended, FailedTrial, TrialResult, scenario_names
from rebalance_lab.trials.plan import OURS, Plan, PlanError, Value
from rebalance_lab.trials.scenario import PlanOptions
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.world.live.java import EmbeddedServerError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from rebalance_lab.analysis.published import Published
    from rebalance_lab.analysis.session import LocalSpark

__all__ = [
    "Analysis",
    "EmbeddedServerError",
    "FailedTrial",
    "Finding",
    "History",
    "HistoryError",
    "MissingLibrary",
    "Outcome",
    "PlanError",
    "Result",
    "Results",
    "SparkStartError",
    "TablesError",
    "Trial",
    "TrialError",
    "UnknownTable",
    "ZooKeeperEnsemble",
    "ZooKeeperFaults",
    "claims",
    "create_topic",
    "judge",
    "load",
    "load_store",
    "read_table",
    "register_histories",
    "run",
    "scenario_names",
    "spark",
    "sweep",
    "write_tables",
    "zookeeper",
]

#: Where trials are kept, unless a caller names another folder.
DEFAULT_STORE = Path("trials")

#: Tables of trials with one row for each of several things: the class of their rows, and the rows of one trial.
_ROWS: Mapping[str, tuple[type, Callable[[Result], Iterable[Any]]]] = {
    "outcomes": (TrialOutcome, lambda result: outcomes_of(result.trial, result.findings)),
    "intervals": (Interval, lambda result: intervals_of(result.history)),
    "episodes": (Episode, lambda result: episodes(result.history)),
    "herd_costs": (HerdCost, lambda result: herd_costs_of(result.history)),
}

TRIALS, EVENTS = "trials", "events"


class _OfTrials(Tabular):
    """The tables of one trial or of many: `trials` (a row for each: its settings, its status, what the checks
    measured), `outcomes` (what each check found), `intervals` (who had which partition when), `episodes`
    (rebalances of the whole group), `herd_costs` (what each change cost) and `events` (the history)."""

    __slots__ = ()

    def _results(self) -> Sequence[Result]:
        raise NotImplementedError

    @property
    def tables(self) -> tuple[str, ...]:
        return (TRIALS, *_ROWS, EVENTS)

    def to_spark(self, table: str, spark: SparkSession) -> DataFrame:
        """As every table, except that Spark's workers read events themselves from the folders of the trials."""
        stores = {each.folder.parent for each in self._results()}
        if table != EVENTS or len(stores) != 1:
            return super().to_spark(table, spark)
        with needed_for("a table in Spark"):
            from rebalance_lab.analysis.datasource import read_events  # noqa: PLC0415
        return read_events(spark, stores.pop(), [each.folder.name for each in self._results()])

    def _arrow(self, name: str) -> pa.Table:
        import pyarrow as pa  # noqa: PLC0415

        from rebalance_lab.analysis.arrow_events import event_batches  # noqa: PLC0415
        from rebalance_lab.analysis.frames import arrow_rows, arrow_schema, wide  # noqa: PLC0415
        from rebalance_lab.analysis.tables.schemas import EVENTS as EVENT_COLUMNS  # noqa: PLC0415

        results = self._results()
        if name == TRIALS:
            return wide([{**trial_facts(each.trial), "status": each.status, **each.measures} for each in results])
        if name == EVENTS:
            batches = (batch for each in results for batch in event_batches(each.trial.id, each.history.events))
            return pa.Table.from_batches(batches, schema=arrow_schema(EVENT_COLUMNS))
        kind, rows_of = _ROWS[name]
        return arrow_rows(kind, (row for each in results for row in rows_of(each)))


@dataclass(frozen=True, slots=True, repr=False)
class Result(TrialResult, _OfTrials):
    """A trial that was run, stored and judged.

    - `folder`: where it is stored. `trial`: what it was: scenario, world, seed, parameters, versions.
    - `findings`: what each check found (`Finding`: outcome, why, witness, measures), by the name of the check.
    - `expected`: the outcome that the scenario expects, by check; `status`: as expected | surprise | unknown.
    - `measures`: the numbers of all checks, as CHECK_MEASURE: `measures["belief_overlap_longest_us"]`.
    """

    @property
    def as_expected(self) -> bool:
        """Whether every check found what the scenario expects, and none is unknown."""
        return self.status == api.TrialStatus.AS_EXPECTED

    @property
    def violated(self) -> tuple[str, ...]:
        """The checks that found a violation."""
        return tuple(name for name, each in self.findings.items() if each.outcome is Outcome.VIOLATED)

    @property
    def history(self) -> History:
        """Its events, in their order. They are read from the folder each time. Raises HistoryError."""
        return files.load(self.folder)

    def _results(self) -> Sequence[Result]:
        return (self,)

    def __repr__(self) -> str:
        return f"<Result {self.trial.id}: {self.status}; violated: {', '.join(self.violated) or 'none'}>"

    def _repr_html_(self) -> str:
        """For notebooks: what happened, and who owned which partition over time, in all three layers."""
        with needed_for("the picture of a trial"):
            from rebalance_lab.report.trial_page import render_picture  # noqa: PLC0415
        page, height = render_picture(self.history, self.folder)
        return (
            f'<iframe title="{html.escape(self.trial.id)}" srcdoc="{html.escape(page)}" '
            f'style="width: 100%; height: {height}px; border: 0"></iframe>'
        )


@dataclass(frozen=True, slots=True, repr=False)
class Results(_OfTrials, Sequence[Result]):
    """The trials of a sweep or of a store. A sequence: `for result in results`, `results[0]`, `len(results)`.

    `failed`: trials that did not get to their end, with the plan and the reason.
    """

    results: tuple[Result, ...]
    failed: tuple[FailedTrial, ...] = ()

    @property
    def statuses(self) -> Counter[str]:
        """How many trials have each status; those that failed count as `failed`."""
        failed = {"failed": len(self.failed)} if self.failed else {}
        return Counter(each.status.value for each in self.results) + Counter(failed)

    @property
    def as_expected(self) -> bool:
        """Whether all trials came to their end and are as expected."""
        return not self.failed and all(each.as_expected for each in self.results)

    def _results(self) -> Sequence[Result]:
        return self.results

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Result, ...]: ...
    def __getitem__(self, index: int | slice) -> Result | tuple[Result, ...]:
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        told = ", ".join(f"{count} {status}" for status, count in sorted(self.statuses.items()))
        return f"<Results of {len(self.results) + len(self.failed)} trials: {told or 'none'}>"


def run(
    scenario: str,
    *,
    world: str = "simulated",
    rules: str | None = None,
    implementation: str = OURS,
    seed: int = 1,
    control: bool = False,
    plant: str | None = None,
    store: Path | str = DEFAULT_STORE,
    **settings: Value,
) -> Result:
    """Run one trial of a scenario, store it and judge it, as the command `run` does.

    - `world`: simulated (virtual time), processes (OS processes on a real ZooKeeper) or containers.
    - `rules`: described (the articles; the default) or shipped (Kafka 0.8.2.2).
    - `implementation`: whose members take part: ours, real (Kafka 0.8.2.2's own consumers) or mixed (both in turn).
    - `seed`: chooses every schedule of a simulated trial. `control`: the scenario without its fault.
    - `plant`: the name of a planted bug. `store`: the folder in which the trial gets a folder.
    - `settings`: of the scenario, as `rebalance-lab scenarios NAME` lists them: `pause_ms=500`.

    Raises PlanError for what cannot be run, TrialError and EmbeddedServerError for a trial that did not get to its
    end, OSError for a store that cannot be written.
    """
    values = _values(settings, plant)
    options = PlanOptions(world=world, rules=rules, implementation=implementation, control=control)
    (plan,) = api.plans(scenario, values, [seed], **options)
    return _result(api.run(plan, Path(store)))


def sweep(
    scenario: str,
    *,
    seeds: int | Iterable[int] = 10,
    world: str = "simulated",
    rules: str | None = None,
    implementation: str = OURS,
    control: bool = False,
    plant: str | None = None,
    processes: int = 1,
    master: str | None = None,
    spark_settings: Mapping[str, str] | None = None,
    store: Path | str = DEFAULT_STORE,
    **settings: Value | Iterable[Value],
) -> Results:
    """Run a scenario over settings and seeds, as the command `sweep` does.

    - `settings`: each with one value or several: `sweep("zombie", pause_ms=[500, 5000])`. Every combination is run.
    - `seeds`: how many, from 1; or which.
    - `processes`: 1 runs the trials in this process. With more, a script must stand under
      `if __name__ == "__main__":`, as always with `multiprocessing`.
    - `master`: run on Spark instead: `local[4]`, or a cluster whose workers see the store.
    - `spark_settings`: of Spark's, as `{"spark.executor.memory": "2g"}`; only with `master`.

    All else is as in `run`. The results come in the order of settings and seeds; a trial that did not get to its
    end is in `failed`. Raises PlanError, SparkStartError, OSError, EmbeddedServerError.
    """
    numbers = range(1, seeds + 1) if isinstance(seeds, int) else list(seeds)
    options = PlanOptions(world=world, rules=rules, implementation=implementation, control=control)
    plans = api.plans(scenario, _values(settings, plant), numbers, **options)
    order = {_identity(plan): number for number, plan in enumerate(plans)}
    ended = list(trials_of(plans, Path(store), processes, master, spark_settings))
    results = [_result(each) for each in ended if isinstance(each, TrialResult)]
    failed = [each for each in ended if isinstance(each, FailedTrial)]
    return Results(
        tuple(sorted(results, key=lambda each: order[_identity(each.trial)])),
        tuple(sorted(failed, key=lambda each: order[_identity(each.plan)])),
    )


def trials_of(
    plans: list[Plan], store: Path, processes: int, master: str | None, spark_settings: Mapping[str, str] | None = None
) -> Iterator[Ended]:
    """Run the trials of a sweep here, on local processes, or on Spark, and give each result as it comes. Raises
    SparkStartError, and PlanError for settings of Spark without a master."""
    if master is not None:
        return _on_spark(plans, store, master, spark_settings)
    if spark_settings:
        raise PlanError("spark_settings are for a sweep on Spark: give master, too, as master='local[4]'")
    if processes == 1:
        return map(partial(api.attempt, store=store, keep=keep_judgement), plans)
    return api.attempts(plans, store, processes, keep_judgement)


def _on_spark(plans: list[Plan], store: Path, master: str, settings: Mapping[str, str] | None) -> Iterator[Ended]:
    with needed_for("a sweep on Spark"):
        from rebalance_lab.analysis.sweeps import run_on_spark  # noqa: PLC0415

    with spark(master=master, settings=settings) as running:
        # Workers have folders of their own: a store is where it is, not where they are.
        run = partial(api.attempt, store=store.resolve(), keep=keep_judgement)
        for ended in run_on_spark(running.session, run, plans):
            yield replace(ended, folder=store / ended.folder.name) if isinstance(ended, TrialResult) else ended


def stored_at(
    plans: list[Plan], uri: StoreUri, master: str, settings: Mapping[str, str] | None = None
) -> Iterator[Ended]:
    """Run the trials of a sweep on Spark, which writes them to a store at a URI, and give each result as it comes; its
    folder is the trial's name there. `settings`: of Spark's. Raises SparkStartError, and OSError if the file system
    cannot be reached."""
    with needed_for("a sweep on Spark"):
        from rebalance_lab.analysis import session  # noqa: PLC0415
        from rebalance_lab.analysis.file_systems import exists  # noqa: PLC0415
        from rebalance_lab.analysis.remote_store import STORED, storing  # noqa: PLC0415
        from rebalance_lab.analysis.sweeps import run_and_store  # noqa: PLC0415

    with session.start(master=master, settings=settings) as running:
        exists(running.session, uri)  # whether it can be reached, before anything is run
        yield from run_and_store(running.session, partial(_run_for, uri), plans, STORED, storing(uri))


def _run_for(uri: StoreUri, plan: Plan) -> tuple[Ended, list[dict[str, Any]]]:
    """In a worker: run a trial, and make a row of STORED of it, also if the runner gave up and so it failed."""
    from rebalance_lab.analysis.remote_store import stored_row  # noqa: PLC0415

    with temporary_folder("rebalance-lab-sweep-") as store:
        ended = api.attempt(plan, store)
        findings = ended.findings if isinstance(ended, TrialResult) else None
        rows = [stored_row(folder, files.load(folder), findings) for folder in files.trial_folders(store)]
        if isinstance(ended, TrialResult):
            return replace(ended, folder=Path(ended.folder.name)), rows
        return replace(ended, why=ended.why.replace(f"{store}/", f"{uri}/")), rows


def load(trial: Path | str) -> Result:
    """A stored trial, judged. `trial`: its folder. Raises HistoryError for what is not a whole trial."""
    history = files.load(Path(trial))
    return Result(Path(trial), history.trial, judge(history))


def load_store(store: Path | str = DEFAULT_STORE) -> Results:
    """All trials of a store, judged, by name. Raises HistoryError for one that cannot be read. For many trials see
    `claims`: there Spark judges."""
    found = read_store(Path(store))
    if found.left_out:
        raise HistoryError(found.left_out[0].why)
    return Results(tuple(load(folder) for folder in found.folders.values()))


def claims(store: Path | str = DEFAULT_STORE) -> Analysis:
    """What the trials of a store show of each claim, as the command `claims` does: `verdicts` has every reading of
    every claim, and `tables` all that was computed for them. Spark does it, in up to a minute, and the store keeps
    it until anything changes. Trials that cannot be read are in `left_out`. Raises HistoryError, SparkStartError,
    MissingLibrary."""
    with needed_for("judging claims"):
        from rebalance_lab.analysis.analyse import analyse  # noqa: PLC0415
    return analyse(Path(store), intervals_for=())


def write_tables(
    store: Path | str = DEFAULT_STORE, out: Path | str = "tables", *, session: SparkSession | None = None
) -> Published:
    """Write everything that a store shows as Parquet, as the command `tables` does, to the folder `out`, which must not
    exist; returns what was written. `session`: a Spark to work in; by default one is started. Trials that cannot be
    read are in `left_out`. Raises TablesError, HistoryError, SparkStartError, MissingLibrary."""
    with needed_for("writing tables"):
        from rebalance_lab.analysis.ledger import read_ledger  # noqa: PLC0415
        from rebalance_lab.analysis.published import must_be_free, publish  # noqa: PLC0415
    must_be_free(Path(out))
    found = read_store(Path(store))
    if session is not None:
        return publish(session, found, read_ledger(), Path(out))
    with spark() as running:
        return publish(running.session, found, read_ledger(), Path(out))


def read_table(session: SparkSession, tables: Path | str, table: str) -> DataFrame:
    """A table that `write_tables` wrote, also an older lab's: with today's columns, null where its files have none.
    Raises TablesError."""
    with needed_for("reading tables in Spark"):
        from rebalance_lab.analysis import published  # noqa: PLC0415
    return published.read_table(session, tables, table)


def register_histories(session: SparkSession) -> None:
    """Let a Spark session read stored trials where they are: `session.read.format("rebalance-history").load(store)`."""
    with needed_for("reading histories in Spark"):
        from rebalance_lab.analysis import datasource  # noqa: PLC0415
    datasource.register_histories(session)


def spark(*, cores: int = 2, master: str | None = None, settings: Mapping[str, str] | None = None) -> LocalSpark:
    """Start a Spark for tables: `with spark() as running: result.to_spark("events", running.session)`. A session of
    your own will do, too. `settings`: of Spark's, which win over the lab's. Raises SparkStartError, MissingLibrary."""
    with needed_for("Spark"):
        from rebalance_lab.analysis import session  # noqa: PLC0415
    return session.start(cores=cores, master=master, settings=settings)


@contextmanager
def zookeeper(*, nodes: int = 1, tick_ms: int = 500) -> Iterator[ZooKeeperEnsemble]:
    """A real ZooKeeper of your own, of one server or several, as the command `zookeeper` starts it; it ends with the
    context, and its data go with it. `connect_string` says where it is, `ZooKeeperFaults` harms it. Sessions may last
    2 to 20 ticks. Raises EmbeddedServerError without Java 17."""
    with (
        temporary_folder("rebalance-lab-zookeeper-") as folder,
        running(EMBEDDED, folder, nodes, tick_ms) as ensemble,
    ):
        yield ensemble


def _values(settings: Mapping[str, Value | Iterable[Value]], plant: str | None) -> dict[str, list[Value]]:
    """Settings and plant as `api.plans` takes them: each with all its values."""
    given = {**settings, **({} if plant is None else {api.PLANT: plant})}
    return {name: [value] if isinstance(value, Value) else list(value) for name, value in given.items()}


def _identity(of: Plan | Trial) -> tuple[int, str | None, str]:
    """The values in which the trials of one sweep differ."""
    return (of.seed, of.plant, repr(of.parameters))


def _result(found: TrialResult) -> Result:
    return Result(found.folder, found.trial, found.findings)
