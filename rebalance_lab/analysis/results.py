"""What Spark's tables become on their way to people: plain rows, one class for each table."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.history.events import EventId
from rebalance_lab.history.files import Trial


@dataclass(frozen=True, slots=True)
class Interval:
    """A stretch in which a layer says that `member` has topic/partition. Times in µs.

    `begin`, `end`: ids of the events that bound it; `end` is None where the history ends first.
    """

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
class TrialOutcome:
    """One check's finding on one trial, beside what the trial was."""

    trial: str
    scenario: str
    world: str
    rules: str
    seed: int
    control: bool
    plant: str | None
    check: str
    outcome: str
    why: str
    witness: tuple[EventId, ...]
    longest_us: int
    count: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """One reading of one claim.

    `expected`: reproduced | refuted. `verdict`: reproduced | refuted | unknown | not run.
    `status`: as expected | surprise | unknown | not run. `live`, `simulated`: trials counted
    (controls not among them). `witness`: a trial that shows it, `replay` the command for it.
    """

    claim: str
    reading: str
    statement: str
    quantifier: str
    expected: str
    verdict: str
    status: str
    live: int
    simulated: int
    witness: str | None
    replay: str | None
    why: str


@dataclass(frozen=True, slots=True)
class Analysis:
    """All that a report shows.

    `cut_off`: names of folders that hold events but were never sealed; nothing here counts them.
    """

    verdicts: tuple[Verdict, ...]
    outcomes: tuple[TrialOutcome, ...]
    intervals: tuple[Interval, ...]
    trials: tuple[Trial, ...]
    cut_off: tuple[str, ...] = ()
