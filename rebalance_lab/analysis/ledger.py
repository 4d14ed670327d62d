"""The ledger: what the articles claim, what is expected of each reading, and how it is judged.

The claims stand in `ledger.toml`, under the ids of the list of claims. A claim has one or more
readings (a rule set, generation, assignor or version; `all` where none is named). A reading
with a `run` is judged from trials; any other says what it waits for.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec

LEDGER_FILE = Path(__file__).with_name("ledger.toml")

#: What a universal statement needs before its verdict counts, and the denial of an existential one.
MANY_LIVE, MANY_SIMULATED = 5, 200

_OPERATORS = ("<", "<=", ">", ">=", "==", "!=")
_CONDITION_WORDS = 3


class Quantifier(StrEnum):
    EXISTS = "exists"  # "can happen": one history shows it
    ALWAYS = "always"  # "always", "never": no counter-example in enough trials
    TREND = "trend"  # a number against a size: many trials, fitted


class Expected(StrEnum):
    REPRODUCED = "reproduced"
    REFUTED = "refuted"


class LedgerError(Exception):
    """The ledger contradicts itself. The message names the claim."""


class Minimum(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Trials that must have been decided, live and simulated apart."""

    live: Annotated[int, msgspec.Meta(ge=0)]
    simulated: Annotated[int, msgspec.Meta(ge=0)]


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a claim is judged from trials.

    - `scenario`: whose trials; those with a plant never count. `checks`: by name.
    - `where`: conditions on a trial's parameters, `pause_ms > session_timeout_ms`: a parameter,
      an operator, a parameter or number. Trials that fail one, or lack the parameter, are others.
    - A trial *shows* an existential claim if its faults bit and every check is violated, and a
      universal one if its faults bit and every check is clean. It *denies* the first if its
      faults bit and every check is decided, not all violated; the second if one is violated.
    - `minimum`: trials that must show it. For existential claims `to_refute`: trials that must
      deny it while none shows it.
    - Controls: of the same scenario, rules and `where`, at least one in each world asked for
      clean in every check there is, and none violated. Without them nothing is reproduced.
    - Trials of one history, in one world, count once.
    """

    scenario: str
    checks: tuple[str, ...]
    where: tuple[str, ...] = ()
    minimum: Minimum | None = None
    to_refute: Minimum = Minimum(live=MANY_LIVE, simulated=MANY_SIMULATED)

    @property
    def conditions(self) -> list[tuple[str, str, str]]:
        """`where` as (parameter, operator, parameter or number)."""
        return [_condition(text) for text in self.where]


def _condition(text: str) -> tuple[str, str, str]:
    words = text.split()
    if len(words) != _CONDITION_WORDS or words[1] not in _OPERATORS:
        raise LedgerError(f"condition {text!r} is not `parameter operator parameter-or-number`")
    return (words[0], words[1], words[2])


class Reading(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reading of a claim. `rules`, `generation`: only trials of these count, all where
    left out. `waits_for`: what it cannot be judged without yet, where its claim has a run."""

    name: str
    expected: Expected
    reason: str
    rules: str | None = None
    generation: str | None = None
    waits_for: str | None = None


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A claim. `source`: where it stands, and where the behaviour is described. Either `run` or
    `waits_for` is given: what the lab cannot do yet that this needs, in words for users."""

    statement: str
    quantifier: Quantifier
    source: str
    readings: tuple[Reading, ...]
    run: Run | None = None
    waits_for: str | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """All claims by id, in the order of the list."""

    claims: dict[str, Claim] = field(default_factory=dict)

    def readings(self) -> Iterator[tuple[str, Claim, Reading]]:
        """(id, claim, reading) in the ledger's order."""
        for name, claim in self.claims.items():
            for reading in claim.readings:
                yield name, claim, reading


def minimum_of(claim: Claim) -> Minimum:
    """Trials that must show a claim: what it asks for, else its quantifier's."""
    if claim.run is not None and claim.run.minimum is not None:
        return claim.run.minimum
    if claim.quantifier is Quantifier.EXISTS:
        return Minimum(live=1, simulated=1)
    return Minimum(live=MANY_LIVE, simulated=MANY_SIMULATED)


def read_ledger(path: Path = LEDGER_FILE) -> Ledger:
    """Read a ledger file. Raises LedgerError."""
    try:
        claims = msgspec.convert(tomllib.loads(path.read_text("utf-8")), dict[str, Claim])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise LedgerError(f"{path}: {error}") from error
    for name, claim in claims.items():
        problem = _problem(claim)
        if problem is not None:
            raise LedgerError(f"{path}: claim {name} {problem}")
    return Ledger(claims)


def _problem(claim: Claim) -> str | None:
    names = [reading.name for reading in claim.readings]
    if not names:
        return "has no reading"
    if len(set(names)) != len(names):
        return "has two readings of one name"
    if (claim.run is None) == (claim.waits_for is None):
        return "needs either a run or what it waits for"
    return None if claim.run is None else _problem_of_run(claim, claim.run)


def _problem_of_run(claim: Claim, run: Run) -> str | None:
    if not run.checks:
        return "has a run without checks: it could not fail"
    if claim.quantifier is Quantifier.TREND:
        return "is a trend: no trial alone can show it"
    if any(minimum.live + minimum.simulated == 0 for minimum in (minimum_of(claim), run.to_refute)):
        return "would be decided by no trial at all"
    try:
        run.conditions  # noqa: B018  # read for its error
    except LedgerError as error:
        return f"has a bad `where`: {error}"
    return None
