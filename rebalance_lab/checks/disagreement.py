"""O7, disagreement: two members dealt from different views, or one view gave contradicting results.

Looked at is what members say they decided (DECIDED) from the first rest until the phase `closing`:

- *different views*: a member dealt (until its attempt ended) while another's attempt that had dealt from
  another view was still under way, or dealt from an older list of members than another had before.
  Views differ where the lists of members do, or the partitions. A view's digest holds the partitions
  of its member's own topics only, so where two members subscribe to different topics only the lists
  (`members_zxid`) are compared.
- *contradiction*: members dealt from one view, and two want the same partition, or all of them
  together leave one of their topics' partitions out (mixed assignors: facts 8.4, S5).

Attempts that overlap, one with the next, are a round. What followed a round with different views is
told by the worst of: *unowned* (a partition that the group has owned has no owner when the round's last
attempt ends), *wrong claim* (a deal from the older list claimed something, and succeeded), *conflict*
(an attempt of the round failed for one), *nothing*. Claim Z8 stands on this.

Witness: the two DECIDED; for what was left out, those of all members.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.checks.deals import Apart, Deal, Partition, Round, View, apart, deals_in, rounds_of
from rebalance_lab.checks.faults import TOLERANCE_US, not_violated, violated
from rebalance_lab.checks.groups import partitions_of, topic_changes
from rebalance_lab.checks.model import Check, Finding
from rebalance_lab.checks.scope import NO_REST, changes_scope
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval
from rebalance_lab.history.views import events_of, once, owners


@dataclass(frozen=True, slots=True)
class _Apart:
    """A round in which deals were `apart`, and what followed."""

    round: Round
    apart: Sequence[Apart]
    unowned: int
    wrong_claims: int
    conflicts: int

    @property
    def followed(self) -> str:
        if self.unowned:
            return f"unowned partitions ({self.unowned})"
        if self.wrong_claims:
            return f"a wrong claim ({self.wrong_claims})"
        return f"a conflict ({self.conflicts})" if self.conflicts else "nothing"

    @property
    def length_us(self) -> int:
        return self.round.end_us - self.round.deals[0].attempt.began.at_us


@dataclass(frozen=True, slots=True)
class _Contradiction:
    why: str
    witness: tuple[EventId, ...]


def judge(history: History) -> Finding:
    """Measures: `count`, of rounds with different views (`views_apart`) and of contradictions
    (`contradictions`); `rounds` looked at; `longest_us`, of a round with different views; what
    followed: `unowned` partitions, `wrong_claims`, `conflicts`, and rounds after which `nothing` did."""
    scope = changes_scope(history)
    deals = [] if scope is None else deals_in(history, scope)
    rounds = rounds_of(deals)
    found = _rounds_apart(history, rounds, deals)
    odd = _contradictions(history, deals)
    numbers = {
        "count": len(found) + len(odd),
        "views_apart": len(found),
        "contradictions": len(odd),
        "rounds": len(rounds),
        "longest_us": max((one.length_us for one in found), default=0),
        "unowned": sum(one.unowned for one in found),
        "wrong_claims": sum(one.wrong_claims for one in found),
        "conflicts": sum(one.conflicts for one in found),
        "nothing": sum(one.followed == "nothing" for one in found),
    }
    if found:
        return _violated(found, numbers)
    if odd:
        return violated(odd[0].why, odd[0].witness, numbers)
    why = "members that dealt at once dealt from one view, and their shares fitted together"
    return not_violated(history, why, numbers, vacuous=NO_REST if scope is None else None)


def _violated(found: Sequence[_Apart], numbers: dict[str, int]) -> Finding:
    worst = max(found, key=lambda one: (one.unowned, one.wrong_claims, one.conflicts))
    first = worst.apart[0]
    one, other = first.former, first.later
    lists = f"lists of {one.members} and {other.members} members"
    what = "different partitions" if first.stale is None else lists
    why = f"{one.member} and {other.member} dealt in one round from {what}; what followed: {worst.followed}"
    return violated(why, (one.decided.id, other.decided.id), numbers)


def _rounds_apart(history: History, rounds: Sequence[Round], deals: Sequence[Deal]) -> list[_Apart]:
    """The rounds in which a member dealt from another view than somebody else had."""
    later = {pair.later.decided.id: pair for pair in apart(deals)}
    found = []
    for each in rounds:
        pairs = [later[deal.decided.id] for deal in each.deals if deal.decided.id in later]
        if pairs:
            wrong = {
                pair.stale.decided.id for pair in pairs if pair.stale and pair.stale.succeeded and pair.stale.wants
            }
            conflicts = sum(deal.in_conflict for deal in each.deals)
            unowned = _unowned_at(history, each.deals[0].group, each.end_us)
            found.append(_Apart(each, pairs, unowned, len(wrong), conflicts))
    return found


def _unowned_at(history: History, group: str, moment_us: int) -> int:
    """How many partitions that the group has owned by a moment have no owner then, beyond doubt."""
    return sum(
        rows[0].begin_us <= moment_us and not _owned_at(rows, moment_us)
        for place, rows in _owners_by_place(history).items()
        if place[0] == group
    )


def _owned_at(rows: Sequence[Interval], moment_us: int) -> bool:
    """Whether any of a partition's owners, in order, was one within 2 ms of a moment."""
    first = bisect_right(rows, moment_us - TOLERANCE_US, key=lambda one: one.end_us)
    return first < len(rows) and rows[first].begin_us <= moment_us + TOLERANCE_US


@once
def _owners_by_place(history: History) -> dict[tuple[str, str, int], list[Interval]]:
    found: dict[tuple[str, str, int], list[Interval]] = {}
    for one in owners(history):
        found.setdefault(one.place, []).append(one)
    return found


# -- contradictions -----------------------------------------------------------------------------


def _contradictions(history: History, deals: Sequence[Deal]) -> list[_Contradiction]:
    by_view: dict[tuple[str, View], dict[str, Deal]] = {}
    for deal in deals:
        by_view.setdefault((deal.group, deal.view), {})[deal.member] = deal
    found: list[_Contradiction] = []
    for same in by_view.values():
        found += _both_want(list(same.values())) or _left_out(history, list(same.values()))
    return found


def _both_want(same: Sequence[Deal]) -> list[_Contradiction]:
    first: dict[Partition, Deal] = {}
    for deal in same:
        for wanted in deal.wants:
            other = first.setdefault(wanted, deal)
            if other is not deal:
                why = f"{other.member} and {deal.member} dealt from one view, and both want {wanted[0]}/{wanted[1]}"
                return [_Contradiction(why, (other.decided.id, deal.decided.id))]
    return []


def _left_out(history: History, same: Sequence[Deal]) -> list[_Contradiction]:
    """What no member wants, where all of the view have decided."""
    if len(same) != same[0].members:
        return []
    wanted = {each for deal in same for each in deal.wants}
    topics = _partitions(history, same[0].view.subscription.split(), same[0].decided)
    left = [each for each in topics if each not in wanted]
    if not left:
        return []
    topic, partition = left[0]
    why = f"all {len(same)} members dealt from one view, and none of them wants {topic}/{partition}"
    return [_Contradiction(why, tuple(deal.decided.id for deal in same))]


def _partitions(history: History, topics: Sequence[str], by: Event) -> list[Partition]:
    """The partitions these topics had some time before an event (a filter names no topic)."""
    latest = {
        topic: event
        for topic, event in topic_changes(history)
        if topic in topics and event.at_us < by.at_us - TOLERANCE_US
    }
    return [(topic, partition) for topic, event in sorted(latest.items()) for partition in partitions_of(event)]


def _decides(history: History) -> bool:
    return bool(events_of(history, Kind.DECIDED))


CHECK = Check(
    name="disagreement",
    compares=(Layer.OP, Layer.REGISTRY),
    meaning="Two members dealt out partitions at once from different views, or against each other from one.",
    plants=("deal-from-before", "never-claim-last"),
    judge=judge,
    applies=_decides,
)
