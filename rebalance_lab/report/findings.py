"""What the checks found, as pages show it: of one trial, of all trials of a kind, and as verdicts.

Verdict and status are shown together, because *as expected* alone says nothing about the claim: a refuted claim can be
as expected, too. The colour is that of the verdict; only a surprise has its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.analysis.counts import kind_counts_of, outcome_counts_of
from rebalance_lab.analysis.ledger import Status, constructed
from rebalance_lab.analysis.results import Analysis, OfKind, OutcomeCount, TrialOutcome, Verdict
from rebalance_lab.checks import CHECKS
from rebalance_lab.checks.model import Outcome
from rebalance_lab.history.files import Trial
from rebalance_lab.trials.api import expectation
from rebalance_lab.trials.plan import PlanError

#: What the outcome of a check says about a statement.
SAID = {Outcome.CLEAN: "holds", Outcome.VIOLATED: "fails", Outcome.UNKNOWN: "unknown"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of one trial. `said`: its outcome in words. `expected`: the expected outcome in the same words; None
    if both are allowed or the expectation is not known. `by_construction`: a statement that holds because these members
    were built from it, which is not evidence."""

    outcome: TrialOutcome
    statement: bool
    said: str
    expected: str | None
    by_construction: bool

    @property
    def surprising(self) -> bool:
        return self.expected is not None and self.said not in {self.expected, "unknown"}


def is_statement(check: str) -> bool:
    """Whether a check tests a statement. A check that this lab does not know does not."""
    return check in CHECKS and CHECKS[check].statement is not None


def findings_of(trial: Trial, outcomes: Sequence[TrialOutcome]) -> tuple[Finding, ...]:
    """The findings on a trial, in the order of its outcomes."""
    expected = _expected(trial)
    return tuple(_finding(outcome, expected.get(outcome.check)) for outcome in outcomes)


def carded(findings: Sequence[Finding]) -> list[Finding]:
    """The findings that get a card: anomalies, and statements that failed unexpectedly."""
    return [
        each
        for each in findings
        if each.outcome.outcome == Outcome.VIOLATED and (not each.statement or each.surprising)
    ]


def status_of(findings: Sequence[Finding]) -> Status:
    """Of the whole trial: as expected, a surprise or unknown."""
    if any(finding.surprising for finding in findings):
        return Status.SURPRISE
    return Status.UNKNOWN if any(finding.said == Outcome.UNKNOWN for finding in findings) else Status.AS_EXPECTED


def _finding(outcome: TrialOutcome, expected: Outcome | None) -> Finding:
    statement = is_statement(outcome.check)

    def said(what: str) -> str:
        return SAID[Outcome(what)] if statement else what

    built = outcome.outcome == Outcome.CLEAN and (outcome.scenario, outcome.rules, outcome.check) in constructed()
    return Finding(outcome, statement, said(outcome.outcome), None if expected is None else said(expected), built)


def _expected(trial: Trial) -> Mapping[str, Outcome | None]:
    """What the scenario expects; empty if this lab no longer has it."""
    try:
        return expectation(trial)
    except PlanError:
        return {}


# -- verdicts -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Badge:
    """`kind`: the end of its CSS class (`chip-refuted`); `text`: `refuted, as expected`."""

    kind: str
    text: str


def badge(verdict: Verdict) -> Badge:
    """The badge of a verdict, the same wherever a page names it."""
    came, status = verdict.verdict, verdict.status
    if not verdict.counts:
        return Badge("by-construction", f"{came}, by construction")
    kind: str = came if status is Status.AS_EXPECTED else status
    told = "a surprise" if status is Status.SURPRISE else status
    text: str = came if came.value == status.value else f"{came}, {told}"
    return Badge(kind.replace(" ", "-"), text)


# -- surprises: people look at these first --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Surprise:
    """Trials of one kind with the same unexpected outcome of one check. `first`: the trial that is named, with its
    `finding`. `trials`: their number. `replay`: the first one's command."""

    first: Trial
    finding: Finding
    trials: int
    replay: str

    @property
    def kind(self) -> str:
        """Rules, world and role, as in the other tables."""
        world = "simulated" if self.first.world == "simulated" else "live"
        role = ["control"] if self.first.control else []
        return ", ".join([*role, world, self.first.variant])


def surprises_of(analysis: Analysis, replay: Callable[[str], str]) -> tuple[Surprise, ...]:
    """The surprises of a store, by scenario. Trials with a planted bug are meant to surprise and are left out.
    `replay`: returns the command for a trial."""
    trials = {trial.id: trial for trial in analysis.trials}
    rows = {(each.trial, each.check): (number, each) for number, each in enumerate(analysis.outcomes)}
    found: dict[tuple[object, ...], list[tuple[Trial, int, Finding, int]]] = {}
    for count in outcome_counts_of(analysis):
        if count.plant is not None or count.first not in trials:
            continue
        trial, (number, outcome) = trials[count.first], rows[count.first, count.check]
        finding = _finding(outcome, _expected(trial).get(count.check))
        if finding.surprising:
            kind = (trial.scenario, trial.control, trial.world, trial.variant, count.check, finding.said)
            found.setdefault(kind, []).append((trial, number, finding, count.trials))
    surprises = []
    for alike in found.values():
        first, number, finding, _ = min(alike, key=lambda each: (each[0].seed, each[0].id))
        total = sum(trials for *_, trials in alike)
        surprises.append(((first.scenario, first.seed, first.id, number), first, finding, total))
    ordered = sorted(surprises, key=lambda each: each[0])
    return tuple(Surprise(first, finding, total, replay(first.id)) for _, first, finding, total in ordered)


# -- the outcomes of all trials, counted ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tally:
    """One check over the trials of a kind: the number of each outcome, and the range of the longest (µs).
    `by_construction`: these members were built from what it tests, so *clean* is not evidence."""

    check: str
    violated: int
    clean: int
    unknown: int
    shortest_us: int
    longest_us: int
    by_construction: bool


@dataclass(frozen=True, slots=True)
class Kind:
    """Trials of one kind. `role`: with its fault | control | planted bug …"""

    scenario: str
    world: str
    rules: str
    role: str
    trials: int
    tallies: tuple[Tally, ...]

    @property
    def by_check(self) -> Mapping[str, Tally]:
        return {tally.check: tally for tally in self.tallies}


@dataclass(frozen=True, slots=True)
class Counted:
    """`heads`: (title, checks) of the columns: anomalies, then statements."""

    kinds: tuple[Kind, ...]
    heads: tuple[tuple[str, tuple[str, ...]], ...]


def tally(analysis: Analysis) -> Counted:
    """All trials by kind, and the checks that applied to any of them."""
    kinds = _kinds(analysis)
    checks = sorted({tally.check for kind in kinds for tally in kind.tallies})
    heads = (
        ("Anomalies", tuple(check for check in checks if not is_statement(check))),
        ("Statements", tuple(check for check in checks if is_statement(check))),
    )
    return Counted(kinds, tuple(head for head in heads if head[1]))


def _kinds(analysis: Analysis) -> tuple[Kind, ...]:
    """Every combination of scenario, world, rule set and role among the outcomes, with its checks by name."""
    sizes: Counter[_Role] = Counter()
    for each in kind_counts_of(analysis):
        sizes[_role(each)] += each.judged
    kinds: dict[_Role, list[OutcomeCount]] = {}
    for count in outcome_counts_of(analysis):
        kinds.setdefault(_role(count), []).append(count)
    return tuple(Kind(*kind, sizes[kind], _by_check(counts)) for kind, counts in sorted(kinds.items()))


#: Scenario, world, rules, role.
_Role = tuple[str, str, str, str]


def _role(kind: OfKind) -> _Role:
    control = "control" if kind.control else "with its fault"
    role = control if kind.plant is None else f"{control}, planted bug {kind.plant}"
    return (kind.scenario, kind.world, kind.rules, role)


def _by_check(counts: Sequence[OutcomeCount]) -> tuple[Tally, ...]:
    checks: dict[str, list[OutcomeCount]] = {}
    for count in counts:
        checks.setdefault(count.check, []).append(count)
    tallies = []
    for check, alike in sorted(checks.items()):
        counted: Counter[str] = Counter()
        for each in alike:
            counted[each.outcome] += each.trials
        tallies.append(
            Tally(
                check=check,
                violated=counted[Outcome.VIOLATED],
                clean=counted[Outcome.CLEAN],
                unknown=counted[Outcome.UNKNOWN],
                shortest_us=min(each.shortest_us for each in alike),
                longest_us=max(each.longest_us for each in alike),
                by_construction=(alike[0].scenario, alike[0].rules, check) in constructed(),
            )
        )
    return tuple(tallies)
