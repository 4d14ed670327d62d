"""The rows of Spark's tables as plain objects: one class for each table."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from rebalance_lab.analysis.ledger import Expected, Judgement, Quantifier, Status
from rebalance_lab.analysis.tabular import Tabular
from rebalance_lab.history.events import EventId
from rebalance_lab.history.files import Trial

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Interval:
    """A time span, in µs, in which `member` has topic/partition according to a layer. `begin`, `end`: the ids of the
    events that bound it; `end` is None if the history ends first."""

    trial: str
    layer: str
    member: str
    group: str
    topic: str
    partition: int
    begin_us: int
    end_us: int
    begin: EventId
    end: EventId | None


@dataclass(frozen=True, slots=True)
class Leadership:
    """A time span, in µs, in which the registry names broker `leader` as the leader of topic/partition in
    `leader_epoch`. `begin`, `end`: the ids of the events that bound it; `end` is None if the history ends first."""

    trial: str
    topic: str
    partition: int
    leader: int
    leader_epoch: int
    begin_us: int
    end_us: int
    begin: EventId
    end: EventId | None


@dataclass(frozen=True, slots=True)
class InSync:
    """A time span, in µs, in which the registry lists broker `replica` in the ISR of topic/partition. `begin`, `end`:
    as of a Leadership."""

    trial: str
    topic: str
    partition: int
    replica: int
    begin_us: int
    end_us: int
    begin: EventId
    end: EventId | None


@dataclass(frozen=True, slots=True)
class Operations:
    """How often an actor sent an operation to ZooKeeper in one phase of its trial.

    - `phase`: the trial's phase, empty before the first; `phase_number`: from 1, because phases can have equal names.
    - `reads`, `writes`: what the requests count as. A multi-read is as many reads as it has parts, a multi one write.
    """

    trial: str
    phase: str
    phase_number: int
    actor: str
    operation: str
    requests: int
    reads: int
    writes: int


@dataclass(frozen=True, slots=True)
class Placement:
    """A replica of a topic's last assignment in ZooKeeper; a deleted topic has none.

    - `position`: in the list of the partition's replicas, from 1. The first is the preferred leader.
    - `rack`: of the broker's last registration; None if it has none, or never registered.
    """

    trial: str
    topic: str
    partition: int
    position: int
    broker: int
    rack: str | None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A trial that is in no table. `why`: it could not be read or judged; the text names the file or the error."""

    trial: str
    why: str


@dataclass(frozen=True, slots=True)
class OfTrial:
    """The leading columns of tables whose rows are told apart by what their trial was. `trial`: its id."""

    trial: str
    scenario: str
    world: str
    rules: str
    seed: int
    control: bool
    plant: str | None


def of_trial(trial: Trial) -> dict[str, Any]:
    """The columns of OfTrial, of a trial."""
    others = (each.name for each in fields(OfTrial) if each.name not in {"trial", "rules"})
    return {"trial": trial.id, "rules": trial.variant, **{name: getattr(trial, name) for name in others}}


@dataclass(frozen=True, slots=True)
class TrialOutcome(OfTrial):
    """One check's finding on one trial."""

    check: str
    outcome: str
    why: str
    witness: tuple[EventId, ...]
    longest_us: int
    count: int


@dataclass(frozen=True, slots=True)
class TrialMeasures:
    """What the changes of a trial cost, in numbers: the part between its first rest and its closing (`Episode.part`).
    Times are in µs, partition-times in partition-µs (1,000,000 are a partition-second)."""

    trial: str
    episodes: int
    rebalance_us: int
    rebalances: int
    attempts: int
    failed_attempts: int
    conflicts: int
    notifications: int
    watches: int
    reads: int
    writes: int
    unowned_us: int
    doubly_owned_us: int
    moved: int


#: The measures that are summarised, in the order in which people read them.
MEASURES = tuple(name for name in TrialMeasures.__dataclass_fields__ if name != "trial")


@dataclass(frozen=True, slots=True)
class Episode:
    """A rebalance of a whole group: from the first event to the last before rest (`trialwise.episodes`).

    - `number`: from 0, in the trial and group. `phase`: the trial's phase in which it began.
    - `part`: assembly (before the trial's first rest), change, or closing.
    - `rested`: the group came to rest after it. Otherwise it lasts until the runner gave up waiting, or to the end.
    - `members`: how many rebalanced. `conflicts`: failed attempts whose reason was a conflict.
    - `unowned_us`, `doubly_owned_us`: partition-µs without an owner znode, and in which several members believe that
      they own it (each above the first counts). `moved`: how often a partition got another owner than its last.
    - `reads`, `writes`: of ZooKeeper, by the group's members, without the offsets that real members commit.
    """

    trial: str
    group: str
    number: int
    part: str
    phase: str
    begin_us: int
    end_us: int
    rested: bool
    members: int
    rebalances: int
    attempts: int
    failed_attempts: int
    conflicts: int
    notifications: int
    watches: int
    reads: int
    writes: int
    unowned_us: int
    doubly_owned_us: int
    moved: int

    @property
    def duration_us(self) -> int:
        return self.end_us - self.begin_us


@dataclass(frozen=True, slots=True)
class HerdCost(OfTrial):
    """What one spaced change cost a group, beside the formulas (`checks.change_costs`).

    - `change`: join | leave | crash | broker | topic. `before`: members before it, `members` after.
    - `doubt`: why the cost cannot be judged; None if it can.
    - `retries`: attempts that failed on others' claims; the formulas know none.
    - `expected_…`: by the formulas, or None. `added_…`: what was counted above them.
    """

    group: str
    change: str
    begin_us: int
    end_us: int
    doubt: str | None
    before: int
    members: int
    retries: int
    reads: int
    writes: int
    notifications: int
    rebalances: int
    expected_reads: int | None
    expected_writes: int | None
    expected_notifications: int | None
    expected_rebalances: int | None
    added_reads: int | None
    added_writes: int | None


@dataclass(frozen=True, slots=True)
class Fit:
    """A number fitted against a size, with its 95 % interval from `low` to `high`.

    - `model`: exponent (`estimate` is b in measure = a·against^b) or quadratic (`estimate` is c2
      in measure = c0 + c1·against + c2·against²).
    - `coefficients`: of the curve, lowest first: (ln a, b), or (c0, c1, c2).
    - `points`: how many were fitted, of `sizes` different sizes; in the fit of a trend one for each
      size, the mean of its changes. The three numbers are None if the points cannot give them.
    """

    scenario: str
    world: str
    rules: str
    change: str
    measure: str
    against: str
    model: str
    points: int
    sizes: int
    estimate: float | None
    low: float | None
    high: float | None
    coefficients: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """One measure over all trials of one kind.

    - `settings`: (name, value) of the parameters that are not the same in all trials of the
      scenario in this store. `control`, `plant`: as the trials were.
    - `measure`: one of `MEASURES`, or CHECK_longest_us for a check that measures a length.
    """

    scenario: str
    world: str
    rules: str
    control: bool
    plant: str | None
    settings: tuple[tuple[str, str], ...]
    measure: str
    trials: int
    least: float
    p50: float
    p90: float
    p99: float
    most: float
    mean: float


@dataclass(frozen=True, slots=True)
class Frequency:
    """How many of the decided trials of one world showed a claim, with Wilson's 95 % interval (None without any), and
    how many trials were `undecided`."""

    world: str
    shown: int
    decided: int
    low: float | None
    high: float | None
    undecided: int


@dataclass(frozen=True, slots=True)
class Measured:
    """A measure in the decided trials of one world: CHECK_longest_us, in µs, or CHECK_count. `what`: in words.
    `trials`: those of the decided ones to which the check applies."""

    world: str
    measure: str
    what: str
    trials: int
    least: int
    median: float
    most: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """One reading of one claim.

    - `by_construction`: its members were built from the sentence that it tests.
    - `live`, `simulated`: trials that decided it, without controls. `witness`: a trial that shows (exists) or denies
      (else) it; `replay`: its command. `frequencies`: live, then simulated. `fits`: of a trend, one for each world.
      `measured`: of each measure of its run, live and simulated.
    """

    claim: str
    reading: str
    statement: str
    quantifier: Quantifier
    expected: Expected
    verdict: Judgement
    status: Status
    live: int
    simulated: int
    witness: str | None
    replay: str | None
    why: str
    frequencies: tuple[Frequency, ...] = ()
    fits: tuple[Fit, ...] = ()
    by_construction: bool = False
    measured: tuple[Measured, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether it counts as evidence. What holds by construction does not, unless it fails, which is a bug."""
        return not self.by_construction or self.status is Status.SURPRISE


@dataclass(frozen=True, slots=True)
class OfKind:
    """The leading columns of tables of kinds of trials: trials of one kind differ in nothing but the seed.
    `parameters`: names and values as text, sorted."""

    scenario: str
    world: str
    rules: str
    control: bool
    plant: str | None
    parameters: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class KindCount(OfKind):
    """How many trials of a kind there are, and to how many of them any check applies (`judged`)."""

    trials: int
    judged: int


@dataclass(frozen=True, slots=True)
class OutcomeCount(OfKind):
    """In how many trials of a kind a check has one outcome. `shortest_us`, `longest_us`: the range of what it found
    to be the longest. `first`: the trial with the first seed."""

    check: str
    outcome: str
    trials: int
    shortest_us: int
    longest_us: int
    first: str


@dataclass(frozen=True, slots=True)
class Analysis(Tabular):
    """Everything that a report shows. Every table is sorted by its leading fields. `measures`: one row for each trial.
    `cut_off`: names of folders that hold events but were never sealed. `left_out`: trials that could not be read or
    judged. Neither are counted.

    If there are more trials than the rows of which were asked for, `trials` and the tables with rows of single trials
    have a sample: of each kind those with the first seeds, and those that decide a verdict. Then `kinds` and `counts`
    count all trials; otherwise they are empty, and `analysis.counts` counts the rows.
    """

    verdicts: tuple[Verdict, ...]
    outcomes: tuple[TrialOutcome, ...]
    intervals: tuple[Interval, ...]
    trials: tuple[Trial, ...]
    cut_off: tuple[str, ...] = ()
    measures: tuple[TrialMeasures, ...] = ()
    episodes: tuple[Episode, ...] = ()
    herd_costs: tuple[HerdCost, ...] = ()
    fits: tuple[Fit, ...] = ()
    summaries: tuple[Summary, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    kinds: tuple[KindCount, ...] = ()
    counts: tuple[OutcomeCount, ...] = ()

    @property
    def sampled(self) -> bool:
        """Whether it has rows of some trials only."""
        return bool(self.kinds)

    @property
    def simulated(self) -> int:
        """How many trials were simulated."""
        if self.sampled:
            return sum(kind.trials for kind in self.kinds if kind.world == "simulated")
        return sum(trial.world == "simulated" for trial in self.trials)

    @property
    def size(self) -> int:
        """How many trials there are, of which `trials` may be a sample."""
        return sum(kind.trials for kind in self.kinds) if self.sampled else len(self.trials)

    @property
    def whole(self) -> bool:
        """Whether all trials of the store are counted."""
        return not self.left_out and not self.cut_off

    @property
    def tables(self) -> tuple[str, ...]:
        absent = {"cut_off", "left_out", "kinds", "counts"} | (
            set() if self.intervals else {"intervals"}
        )  # those are made on demand
        return tuple(field.name for field in fields(self) if field.name not in absent)

    def _arrow(self, name: str) -> pa.Table:
        from rebalance_lab.analysis.frames import arrow_rows, wide  # noqa: PLC0415

        if name == "trials":
            return wide([trial_facts(trial) for trial in self.trials])
        kind, _ = get_args(get_type_hints(Analysis)[name])  # of tuple[kind, ...]
        return arrow_rows(kind, getattr(self, name))


def trial_facts(trial: Trial) -> dict[str, object]:
    """A trial as a row, with its settings as columns."""
    return of_trial(trial) | trial.parameters
