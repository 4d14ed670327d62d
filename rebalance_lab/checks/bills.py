"""Bills: what each spaced change of a history cost, beside what it must cost by the formulas.

The one computation of herd costs: the checks `herd_cost` and `conflict_cost` judge bills, and the
analysis lists them (`analysis.trialwise.herd_costs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.checks.causes import Cause, cause
from rebalance_lab.checks.conflicts import Conflict, conflicts_of
from rebalance_lab.checks.herd_formulas import Expected, expected
from rebalance_lab.checks.spaced_changes import Cost, SpacedChange, Who, cost, spaced_changes, uncountable
from rebalance_lab.checks.unheard import excuse
from rebalance_lab.history.files import History
from rebalance_lab.history.views import once

ROUNDS = ("notifications", "rebalances")
OPERATIONS = ("reads", "writes")

#: Members that a finding names, at most.
NAMED = 3


@dataclass(frozen=True, slots=True)
class Bill:
    """`doubt`: why the change's cost says nothing, None where it does. `silent`: why its reads and
    writes cannot be compared, None where they can. `conflicts`: attempts that failed on others'
    claims."""

    change: SpacedChange
    cost: Cost
    expected: Expected
    conflicts: Sequence[Conflict]
    doubt: str | None
    silent: str | None
    uncaused: Sequence[str] = ()

    @property
    def invented(self) -> str | None:
        """The first reported conflict that the registry contradicts; None where there is none."""
        return next((each.invented for each in self.conflicts if each.invented is not None), None)

    @property
    def added_reads(self) -> int | None:
        """Reads above the formula; None where it gives none."""
        return None if self.silent else self.cost.reads - (self.expected.reads or 0)

    @property
    def added_writes(self) -> int | None:
        return None if self.silent else self.cost.writes - (self.expected.writes or 0)

    @property
    def added_percent(self) -> int:
        """The larger of both as a share of the formula, in percent, rounded; 0 where it gives none."""
        pairs = ((self.added_reads, self.expected.reads), (self.added_writes, self.expected.writes))
        return max((round(100 * added / told) for added, told in pairs if added and told), default=0)

    @property
    def accounted_reads(self) -> int:
        """Reads of the failed attempts, by protocol."""
        return sum(self.expected.attempts.get(each.life.who, 0) + each.wants + each.lost for each in self.conflicts)

    @property
    def accounted_writes(self) -> int:
        """Writes of the failed attempts, by protocol: creates of all, deletes of what was won."""
        return sum(2 * each.wants - each.lost for each in self.conflicts)

    def wrong_rounds(self) -> list[str]:
        """Where notifications and rebalances differ, member by member, in words."""
        pairs = (
            ("notifications", self.cost.notified, self.expected.notified),
            ("rebalances", self.cost.rebalanced, self.expected.rebalancing),
        )
        found = [f"a rebalance of {self.uncaused[0]} for another reason"] if self.uncaused else []
        for name, counted, concerned in pairs:
            odd = _odd(counted, concerned)
            if odd:
                named = ", ".join(odd[:NAMED]) + (f", {len(odd) - NAMED} more differ" if odd[NAMED:] else "")
                found.append(f"{sum(counted.values())} {name} ({len(concerned)} expected; {named})")
        return found

    def wrong_operations(self) -> list[str]:
        """Where reads and writes differ, in words; nothing where they cannot be compared. With conflicts it
        is where they added more or less than their failed attempts account for."""
        if self.silent:
            return []
        found = self._wrong_commits()
        if self.conflicts:
            added, accounted = (self.added_reads, self.added_writes), (self.accounted_reads, self.accounted_writes)
            rows = zip(OPERATIONS, added, accounted, strict=True)
            return [
                f"{more} {name} above the formula ({told} accounted for)" for name, more, told in rows if more != told
            ] + found
        pairs = [(name, getattr(self.cost, name), getattr(self.expected, name)) for name in OPERATIONS]
        return [f"{counted} {name} ({told} expected)" for name, counted, told in pairs if counted != told] + found

    def _wrong_commits(self) -> list[str]:
        """Where offsets were written more often than commits account for, in words."""
        commits, most = self.cost.commits, self.expected.commits
        return [f"{commits} writes of offsets (at most {most} expected)"] if commits > most else []

    def measures(self) -> dict[str, int]:
        """Of this change, each by its name: `join_1_reads`, `join_1_expected_reads`, …"""
        name = self.change.name
        found = {f"{name}_members": self.change.before, f"{name}_retries": len(self.conflicts)}
        for each in (*ROUNDS, *OPERATIONS):
            found[f"{name}_{each}"] = getattr(self.cost, each)
            if each in ROUNDS or self.silent is None:
                found[f"{name}_expected_{each}"] = getattr(self.expected, each)
        if self.cost.commits:
            found[f"{name}_commits"] = self.cost.commits
        return found if self.cost.bytes is None else found | {f"{name}_bytes": self.cost.bytes}


def _odd(counted: Mapping[Who, int], concerned: frozenset[Who]) -> list[str]:
    """The members whose number is not what it must be: 1, and 0 for those that are not concerned."""
    return [f"{who[1]} had {number}" for who, number in counted.items() if number != (who in concerned)]


@once
def bills(history: History) -> Sequence[Bill]:
    """The bill of each spaced change that came to rest, in their order."""
    return [_bill(history, change) for change in spaced_changes(history)]


def _bill(history: History, change: SpacedChange) -> Bill:
    paid = cost(history, change)
    if change.why_not is not None:
        nothing = Expected(0, 0, frozenset(), frozenset(), None, None, change.why_not)
        return Bill(change, paid, nothing, (), change.why_not, change.why_not)
    told = expected(history, change)
    silent = uncountable(history, change) or told.silent
    causes = _causes(history, change, paid, told)
    doubt = _doubt(history, change, paid, told)
    if doubt is None and (unclear := [who[1] for who, why in causes.items() if why is Cause.OPEN]):
        doubt = f"what set the rebalance of {unclear[0]} off is not known"
    uncaused = [who[1] for who, why in causes.items() if why is Cause.OTHER]
    return Bill(change, paid, told, conflicts_of(history, change), doubt, silent, uncaused)


def _causes(history: History, change: SpacedChange, paid: Cost, told: Expected) -> dict[Who, Cause]:
    """What set off the one rebalance of each member that had one notification and was to rebalance for it. Of a topic
    it is not asked: members with a filter rebalance for it without their watcher."""
    if change.event is None or change.kind == "topic":
        return {}
    found = {}
    for life in change.members:
        asked = life.who in told.notified & told.rebalancing
        if not asked or paid.notified.get(life.who) != 1 or paid.rebalanced.get(life.who) != 1:
            continue
        its = (one.began for one in life.rebalances if change.phase.at_us <= one.began.at_us < change.rest.at_us)
        found[life.who] = cause(history, life, next(its), change.event)
    return found


def _doubt(history: History, change: SpacedChange, paid: Cost, told: Expected) -> str | None:
    """What a member's state at the change leaves open: an announcement of another group, or watches
    that were not set again yet."""
    if told.before != change.before:
        announced = f"the {change.kind} announced by {change.phase.actor}/{change.phase.n}"
        return f"{announced} is of a group of {change.before}, and {told.before} members were registered"
    lives = {life.who: life for life in change.members}
    unheard = [who for who in sorted(told.notified) if paid.notified.get(who) == 0]
    return next((why for who in unheard if (why := excuse(history, change, lives[who])) is not None), None)
