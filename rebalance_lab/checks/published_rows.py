"""Z3, Z5b: at each rest the members own what the articles publish.

A PHASE with `published` lists what each live member should own at the rest that ends it, in the order of their ids.
This is Java's order of strings (`RangeAssignor` of 0.8.2.2 sorts threads by name), in which m10 comes before m2
whichever joined first. The check compares three things with it: the owner znodes of the phase's group that the registry
held when the outside observer last read them before the rest; what the members believed that they owned at the rest;
and what they worked on then, which must not exceed their rows. A quiet time precedes a rest, so a member that starts at
the moment of a rest comes after it. A rest that was missed is not judged.

Unknown: a rest before which the owners were not observed, or for which the observer saw other owners than the registry
held; and a rest at which a member had given up (its last rebalance had failed), because it may not have tried to own
its row.

Witness: the PHASE, what was observed, and the rest; for belief and work also the event with which they began (nothing
for a missing belief).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from rebalance_lab.checks.members import Partition, living_at
from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.phases import published_phases, published_rests
from rebalance_lab.checks.znodes import Reply, znodes_of
from rebalance_lab.history.events import Event, EventId, Kind, Layer, order
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval, owner_claim
from rebalance_lab.history.views import beliefs, effects, events_of

#: The partitions of each member, in order.
Rows = list[list[Partition]]

#: Member -> its partitions, in order.
_Shares = dict[str, list[Partition]]


@dataclass(frozen=True, slots=True)
class _Row:
    """A published row and what the trial showed.

    `observed`: the observer's reads. `members`: the live ones in order. `held`: what the registry held. `seen`: what
    the observer saw. `believed`, `worked`: intervals of the members. `gave_up`: members whose last rebalance before the
    rest had failed.
    """

    phase: Event
    rest: Event
    observed: list[Event]
    members: list[str]
    published: Rows
    held: _Shares
    seen: _Shares
    believed: list[Interval]
    worked: list[Interval]
    gave_up: list[str]

    def of(self, shares: _Shares) -> Rows:
        return [shares.get(member, []) for member in self.members]

    @property
    def strangers(self) -> list[str]:
        return sorted(set(self.held) - set(self.members))

    @property
    def wrong(self) -> str | None:
        """How it differs from what is published; None if it does not."""
        published = _text(self.published)
        if self.of(self.held) != self.published or self.strangers:
            more = f"; {', '.join(self.strangers)} also owned a partition" if self.strangers else ""
            return f"members owned {_text(self.of(self.held))}; published: {published}{more}"
        believed = self.of(_shares((one.member, one.topic, one.partition) for one in self.believed))
        if believed != self.published:
            return f"members believed that they owned {_text(believed)}; published: {published}"
        for first in self.outside(self.worked):
            return f"{first.member} worked on {first.topic}/{first.partition}; published: {published}"
        return None

    def outside(self, intervals: Iterable[Interval]) -> list[Interval]:
        """Those on partitions outside the member's row."""
        rows = dict(zip(self.members, self.published, strict=False))
        return [one for one in intervals if (one.topic, one.partition) not in rows.get(one.member, ())]

    @property
    def witness(self) -> tuple[EventId | None, ...]:
        wrong = [] if self.of(self.held) != self.published else self.outside((*self.believed, *self.worked))
        inside = [one.begin for one in wrong[:1]]
        return (self.phase.id, *(event.id for event in self.observed), *inside, self.rest.id)


def judge(history: History) -> Finding:
    """Measures: `rows` compared, `count` of those that differ."""
    every = [_row(history, phase, rest) for phase, rest in published_rests(history)]
    rows = [row for row in every if row.observed and not row.gave_up]
    wrong = [(row, why) for row in rows if (why := row.wrong) is not None]
    numbers = {"count": len(wrong), "rows": len(rows)}
    if wrong:
        first, why = wrong[0]
        return violated(f"at rest after phase {first.phase.of('name')} {why}", first.witness, numbers)
    doubts = [] if rows else ["no rest with an observation followed a published row"]
    doubts += [
        f"the owners were not observed after phase {row.phase.of('name')}" for row in every if rows and not row.observed
    ]
    doubts += [
        f"{', '.join(row.gave_up)} had given up at the rest after phase {row.phase.of('name')}"
        for row in every
        if row.gave_up
    ]
    doubts += [
        f"after phase {row.phase.of('name')} the outside observer saw {_text(row.of(row.seen))}, but the registry held"
        f" {_text(row.of(row.held))}"
        for row in rows
        if row.seen != row.held
    ]
    why = "at each rest members owned what is published"
    return not_violated(history, why, numbers, vacuous="; ".join(doubts) or None)


def _row(history: History, phase: Event, rest: Event) -> _Row:
    latest: dict[str, Event] = {}
    prefix = f"/consumers/{phase.group}/owners/"
    for event in events_of(history, Kind.OBSERVED):
        path = str(event.of("path"))
        if path.startswith(prefix) and order(phase) < order(event) < order(rest):
            latest[path[len(prefix) :]] = event
    living = living_at(history, phase.group, rest)
    # Java compares strings by their UTF-16 code units.
    members = sorted((life.member for life in living), key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return _Row(
        phase=phase,
        rest=rest,
        observed=list(latest.values()),
        members=members,
        published=[sorted(its) for its in msgspec.convert(phase.of("published"), Rows)],
        held=_shares(_held(history, latest)),
        seen=_shares(_owned(latest)),
        believed=_at_rest(beliefs(history), phase, rest),
        worked=[run for run in _at_rest(effects(history), phase, rest) if run.member in members],
        gave_up=[life.member for life in living if life.gave_up_by(rest)],
    )


def _shares(claims: Iterable[tuple[str, str, int]]) -> _Shares:
    """The claims (member, topic, partition) by member."""
    found: _Shares = {}
    for member, topic, partition in sorted(claims):
        found.setdefault(member, []).append((topic, partition))
    return found


def _held(history: History, latest: Mapping[str, Event]) -> Iterator[tuple[str, str, int]]:
    """What the registry held when the observer read."""
    for znode in znodes_of(history)[0]:
        claim = owner_claim(znode.created)
        event = None if claim is None else latest.get(claim[1])
        if claim is None or event is None or not znode.path.startswith(f"{event.of('path')}/"):
            continue
        zxid = event.of("owners_zxid")
        if znode.surely_there_at(Reply(event.at_us, zxid if isinstance(zxid, int) else event.zxid)):
            yield znode.member, claim[1], claim[2]


def _owned(observed: Mapping[str, Event]) -> Iterator[tuple[str, str, int]]:
    """What the observer saw. (Owner data are thread ids.)"""
    for topic, event in observed.items():
        owners = event.of("owners")
        for partition, thread in (owners if isinstance(owners, dict) else {}).items():
            yield str(thread).rpartition("-")[0], topic, int(partition)


def _at_rest(intervals: Sequence[Interval], phase: Event, rest: Event) -> list[Interval]:
    return [one for one in intervals if one.group == phase.group and one.begin_us < rest.at_us <= one.end_us]


def _text(rows: Rows) -> str:
    return " ".join("{" + ", ".join(f"{topic}/{partition}" for topic, partition in row) + "}" for row in rows)


CHECK = Check(
    name="published_rows",
    compares=(Layer.REGISTRY, Layer.BELIEF, Layer.EFFECT, Layer.OP),
    meaning="At rest the members did not own what the articles publish.",
    together="The published walk-through has another row here: the rule and the example disagree.",
    statement="After each step the ownership is that of the published walk-through",
    plants=(Planted("never-claim-last", "walkthrough"),),
    judge=judge,
    applies_to=(ZK,),
    looks_at=published_phases,
)
