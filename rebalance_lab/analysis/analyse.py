"""Everything that a report shows of a store of trials.

Spark computes it once. The tables are kept in the store (`analysis.kept`), and serve until a trial comes, changes or
goes, or until the ledger or the code that judges changes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rebalance_lab.analysis.kept import code_that_judges, keep, kept, key_of
from rebalance_lab.analysis.ledger import Ledger, read_ledger
from rebalance_lab.analysis.results import Analysis, Interval, LeftOut, Verdict
from rebalance_lab.analysis.store import Store, named_by_folder, read_store
from rebalance_lab.analysis.trialwise.rows import intervals_of
from rebalance_lab.analysis.uri import StoreUri
from rebalance_lab.history.files import History, HistoryError, Trial, load, replay_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rebalance_lab.analysis.session import LocalSpark

#: The file in a store that keeps its analysis.
ANALYSIS_FILE = ".analysis"

#: Ids of trials, or a function that chooses them from an analysis (which has no intervals yet).
Wanted = Sequence[str] | Callable[[Analysis], Sequence[str]]


class _Found(msgspec.Struct, frozen=True):
    """What is kept of a store. `analysis`: without its trials, intervals and commands, which depend on the path.
    `examples`: the trials that are examples of a verdict."""

    analysis: Analysis
    examples: tuple[str, ...]


def analyse(
    store: Path,
    *,
    intervals_for: Wanted | None = None,
    ledger: Ledger | None = None,
    spark: SparkSession | None = None,
    start: Callable[[], LocalSpark] | None = None,
    rejudge: bool = False,
    most: int | None = None,
) -> Analysis:
    """Judge every trial of a store and every claim of the ledger.

    `intervals_for`: the ids of the trials whose ownership intervals are wanted, or a function that chooses them; by
    default the trials that decide a claim and their controls, one of each in each world. `spark`: the session to work
    in; by default `start` starts one on all cores of this machine, unless what the store keeps still holds. `rejudge`:
    use nothing that the store keeps. `most`: about how many trials the analysis may have rows of (`results.Analysis`);
    None for all.

    Trials that cannot be read or judged are in `left_out` and nowhere else; then the analysis is not kept. Raises
    HistoryError for a store that cannot be read and for a trial in `intervals_for` that does not exist (the message
    names it); SparkStartError, LedgerError.
    """
    found = read_store(store)
    claims = ledger or read_ledger()
    if intervals_for is not None and not callable(intervals_for):
        _must_be_there(found, intervals_for)
    if not found.folders:
        return _untested(found, claims)  # without Spark, which takes seconds to start
    code = code_that_judges()
    most = None if most is None or len(found.folders) <= most else most
    key = None if code is None else _key(code, found, claims, most)
    known = None if key is None or rejudge else _kept(found, key)
    if known is None:
        known = _summarised(found, claims, spark, start, rejudge=rejudge, most=most)
        if key is not None and not known.analysis.left_out:
            keep(found.path / ANALYSIS_FILE, key, msgspec.json.encode(known))
    return _whole(known, found, intervals_for)


def analyse_uri(
    uri: StoreUri,
    into: Path,
    *,
    start: Callable[[], LocalSpark],
    again: Callable[[Trial], str],
    intervals_for: Wanted | None = None,
    rejudge: bool = False,
    most: int | None = None,
) -> Analysis:
    """`analyse` for a store at a URI. Each trial is judged once there too, but Spark is needed to ask what is kept.

    The trials whose intervals are wanted are fetched into the folder `into`, where others can read them. `again`: the
    command that repeats a trial which was not fetched. Raises HistoryError if there is no store, SparkStartError, and
    OSError if its file system cannot be reached.
    """
    from rebalance_lab.analysis.remote_store import open_store  # noqa: PLC0415  # Spark takes long to import
    from rebalance_lab.analysis.summarised import collected  # noqa: PLC0415
    from rebalance_lab.analysis.tables.readings import readings_table  # noqa: PLC0415

    with start() as local:
        store = open_store(local.session, uri)
        with store.judged(rejudge=rejudge) as (results, left_out):
            most = None if most is None or len(store.trials) <= most else most
            analysis, examples = collected(results, readings_table(local.session, read_ledger()), most)
        out = {each.trial for each in left_out}
        shown = set(_with_rows(analysis, [trial.id for trial in store.trials if trial.id not in out]))
        trials = tuple(trial for trial in store.trials if trial.id in shown)
        analysis = dataclasses.replace(analysis, trials=trials, left_out=(*store.left_out, *left_out))
        wanted = intervals_for(analysis) if callable(intervals_for) else intervals_for
        folders = store.fetch(sorted(set(examples if wanted is None else wanted)), into)
    by_id = {trial.id: trial for trial in trials}
    commands = {
        trial: replay_command(folders[trial]) if trial in folders else again(by_id[trial])
        for verdict in analysis.verdicts
        if (trial := verdict.witness) is not None
    }
    verdicts = tuple(dataclasses.replace(each, replay=commands.get(each.witness or "")) for each in analysis.verdicts)
    return _with_intervals(dataclasses.replace(analysis, verdicts=verdicts), folders)


def _key(code: str, store: Store, ledger: Ledger, most: int | None) -> str:
    """What an analysis depends on: the code, the ledger, every trial as its files are now, and how many are shown."""
    order = list(ledger.claims)  # because keys do not depend on the order of a dict
    return key_of(code, ledger, order, store.digest, most)


def _kept(store: Store, key: str) -> _Found | None:
    body = kept(store.path / ANALYSIS_FILE, key)
    try:
        return None if body is None else msgspec.json.decode(body, type=_Found)
    except msgspec.ValidationError:  # a number that JSON has no word for
        return None


def _summarised(
    store: Store,
    ledger: Ledger,
    spark: SparkSession | None,
    start: Callable[[], LocalSpark] | None,
    *,
    rejudge: bool,
    most: int | None,
) -> _Found:
    from rebalance_lab.analysis import session  # noqa: PLC0415  # Spark takes long to import
    from rebalance_lab.analysis.summarised import summarise  # noqa: PLC0415

    if spark is not None:
        analysis, examples = summarise(spark, store, ledger, rejudge=rejudge, most=most)
    else:
        with (start or session.start)() as local:
            analysis, examples = summarise(local.session, store, ledger, rejudge=rejudge, most=most)
    return _Found(dataclasses.replace(analysis, trials=()), tuple(examples))


def _whole(found: _Found, store: Store, intervals_for: Wanted | None) -> Analysis:
    """The analysis with what is not kept."""
    verdicts = tuple(_with_command(verdict, store) for verdict in found.analysis.verdicts)
    out = {each.trial for each in found.analysis.left_out}
    trials, gone = _read(store, _with_rows(found.analysis, [name for name in store.folders if name not in out]))
    analysis = dataclasses.replace(
        found.analysis,
        verdicts=verdicts,
        trials=tuple(trials),
        cut_off=store.cut_off,
        left_out=(*store.left_out, *found.analysis.left_out, *gone),
    )
    wanted = intervals_for(analysis) if callable(intervals_for) else intervals_for
    chosen = found.examples if wanted is None else sorted(set(wanted))
    _must_be_there(store, chosen)
    return _with_intervals(analysis, {trial: store.folders[trial] for trial in chosen})


def _with_rows(analysis: Analysis, trials: Sequence[str]) -> list[str]:
    """Those of these trials of which the analysis has rows."""
    shown = {each.trial for each in analysis.measures}
    return [trial for trial in trials if not analysis.sampled or trial in shown]


def _with_command(verdict: Verdict, store: Store) -> Verdict:
    if verdict.witness is None:
        return verdict
    return dataclasses.replace(verdict, replay=replay_command(store.folders[verdict.witness]))


def _untested(store: Store, ledger: Ledger) -> Analysis:
    """The analysis of a store without trials."""
    from rebalance_lab.analysis.frames import object_of  # noqa: PLC0415  # as above
    from rebalance_lab.analysis.tables.readings import reading_rows  # noqa: PLC0415
    from rebalance_lab.analysis.verdicts import verdict_row  # noqa: PLC0415

    readings = [verdict_row(row | {"roles": None, "fits": None}) for row in reading_rows(ledger)]
    return Analysis(
        verdicts=tuple(object_of(Verdict, row | {"replay": None}) for row in readings),
        outcomes=(),
        intervals=(),
        trials=(),
        cut_off=store.cut_off,
        left_out=store.left_out,
    )


def _must_be_there(store: Store, wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in store.folders]
    if missing:
        raise HistoryError(f"{store.path} holds no trial {missing[0]!r}, or one that was cut off")


def _with_intervals(analysis: Analysis, folders: dict[str, Path]) -> Analysis:
    """The analysis with the sorted intervals of these trials, one after the other; there are as many as a page shows. A
    trial that has gone since it was judged has none and is named."""
    intervals: list[Interval] = []
    gone = []
    for trial, folder in folders.items():
        try:
            intervals += _of_trial(folder)
        except (HistoryError, OSError) as error:
            gone.append(LeftOut(trial, f"its intervals are missing: {error}"))
    return dataclasses.replace(analysis, intervals=tuple(intervals), left_out=(*analysis.left_out, *gone))


def _of_trial(folder: Path) -> list[Interval]:
    history = load(folder)
    found = intervals_of(History(named_by_folder(history.trial, folder), history.events))
    return sorted(found, key=lambda each: (each.layer, each.topic, each.partition, each.begin_us, each.member))


def _read(store: Store, names: Sequence[str]) -> tuple[list[Trial], list[LeftOut]]:
    """These trials, and those of them that have gone meanwhile."""
    trials, gone = [], []
    for name in names:
        try:
            trials.append(store.trials[name])
        except HistoryError as error:
            gone.append(LeftOut(name, str(error)))
    return trials, gone
