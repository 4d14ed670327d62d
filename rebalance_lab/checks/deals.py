"""Deals: what members decided in an attempt, and from which view; and rounds of deals that overlap.

A decision (DECIDED) names the list of members that it was made from. What its member saw is what it had read in that
attempt (`checks.reads`), not what it remembers from an earlier one. A decision that names a list which its member had
not read leaves the finding in doubt. A decision is left out if it names no list, or if the reads leave open what its
member saw. Where operations are only counted, what the decision reports is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.checks.groups import registration_of
from rebalance_lab.checks.lives import Attempt, Life, Rebalance, lives
from rebalance_lab.checks.operations import only_counted
from rebalance_lab.checks.reads import view_read, views_read
from rebalance_lab.checks.scope import Scope
from rebalance_lab.history.events import Event, Kind, order
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once

#: (topic, partition)
Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class View:
    """What a member dealt from. `subscription`: its own topics or filter, as text; `zxid`: the
    pzxid of the list of members; `digest`: of the members and the partitions of its own topics, as it read them
    (as it reports them where its operations are only counted)."""

    subscription: str
    zxid: int
    digest: str

    def apart(self, other: View) -> bool:
        """Whether the two saw different members, or different partitions."""
        if self.subscription != other.subscription:
            return self.zxid != other.zxid  # the digests are over different topics
        return self.digest != other.digest


@dataclass(frozen=True, slots=True)
class Deal:
    """One attempt that came to a decision. `members`: how many were registered, by its view;
    `ended`: the end of the attempt, or of the last one that went on with its claims (with
    keep.claims.on.conflict), None where the history ends first; `conflicts`: those of these
    attempts that failed because, as they report, others owned what they wanted; `named`: whether its member had read
    the list that the decision names; `partitions`: those of its view, None where operations are only counted."""

    life: Life
    attempt: Attempt
    decided: Event
    view: View
    members: int
    wants: tuple[Partition, ...]
    ended: Event | None
    end_us: int
    conflicts: tuple[Attempt, ...] = ()
    named: bool = True
    partitions: tuple[Partition, ...] | None = None

    @property
    def member(self) -> str:
        return self.life.member

    @property
    def group(self) -> str:
        return self.life.group

    @property
    def actor(self) -> str:
        return self.decided.actor

    @property
    def succeeded(self) -> bool:
        return self.ended is not None and self.ended.kind is Kind.REBALANCE_ENDED


@dataclass(frozen=True, slots=True)
class Round:
    """Deals of one group whose attempts overlap in time, one with the next."""

    deals: Sequence[Deal]

    @property
    def end_us(self) -> int:
        return max(deal.end_us for deal in self.deals)


@dataclass(frozen=True, slots=True)
class Apart:
    """Two deals of one group from different views: `later` was decided while `former` was under
    way, or from an older list than `former` had been."""

    former: Deal
    later: Deal

    @property
    def stale(self) -> Deal | None:
        """The one from the older list of members; None where the lists are the same."""
        if self.former.view.zxid == self.later.view.zxid:
            return None
        return min(self.former, self.later, key=lambda deal: deal.view.zxid)


def deals_in(history: History, scope: Scope) -> list[Deal]:
    """Every deal of the scope, by the time its attempt began, but those whose list is not known (`undated`)."""
    subscriptions = _subscriptions(history)
    found = [
        deal
        for life in lives(history)
        for rebalance in life.rebalances
        for index, attempt in enumerate(rebalance.attempts)
        if scope.holds(attempt.began) and (deal := _deal(history, life, rebalance, index, subscriptions)) is not None
    ]
    return sorted(found, key=lambda deal: order(deal.attempt.began))


def undated(history: History, scope: Scope) -> str | None:
    """Why a check of decisions shows nothing, if it is in doubt from which list of members decisions of the scope were
    made: they name none (logs of real members do not always show it), or one that their member did not read in
    that attempt."""
    decided = [event for event in events_of(history, Kind.DECIDED) if scope.holds(event)]
    unknown = sum(not isinstance(event.of("members_zxid"), int) for event in decided)
    doubts = [f"of {unknown} decisions it is not known which list of members they were made from"] if unknown else []
    doubts += [why for life in lives(history) for why in _misnamed(history, scope, life)][:1]
    return "; ".join(doubts) or None


def _misnamed(history: History, scope: Scope, life: Life) -> Iterator[str]:
    """Decisions of a member that name a list which it did not read in that attempt, or leave open what it saw."""
    for attempt in (each for rebalance in life.rebalances for each in rebalance.attempts):
        decided = attempt.decided
        if decided is None or not scope.holds(decided) or life.actor in only_counted(history):
            continue
        zxid = decided.of("members_zxid")
        if not isinstance(zxid, int):
            continue
        if view_read(history, life.group, attempt.began, decided) is None:
            yield f"{life.member} decided, and what it had read in that attempt leaves open from which view"
        if not any(each.zxid == zxid for each in views_read(history, life.group, attempt.began, decided)):
            yield f"{life.member} decided by a list of members of zxid {zxid:#x}, and had not read it in that attempt"


def apart(deals: Iterable[Deal]) -> list[Apart]:
    """Every pair of deals of two members of one group that are apart, by the time the later was decided.
    A member's former deals are out of force once it has dealt anew."""
    found: list[Apart] = []
    latest: dict[str, dict[str, Deal]] = {}  # of each group and process
    for deal in sorted(deals, key=lambda deal: order(deal.decided)):
        others = latest.setdefault(deal.group, {})
        for former in others.values():
            odd = former.end_us > deal.decided.at_us or former.view.zxid > deal.view.zxid
            if odd and former.actor != deal.actor and former.view.apart(deal.view):
                found.append(Apart(former, deal))
        others[deal.actor] = deal
    return found


def rounds_of(deals: Iterable[Deal]) -> list[Round]:
    """Deals, by the time they began, as rounds of each group."""
    found: list[Round] = []
    latest: dict[str, list[Deal]] = {}
    until_us: dict[str, int] = {}
    for deal in deals:
        if deal.group not in latest or deal.attempt.began.at_us >= until_us[deal.group]:
            latest[deal.group] = []
            until_us[deal.group] = 0
            found.append(Round(latest[deal.group]))
        latest[deal.group].append(deal)
        until_us[deal.group] = max(until_us[deal.group], deal.end_us)
    return found


def _deal(
    history: History, life: Life, rebalance: Rebalance, index: int, subscriptions: Mapping[tuple[str, str], str]
) -> Deal | None:
    attempt = rebalance.attempts[index]
    decided = attempt.decided
    if decided is None or (attempt.failed is not None and attempt.failed.of("reason") == "shutdown"):
        return None  # of a member that was shutting down nothing followed
    zxid, members, digest = (decided.of(name) for name in ("members_zxid", "members", "view"))
    if not isinstance(zxid, int):
        return None
    read = None
    if life.actor not in only_counted(history):
        read = view_read(history, life.group, attempt.began, decided)
        if read is None:
            return None
        zxid, members, digest = read.zxid, read.members, read.digest
    course = _course(rebalance, index)
    ended = course[-1].ended
    subscription = subscriptions.get((life.group, life.member), "")
    return Deal(
        life=life,
        attempt=attempt,
        decided=decided,
        view=View(subscription, zxid, str(digest)),
        members=members if isinstance(members, int) else 0,
        wants=partitions_in(decided.of("wants")),
        ended=ended,
        end_us=(ended or history.events[-1]).at_us,
        conflicts=tuple(each for each in course if each.failed is not None and each.failed.of("reason") == "conflict"),
        named=read is None or read.is_named(decided),
        partitions=None if read is None else tuple((topic, each) for topic, its in read.partitions for each in its),
    )


def partitions_in(pairs: object) -> tuple[Partition, ...]:
    """The [topic, partition] pairs of an event's detail (`wants`, `conflicts`); none where it has none."""
    return tuple((str(topic), int(each)) for topic, each in pairs) if isinstance(pairs, list | tuple) else ()


def _course(rebalance: Rebalance, index: int) -> Sequence[Attempt]:
    """An attempt, and those that went on with what it held."""
    course = [rebalance.attempts[index]]
    for following in rebalance.attempts[index + 1 :]:
        failed = course[-1].failed
        if failed is None or failed.of("holds") is None or following.decided is not None:
            break
        course.append(following)
    return course


@once
def _subscriptions(history: History) -> dict[tuple[str, str], str]:
    """(group, member) -> its topics or filter, as text, from its registration."""
    found: dict[tuple[str, str], str] = {}
    for event in events_of(history, Kind.CREATED):
        registration = registration_of(event)
        if event.member is not None and registration is not None:
            how = f"~{registration.pattern}~" if registration.wildcard else ""  # never the name of a topic
            names = sorted(dict(registration.subscription))
            found[event.group or "", event.member] = how + " ".join(names)
    return found
