"""The ledger: what the articles claim, what is expected of each reading, and how it is judged.

The claims are in `ledger.toml`, by their ids. A claim has one or more readings (a rule set, generation, assignor or
version; `all` where none is named). A reading with a `run` (its own, or its claim's) is judged from trials; any other
names what it waits for. docs/ledger.md explains verdicts, undecided trials, trends, premises and readings that hold by
construction. The rules in terms of the file:

**Rule sets.** A reading that is judged from trials names one rule set (`rules`), or several (`under`). Then it stands
for one reading each, named `described` or `described, its name`, so that no verdict about several rule sets rests on
trials of one.

**Undecided trials.** `reproduced` of a universal claim or trend, `refuted` of an existential claim, and `does not
apply` need at least DECIDED_PERCENT of the trials of each world to be decided, because an undecided trial may be the
one in which the claim fails. Every verdict that needs controls needs that share of its controls to be clean or
violated. One counter-example refutes a universal claim whatever else is undecided. A fit that disagrees is not a
counter-example: it needs the share.

**Costs.** Some claims say that one thing costs another: nothing is lost, but the partition is unavailable. The `checks`
of such a run look for the cost, and must be violated; those in `clean` look for what is spared, and must be clean.

**Measures** (`measures` of a run) are numbers that checks give in each trial. Verdicts say the median of all decided
trials, the least and the most. They decide nothing.

    measures = { lost_write_count = "acknowledged messages lost" }

**Conditions** (`where` of a run, and of a reading, which adds its own) choose trials by a parameter, an operator and a
bound:

    pause_ms > session_timeout_ms      a number or another parameter, by value
    assignor == 'roundrobin'           text, in single quotes, == or != only
    keep_claims == true                true or false, == or != only

**Trends** (`trend` of a run) judge a number against a size, over all trials that count:

    trend = { measure = "reads", model = "quadratic", between = [0.5, 1.1] }

In each world the points are the spaced changes of all decided trials that are not controls, whether these show or deny
the claim: `measure` against `against`, columns of the table of herd costs, and one point (the mean) for each size. The
`model` is `exponent` (b in a·size^b) or `quadratic` (c2 in c0 + c1·size + c2·size²), with a 95 % interval. The fit
*agrees* if the whole interval lies in `between` (ends included), and *disagrees* if none of it does. Otherwise, or
with fewer than `sizes` different sizes, it decides nothing. A trend is reproduced if enough trials show it, they are
controlled, and the fit agrees in each world asked for; it is refuted by one trial that denies it, and by a fit that
disagrees.

**Premises.** A reading with `expected = "does not apply"` names in `premise` the checks that are violated wherever the
claim's premise is present. It is judged as a universal statement about them: *does not apply* if enough trials find
the premise absent, *applies* if one trial finds it present.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec

LEDGER_FILE = Path(__file__).with_name("ledger.toml")

#: The trials that a universal statement needs before its verdict counts, and the denial of an existential one.
MANY_LIVE, MANY_SIMULATED = 5, 200

#: The most letters of a `brief`.
BRIEF_LETTERS = 74

#: The least share of a world's trials, in percent, that must be decided before they show what always holds. A busy
#: machine can disturb live trials; nothing disturbs simulated ones.
DECIDED_PERCENT = {"live": 50, "simulated": 90}

#: Columns of the table of herd costs that a trend can have, and its models.
TREND_MEASURES = ("reads", "writes", "notifications", "rebalances")
TREND_SIZES = ("members", "before")
TREND_MODELS = ("exponent", "quadratic")

#: How the names of measures that verdicts can have end; they begin with that of a check.
MEASURES = ("_longest_us", "_count")

_OPERATORS = ("<", "<=", ">", ">=", "==", "!=")
_TEXT_OPERATORS = ("==", "!=")
_CONDITION_WORDS = 3


class Quantifier(StrEnum):
    EXISTS = "exists"  # "can happen": one history shows it
    ALWAYS = "always"  # "always", "never": no counter-example in enough trials
    TREND = "trend"  # a number against a size: many trials, fitted


class Expected(StrEnum):
    REPRODUCED = "reproduced"
    REFUTED = "refuted"
    DOES_NOT_APPLY = "does not apply"


class Judgement(StrEnum):
    """What the trials say of a reading."""

    REPRODUCED = "reproduced"
    REFUTED = "refuted"
    DOES_NOT_APPLY = "does not apply"  # no trial has what the claim is about
    APPLIES = "applies"  # trials have it, though none was expected to
    UNKNOWN = "unknown"
    NOT_RUN = "not run"


class Status(StrEnum):
    """A judgement beside the expectation. The most important one is first."""

    SURPRISE = "surprise"
    UNKNOWN = "unknown"
    AS_EXPECTED = "as expected"
    DOES_NOT_APPLY = "does not apply"
    NOT_RUN = "not run"


class LedgerError(Exception):
    """The ledger contradicts itself. The message names the claim."""


class Minimum(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Trials that must have been decided, live and simulated apart."""

    live: Annotated[int, msgspec.Meta(ge=0)]
    simulated: Annotated[int, msgspec.Meta(ge=0)]


class Trend(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number against a size; see the module. `sizes`: the number of different ones needed. `change`: changes of this
    kind only; all if it is left out. `without_conflicts`: only changes in which no attempt failed on others' claims, by
    the recorded events."""

    measure: str
    between: tuple[float, float]
    model: str = "exponent"
    against: str = "members"
    sizes: int = 4
    change: str | None = None
    without_conflicts: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a trial's parameters. Either `bound` (a number or a parameter) or `text`
    (compared as JSON writes it, without quotes) is given."""

    parameter: str
    operator: str
    bound: str | None = None
    text: str | None = None


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a claim is judged from trials.

    - `scenario`: whose trials; those with a plant never count. `checks`: by name. `where`:
      conditions on their parameters. Trials that fail one, or lack the parameter, are others.
    - A trial is *decided* when its faults bit and every check is clean or violated (a check that
      did not apply leaves it undecided). With `needs_fault = false`, for scenarios whose cause is
      no fault (members that join), it need not have any; those that it has must have bitten.
    - A trial *shows* an existential claim if it is decided, every check is violated, and every one in
      `clean` is clean; any other claim if it is decided and every check is clean. It *denies* the first
      if it is decided and does not show it; the others if one is violated.
    - `minimum`: trials that must show it. For existential claims `to_refute`: trials that must
      deny it while none shows it.
    - Controls: of the same scenario, rules and `where`, at least one in each world asked for
      *clean*, and none *violated*, in every check that looks for an anomaly and in the run's own.
      (What holds of controls in checks of other statements says nothing about this one.) Checks
      that did not apply are passed over, but an existential claim's own: that nothing happens
      without the fault must have been looked for. Without controls nothing is reproduced.
    - `trend`: for claims with that quantifier, and only those. `clean`: for existential claims only.
    - `measures`: CHECK_longest_us or CHECK_count, and in words what it is; see the module.
    - Trials of one history, in one world, count once. Of simulated trials that say the same, those of one
      seed count once, whatever their settings.
    """

    scenario: str
    checks: tuple[str, ...]
    where: tuple[str, ...] = ()
    minimum: Minimum | None = None
    to_refute: Minimum = Minimum(live=MANY_LIVE, simulated=MANY_SIMULATED)
    needs_fault: bool = True
    trend: Trend | None = None
    clean: tuple[str, ...] = ()
    measures: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def conditions(self) -> list[Condition]:
        return [condition(text) for text in self.where]


def condition(text: str) -> Condition:
    """A condition as the module describes them. Raises LedgerError."""
    words = text.split(maxsplit=_CONDITION_WORDS - 1)
    if len(words) != _CONDITION_WORDS or words[1] not in _OPERATORS:
        raise LedgerError(f"condition {text!r} is not `parameter operator bound`")
    parameter, operator, bound = words
    quoted = len(bound) > 1 and bound[0] == bound[-1] == "'"
    if not quoted and bound not in ("true", "false"):
        if len(bound.split()) != 1:
            raise LedgerError(f"condition {text!r} has a bound of several words: put text in single quotes")
        return Condition(parameter, operator, bound=bound)
    if operator not in _TEXT_OPERATORS:
        raise LedgerError(f"condition {text!r} compares text: only == and != can")
    return Condition(parameter, operator, text=bound[1:-1] if quoted else bound)


class Reading(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reading of a claim.

    - `rules`, `generation`: only trials of these count. `rules` is left out only where the reading waits for
      something, `generation` means all where left out. `under`: see the module; empty in a Ledger.
    - `where`: conditions in addition to those of the run. `run`: instead of the claim's.
    - `premise`: checks that are violated where the claim's premise is present; for readings that
      expect *does not apply*, and only for those. They take the place of the run's checks.
    - `by_construction`: the members were built from the sentence that this reading tests.
    - `statement`: what this reading tests, if it is only a part of the claim's statement. `brief`: the same in a line
      of a terminal.
    - `waits_for`: what it cannot be judged without yet, where there is a run.
    """

    name: str
    expected: Expected
    reason: str
    rules: str | None = None
    under: tuple[str, ...] = ()
    generation: str | None = None
    where: tuple[str, ...] = ()
    run: Run | None = None
    waits_for: str | None = None
    premise: tuple[str, ...] = ()
    by_construction: bool = False
    statement: str | None = None
    brief: Annotated[str, msgspec.Meta(max_length=BRIEF_LETTERS)] | None = None

    def __post_init__(self) -> None:
        if self.under and self.rules is not None:
            raise ValueError(f"reading {self.name!r} names `rules` and `under`: give one of them")

    @property
    def conditions(self) -> list[Condition]:
        return [condition(text) for text in self.where]


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A claim. `source`: where it is stated, and where the behaviour is described. It has either a `run`, or in
    `waits_for` what it needs that the lab cannot do yet, in words for users. `brief`: the statement in a line of a
    terminal, where it is longer."""

    statement: str
    quantifier: Quantifier
    source: str
    readings: tuple[Reading, ...]
    run: Run | None = None
    waits_for: str | None = None
    brief: Annotated[str, msgspec.Meta(max_length=BRIEF_LETTERS)] | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """All claims by id, in the order of the file."""

    claims: dict[str, Claim] = field(default_factory=dict)

    def readings(self) -> Iterator[tuple[str, Claim, Reading]]:
        """(id, claim, reading) in the ledger's order."""
        for name, claim in self.claims.items():
            for reading in claim.readings:
                yield name, claim, reading


def run_of(claim: Claim, reading: Reading) -> Run | None:
    """How a reading is judged; None while it waits for something."""
    run = None if reading.waits_for is not None else reading.run or claim.run
    if run is None or not reading.premise:
        return run
    return msgspec.structs.replace(run, checks=reading.premise, clean=(), trend=None)


@cache
def constructed() -> frozenset[tuple[str, str, str]]:
    """(scenario, rules, check) in the lab's own ledger for which the check can only confirm the sentence from which the
    members were built."""
    return frozenset(
        (run.scenario, reading.rules or "", check)
        for _, claim, reading in read_ledger().readings()
        if reading.by_construction and (run := run_of(claim, reading)) is not None
        for check in run.checks
    )


def brief_of(claim: str, reading: str) -> str | None:
    """The statement of a reading in the lab's own ledger, in a line of a terminal; None if it has no short form."""
    known = read_ledger().claims.get(claim)
    found = next((each for each in known.readings if each.name == reading), None) if known is not None else None
    if known is None or found is None:
        return None
    return found.brief if found.statement is not None else known.brief


def quantifier_of(claim: Claim, reading: Reading) -> Quantifier:
    """How a reading is judged. That a premise is absent is a universal statement."""
    return Quantifier.ALWAYS if reading.premise else claim.quantifier


def minimum_of(quantifier: Quantifier, run: Run | None) -> Minimum:
    """The trials that must show it: as the run asks, else as the quantifier does."""
    if run is not None and run.minimum is not None:
        return run.minimum
    if quantifier is Quantifier.EXISTS:
        return Minimum(live=1, simulated=1)
    return Minimum(live=MANY_LIVE, simulated=MANY_SIMULATED)


def read_ledger(path: Path = LEDGER_FILE) -> Ledger:
    """Read a ledger file. Raises LedgerError."""
    try:
        claims = msgspec.convert(tomllib.loads(path.read_text("utf-8")), dict[str, Claim])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise LedgerError(f"{path}: {error}") from error
    for name, claim in claims.items():
        claims[name] = msgspec.structs.replace(claim, readings=tuple(_apart(claim.readings)))
        problem = _problem(claims[name])
        if problem is not None:
            raise LedgerError(f"{path}: claim {name} {problem}")
    return Ledger(claims)


def _apart(readings: Iterable[Reading]) -> Iterator[Reading]:
    """One reading for each rule set that a reading is `under`."""
    for reading in readings:
        for rules in reading.under:
            name = rules if reading.name == "all" else f"{rules}, {reading.name}"
            yield msgspec.structs.replace(reading, name=name, rules=rules, under=())
        if not reading.under:
            yield reading


def _problem(claim: Claim) -> str | None:
    names = [reading.name for reading in claim.readings]
    if not names:
        return "has no reading"
    if len(set(names)) != len(names):
        return "has two readings of one name"
    if (claim.run is None) == (claim.waits_for is None):
        return "needs either a run or what it waits for"
    runs = [claim.run, *(reading.run for reading in claim.readings)]
    problems = [_problem_of_run(claim, run) for run in runs if run is not None]
    problems += [_problem_of_reading(claim, reading) for reading in claim.readings]
    return next((problem for problem in problems if problem is not None), None)


def _problem_of_reading(claim: Claim, reading: Reading) -> str | None:
    if (reading.expected is Expected.DOES_NOT_APPLY) != bool(reading.premise):
        return "needs a `premise` in a reading if and only if that is expected not to apply"
    if reading.by_construction and (reading.expected is not Expected.REPRODUCED or reading.rules is None):
        return "can hold by construction only where members of one rule set are expected to reproduce it"
    if reading.rules is None and run_of(claim, reading) is not None:
        return "needs `rules` or `under` in each reading that is run: its verdict could rest on any rule set"
    return _problem_of_conditions(reading.where)


def _problem_of_run(claim: Claim, run: Run) -> str | None:
    if not run.checks:
        return "has a run without checks: it could not fail"
    if (claim.quantifier is Quantifier.TREND) != (run.trend is not None):
        return "needs a `trend` in its run if and only if it is a trend: no trial alone can show one"
    if any(minimum.live + minimum.simulated == 0 for minimum in (minimum_of(claim.quantifier, run), run.to_refute)):
        return "would be decided by no trial at all"
    if run.clean and claim.quantifier is not Quantifier.EXISTS:
        return "needs no `clean` in its run: only what can happen is shown by checks that are violated"
    unknown = [each for each in run.measures if not each.endswith(MEASURES)]
    if unknown:
        return f"has a measure {unknown[0]!r}, which ends with neither of: {', '.join(MEASURES)}"
    return _problem_of_conditions(run.where) or _problem_of_trend(run.trend)


def _problem_of_conditions(where: tuple[str, ...]) -> str | None:
    try:
        for text in where:
            condition(text)
    except LedgerError as error:
        return f"has a bad `where`: {error}"
    return None


def _problem_of_trend(trend: Trend | None) -> str | None:
    if trend is None:
        return None
    choices = (
        ("measure", trend.measure, TREND_MEASURES),
        ("against", trend.against, TREND_SIZES),
        ("model", trend.model, TREND_MODELS),
    )
    for name, said, known in choices:
        if said not in known:
            return f"has a trend with {name} {said!r}; there are: {', '.join(known)}"
    if not trend.between[0] < trend.between[1]:
        return f"has a trend that lies between {trend.between[0]} and {trend.between[1]}: nothing does"
    least = 4 if trend.model == "quadratic" else 3
    if trend.sizes < least:
        return f"has a trend from {trend.sizes} sizes; the {trend.model} model needs {least} to have an interval"
    return None
