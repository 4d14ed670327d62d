"""`claims`: the ledger, with the verdicts of the trials of a store."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.text import Text

from rebalance_lab.analysis.claims import BY_CONSTRUCTION, claims_json, not_run, sort, statuses
from rebalance_lab.analysis.ledger import Expected, Judgement, Quantifier, Status, read_ledger
from rebalance_lab.analysis.results import Analysis, LeftOut, Verdict
from rebalance_lab.analysis.uri import Place, StoreUri
from rebalance_lab.analysis.verdicts import measures_in_words
from rebalance_lab.cli.exit_codes import SURPRISE, UNKNOWN
from rebalance_lab.cli.failures import Failure, exit_code, must_be_writable
from rebalance_lab.cli.options import (
    DEFAULT_STORE,
    AnyStoreOption,
    ConfOption,
    CoresOption,
    EventLogOption,
    JsonOption,
    MasterOption,
    RejudgeOption,
    UiOption,
    settings_of_spark,
)
from rebalance_lab.cli.terminal import print_json, progress, say, styled, whole
from rebalance_lab.history.files import Trial, trial_folders
from rebalance_lab.history.scratch import temporary_folder
from rebalance_lab.report.page import summary
from rebalance_lab.report.text import count
from rebalance_lab.trials.names import missing
from rebalance_lab.trials.plan import run_command
from rebalance_lab.trials.scenario import plan_like

if TYPE_CHECKING:
    from rebalance_lab.analysis.session import LocalSpark

#: Of about so many trials this process holds rows. Charts draw a few hundred points.
TRIALS_SHOWN = 2_000

#: The trials whose ownership intervals are wanted: their ids, or a function that chooses them.
Wanted = Sequence[str] | Callable[[Analysis], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Judging:
    """How a store is judged. `cores`: of this machine, None for all. `master`: of a cluster. `rejudge`: all trials.
    `event_log`: the folder for Spark's event log. `ui`: whether Spark shows its web pages; their address goes to
    stderr. `settings`: of Spark's, beside the lab's."""

    cores: int | None = None
    master: str | None = None
    rejudge: bool = False
    event_log: Path | None = None
    ui: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises Failure."""
        if self.cores is not None and self.master is not None:
            raise Failure("--cores is for this machine, and --master for a cluster; leave one of them out")
        if self.event_log is not None:
            must_be_writable(self.event_log, f"Spark's event log to {self.event_log}", "another with --event-log")

    def start(self, *, many_rows: bool = False) -> LocalSpark:
        """Start Spark. `many_rows`: as of `session.start`. Raises SparkStartError."""
        from rebalance_lab.analysis import session  # noqa: PLC0415

        spark = session.start(
            cores=self.cores,
            master=self.master,
            event_log=self.event_log,
            ui=self.ui,
            settings=self.settings,
            many_rows=many_rows,
        )
        if spark.ui is not None:
            print(f"Spark's pages: {spark.ui}", file=sys.stderr)
        return spark


@dataclass(slots=True)
class Watched:
    """The line that tells, each time it is drawn, how many of a store's trials Spark has judged. `trials`: how many
    there are, None if only Spark can tell."""

    judging: Judging
    trials: int | None
    store: Place
    _spark: LocalSpark | None = None
    _judged: int = 0

    def start(self, *, many_rows: bool = False) -> LocalSpark:
        """Start Spark, and watch it. `many_rows`: as of `session.start`. Raises SparkStartError."""
        self._spark = self.judging.start(many_rows=many_rows)
        return self._spark

    def __rich__(self) -> Text:
        if self._spark is not None:  # the count goes when Spark stops
            judged = self._spark.judged
            self._judged = max(self._judged, judged if self.trials is None else min(judged, self.trials))
        if self.trials is None:
            return Text(f"Reading {self.store}: {count(self._judged, 'trial')} judged")
        if self._judged == 0:
            return Text(f"Reading {count(self.trials, 'trial')} of {self.store}")
        return Text(f"{self._judged:,} of {count(self.trials, 'trial')} of {self.store} judged")


def analysed(
    store: Place, wanted: Wanted = (), judging: Judging | None = None, *, into: Path = DEFAULT_STORE
) -> Analysis:
    """Read a store, with Spark if anything in it is new. Ownership intervals take time, so only those `wanted` are
    computed; if the store is at a URI, these trials are fetched to the folder `into`. Trials that are left out are
    named on stderr. Raises Failure, also if the store was named and does not exist. (A missing default store only means
    that nothing was run yet.)"""
    judging = judging or Judging()
    if isinstance(store, StoreUri):
        return _analysed_uri(store, wanted, judging, into)
    if store.exists():
        return _analysed(store, wanted, judging)
    told = f"There is no store {store}: nothing was tested. `run` and `sweep` create one"
    if store != DEFAULT_STORE:
        raise Failure(f"{told}; --store names another.")
    print(f"{told}.", file=sys.stderr)
    with temporary_folder("rebalance-lab-store-") as empty:
        return _analysed(empty, wanted, judging)


def _analysed(store: Path, wanted: Wanted, judging: Judging) -> Analysis:
    from rebalance_lab.analysis.analyse import analyse  # noqa: PLC0415

    watched = Watched(judging, len(trial_folders(store)), store)
    with progress().status(watched):
        analysis = analyse(store, intervals_for=wanted, start=watched.start, rejudge=judging.rejudge, most=TRIALS_SHOWN)
    name_left_out(analysis.left_out, analysis.cut_off)
    return analysis


def _analysed_uri(store: StoreUri, wanted: Wanted, judging: Judging, into: Path) -> Analysis:
    from rebalance_lab.analysis.analyse import analyse_uri  # noqa: PLC0415

    watched = Watched(judging, None, store)
    with progress().status(watched):
        analysis = analyse_uri(
            store,
            into,
            start=watched.start,
            again=again,
            intervals_for=wanted,
            rejudge=judging.rejudge,
            most=TRIALS_SHOWN,
        )
    name_left_out(analysis.left_out, analysis.cut_off)
    return analysis


def again(trial: Trial) -> str:
    """The command that runs a trial again whose folder is not at hand."""
    return run_command(plan_like(trial))


HOW_TO_READ = (
    "Each reading has its verdict and status. For each world follow the number of decided trials that show the claim "
    "or contradict it, the 95 % interval of that share, and the number of undecided trials (no fault took effect, or a "
    "check is unknown or does not apply)."
)


def claims(
    names: Annotated[
        list[str] | None, typer.Argument(help="Only these claims, such as E7. Default: all.", metavar="CLAIM")
    ] = None,
    *,
    store: AnyStoreOption = DEFAULT_STORE,
    as_json: JsonOption = False,
    cores: CoresOption = None,
    master: MasterOption = None,
    rejudge: RejudgeOption = False,
    event_log: EventLogOption = None,
    ui: UiOption = False,
    conf: ConfOption = None,
) -> None:
    """Judge every claim by the trials of a store; surprises come first.

    With the names of claims, it also says why a reading of them was not run;
    a claim that was not run at all is unknown then.
    """
    wanted = _claims_named(names or ())
    analysis = analysed(store, judging=Judging(cores, master, rejudge, event_log, ui, settings_of_spark(conf)))
    if wanted:
        analysis = replace(analysis, verdicts=tuple(each for each in analysis.verdicts if each.claim in wanted))
    if as_json:
        print_json(claims_json(analysis))
    else:
        show(analysis, reasons=bool(wanted))
    raise typer.Exit(UNKNOWN if _lacks(wanted, analysis) else code_of(analysis))


def _claims_named(names: Sequence[str]) -> frozenset[str]:
    """Their ids: `e7` is E7. Raises Failure."""
    known = read_ledger().claims
    ids = {each.upper(): each for each in known}
    for name in names:
        if name.upper() not in ids:
            raise Failure(missing(f"there is no claim {name}", name, known, all_by="docs/ledger.md"))
    return frozenset(ids[name.upper()] for name in names)


def _lacks(wanted: frozenset[str], analysis: Analysis) -> bool:
    """Whether a claim that was named has no reading that was run, and nothing else is worse."""
    run = {each.claim for each in analysis.verdicts if each.status is not Status.NOT_RUN}
    return not wanted <= run and code_of(analysis) != SURPRISE


def name_left_out(left_out: Sequence[LeftOut], cut_off: Sequence[str]) -> None:
    """Name on stderr every trial that is not counted, and why."""
    told = [f"{each.trial}: {each.why}" for each in left_out]
    told += [f"{name}: it was interrupted before its end; remove the folder" for name in cut_off]
    if told:
        noun = "trial is" if len(told) == 1 else "trials are"
        print("\n".join([f"{len(told):,} {noun} left out:", *(f"  {each}" for each in told)]), file=sys.stderr)


def code_of(analysis: Analysis) -> int:
    """The exit code for what was found. Trials that are left out leave it unknown."""
    incomplete = () if analysis.whole else (Status.UNKNOWN,)
    return exit_code([*statuses(analysis.verdicts), *incomplete])


def seen(verdict: Verdict, world: str) -> str:
    """How many of a world's decided trials show the claim, with the interval, and how many were undecided: `8 of 8 show
    it (68–100 %), 2 undecided`. Where they refute the claim, those that do are counted. Empty if the world has no
    trials."""
    found = next((each for each in verdict.frequencies if each.world == world), None)
    if found is None or not found.decided + found.undecided:
        return ""
    pieces = [f"{found.undecided} undecided"] if found.undecided else []
    if found.low is not None and found.high is not None:
        number, low, high, do = found.shown, found.low, found.high, "show it"
        if verdict.verdict is Judgement.REFUTED and found.shown < found.decided:
            number, low, high = found.decided - found.shown, 1 - found.high, 1 - found.low
            do = "do not show it" if verdict.quantifier == Quantifier.EXISTS else "contradict it"
        elif verdict.expected == Expected.DOES_NOT_APPLY:
            do = "lack what the claim is about"
        pieces.insert(0, f"{number} of {found.decided} {do} ({100 * low:.0f}–{100 * high:.0f} %)")
    return ", ".join(pieces)


def show(analysis: Analysis, *, reasons: bool = False) -> None:
    """Show each tested claim with its readings, surprises first; then readings that hold by construction; then the
    names of those that were not run, or with `reasons` why not."""
    found = sort(analysis.verdicts)
    if found.tested:
        say(HOW_TO_READ)
    else:
        say("Nothing was tested: the store has no trials that a claim needs.")
    _show_claims(found.tested)
    if found.constructed:
        say(f"\n{BY_CONSTRUCTION}")
        _show_claims(found.constructed)
    say(f"\n{summary(analysis)}", markup=False)
    if reasons:
        _show_claims(found.not_run)
    elif found.not_run:
        names = escape(", ".join(not_run(analysis.verdicts)))
        say(f"\nNot run: {count(len(found.not_run), 'reading')}: {names} (why: rebalance-lab claims CLAIM)")


def _show_claims(verdicts: Sequence[Verdict]) -> None:
    shown = None
    for verdict in verdicts:
        if shown != (verdict.claim, verdict.statement):
            shown = (verdict.claim, verdict.statement)
            say("")
            say(escape(verdict.statement), lead=f"[bold]{verdict.claim}[/] ")
        _show_reading(verdict)


def _show_reading(verdict: Verdict) -> None:
    """The verdict of a reading, the number of trials, and how to replay one; the reason, if it is not as expected."""
    counts = [f"{world}: {seen(verdict, world)}" for world in ("live", "simulated") if seen(verdict, world)]
    came_out: dict[str, None] = dict.fromkeys((verdict.verdict, verdict.status))  # both may be one word
    if not verdict.counts:
        came_out = dict.fromkeys((verdict.verdict, "by construction"))
    said = [f"{escape(verdict.reading)}: {', '.join(styled(each) for each in came_out)}", *counts]
    say("; ".join(said), lead="  ")
    for measure in measures_in_words(map(asdict, verdict.measured)):
        say(escape(measure), lead="    ")
    if verdict.status not in (Status.AS_EXPECTED, Status.DOES_NOT_APPLY):
        say(f"expected: {verdict.expected}. {escape(verdict.why)}", lead="    ")
    if verdict.replay:
        whole(f"    {verdict.replay}")
