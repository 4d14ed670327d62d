"""What members decided in an attempt (DECIDED), from which view, and which decisions overlap in time.

A decision names the list of members that it was made from. A member's view is what it had read in that attempt, not
what it remembers from an earlier one. A reply carries the zxid of the last transaction that its server knew, so the
registry's events show what the reply contained. The decision's own report (`members_zxid`, the zxid of the latest
change of the list, and `view`, the digest of list and partitions) only selects among the views that were read: in one
attempt a process may read lists and topics several times, because ZkClient's event thread reads again after a watch
has fired. If the report matches none of them, the view is known only if exactly one was read.

A decision that names a list which its member had not read leaves the finding in doubt. A decision is left out if it
names no list, or if the reads leave open what its member saw. Where operations are only counted, the report is used.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from operator import attrgetter

from rebalance_lab.checks.members import Attempt, MemberLife, Partition, Rebalance, member_lives
from rebalance_lab.checks.operations import only_counted
from rebalance_lab.checks.phases import JudgedPeriod
from rebalance_lab.checks.registry_state import (
    Timeline,
    membership_changes,
    partitions_of,
    registration_of,
    topic_changes,
)
from rebalance_lab.history.events import Event, EventId, Kind, order
from rebalance_lab.history.files import History
from rebalance_lab.history.rebalances import AttemptFailure
from rebalance_lab.history.views import events_of, grouped, once
from rebalance_lab.wire.view_digest import view_digest


@dataclass(frozen=True, slots=True)
class View:
    """What a member decided from. `subscription`: its own topics or filter, as text; `zxid`: the pzxid of the list of
    members; `digest`: of the members and the partitions of its own topics, as it read them (or as it reported them, if
    its operations are only counted)."""

    subscription: str
    zxid: int
    digest: str

    def differs(self, other: View) -> bool:
        """Whether the members or the partitions differ."""
        if self.subscription != other.subscription:
            return self.zxid != other.zxid  # the digests cover different topics
        return self.digest != other.digest


@dataclass(frozen=True, slots=True)
class Decision:
    """One attempt that reached a decision.

    `members`: how many were registered, by its view. `ended`: the end of the attempt, or of the last one that continued
    with its claims (with keep.claims.on.conflict); None if the history ends first. `conflicts`: those of these attempts
    that failed because, as they report, others owned what they wanted. `named`: whether its member had read the list
    that the decision names. `partitions`: those of its view; None if operations are only counted.
    """

    life: MemberLife
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
    """Decisions of one group whose attempts overlap in time, one with the next."""

    decisions: Sequence[Decision]

    @property
    def end_us(self) -> int:
        return max(decision.end_us for decision in self.decisions)


@dataclass(frozen=True, slots=True)
class DecisionPair:
    """Two decisions of one group from different views: `later` was made while `former` was under way, or from an older
    list than `former`."""

    former: Decision
    later: Decision

    @property
    def stale(self) -> Decision | None:
        """The one from the older list of members; None if the lists are the same."""
        if self.former.view.zxid == self.later.view.zxid:
            return None
        return min(self.former, self.later, key=lambda decision: decision.view.zxid)


def decisions_in(history: History, period: JudgedPeriod) -> list[Decision]:
    """Every decision of the period whose view is known (`view_doubts`), in the order in which their attempts began."""
    subscriptions = _subscriptions(history)
    found = [
        decision
        for life in member_lives(history)
        for rebalance in life.rebalances
        for index, attempt in enumerate(rebalance.attempts)
        if period.holds(attempt.began)
        and (decision := _decision(history, life, rebalance, index, subscriptions)) is not None
    ]
    return sorted(found, key=lambda decision: order(decision.attempt.began))


def view_doubts(history: History, period: JudgedPeriod) -> str | None:
    """Why a check of decisions shows nothing: it is not known from which list of members some decision was made,
    because it names none (logs of real members do not always show it), or one that its member had not read in that
    attempt."""
    decided = [event for event in events_of(history, Kind.DECIDED) if period.holds(event)]
    unknown = sum(not isinstance(event.of("members_zxid"), int) for event in decided)
    doubts = [f"{unknown} decisions do not record which list of members they were made from"] if unknown else []
    doubts += [why for life in member_lives(history) for why in _misnamed(history, period, life)][:1]
    return "; ".join(doubts) or None


def _misnamed(history: History, period: JudgedPeriod, life: MemberLife) -> Iterator[str]:
    """The decisions of a member that name a list which it had not read in that attempt, or whose view is unknown."""
    for attempt in life.attempts:
        decided = attempt.decided
        if decided is None or not period.holds(decided) or life.actor in only_counted(history):
            continue
        zxid = decided.of("members_zxid")
        if not isinstance(zxid, int):
            continue
        if view_read(history, life.group, attempt.began, decided) is None:
            yield f"{life.member} decided, but what it had read in that attempt does not show from which view"
        if not any(each.zxid == zxid for each in views_read(history, life.group, attempt.began, decided)):
            yield f"{life.member} decided from the members at zxid {zxid:#x}, which it had not read in that attempt"


def differing_pairs(decisions: Iterable[Decision]) -> list[DecisionPair]:
    """Every pair of decisions of two members of one group from different views, in the order of the later ones. A
    member's latest decision replaces its former ones."""
    found: list[DecisionPair] = []
    latest: dict[str, dict[str, Decision]] = {}  # of each group and process
    for decision in sorted(decisions, key=lambda decision: order(decision.decided)):
        others = latest.setdefault(decision.group, {})
        for former in others.values():
            odd = former.end_us > decision.decided.at_us or former.view.zxid > decision.view.zxid
            if odd and former.actor != decision.actor and former.view.differs(decision.view):
                found.append(DecisionPair(former, decision))
        others[decision.actor] = decision
    return found


def recorded_decisions(history: History) -> list[Event]:
    """All decisions that members recorded."""
    return events_of(history, Kind.DECIDED)


def rounds_of(decisions: Iterable[Decision]) -> list[Round]:
    """The rounds of each group. `decisions`: in the order in which their attempts began."""
    found: list[Round] = []
    latest: dict[str, list[Decision]] = {}
    until_us: dict[str, int] = {}
    for decision in decisions:
        if decision.group not in latest or decision.attempt.began.at_us >= until_us[decision.group]:
            latest[decision.group] = []
            until_us[decision.group] = 0
            found.append(Round(latest[decision.group]))
        latest[decision.group].append(decision)
        until_us[decision.group] = max(until_us[decision.group], decision.end_us)
    return found


def _decision(
    history: History, life: MemberLife, rebalance: Rebalance, index: int, subscriptions: Mapping[tuple[str, str], str]
) -> Decision | None:
    attempt = rebalance.attempts[index]
    decided = attempt.decided
    if decided is None or attempt.reason == AttemptFailure.SHUTDOWN:
        return None  # a member that shuts down does not act on it
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
    return Decision(
        life=life,
        attempt=attempt,
        decided=decided,
        view=View(subscription, zxid, str(digest)),
        members=members if isinstance(members, int) else 0,
        wants=attempt.wants,
        ended=ended,
        end_us=(ended or history.events[-1]).at_us,
        conflicts=tuple(each for each in course if each.reason == AttemptFailure.CONFLICT),
        named=read is None or read.is_named(decided),
        partitions=None if read is None else tuple((topic, each) for topic, its in read.partitions for each in its),
    )


def _course(rebalance: Rebalance, index: int) -> Sequence[Attempt]:
    """An attempt, and those that continued with what it held."""
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


# -- the views that a member had read ------------------------------------------------------------

_TOPICS = "/brokers/topics/"

#: At most so many combinations of topic contents are considered: fewer change within one attempt.
_MOST_VIEWS = 256


@dataclass(frozen=True, slots=True)
class ViewRead:
    """A view that a member had read. `zxid`: of the latest change of its list of members; `members`: their number;
    `partitions`: (topic, its partitions) of the topics that were read before the list in the attempt; `digest`: of the
    members and these."""

    zxid: int
    members: int
    partitions: tuple[tuple[str, tuple[int, ...]], ...]
    digest: str

    def is_named(self, decided: Event) -> bool:
        """Whether a decision reports that it was made from this list."""
        return decided.of("members_zxid") == self.zxid

    def is_reported(self, decided: Event) -> bool:
        """Whether a decision reports that it was made from this view."""
        return self.is_named(decided) and decided.of("view") == self.digest


def views_read(history: History, group: str, began: Event, decided: Event) -> list[ViewRead]:
    """The views that a process had read in an attempt when it decided, each once."""
    known, attempt = _views_read(history), (group, began.id, decided.id)
    if attempt not in known:
        known[attempt] = _read_views(history, group, began, decided)
    return known[attempt]


@once
def _views_read(_: History) -> dict[tuple[str, EventId, EventId], list[ViewRead]]:
    """What `views_read` has found so far. Several checks ask for each attempt."""
    return {}


def _read_views(history: History, group: str, began: Event, decided: Event) -> list[ViewRead]:
    found: dict[ViewRead, None] = {}
    replies = _lists_read(history).get((decided.actor, f"/consumers/{group}/ids"), ())
    lists = _lists(history).get(group, Timeline())
    for reply in _between(began, decided, replies):
        listed = lists.at(reply.zxid or 0)
        if listed is not None:
            zxid, members = listed
            for partitions in _partitions_before(history, began, reply):
                read = ViewRead(zxid, len(members), tuple(partitions.items()), view_digest(members, partitions))
                found[read] = None
    return list(found)


def view_read(history: History, group: str, began: Event, decided: Event) -> ViewRead | None:
    """The view that a process decided from; None if it is not known, or if there is none."""
    found = views_read(history, group, began, decided)
    for fits in (ViewRead.is_reported, ViewRead.is_named):
        fitting = [each for each in found if fits(each, decided)]
        if fitting:
            return fitting[0] if len(fitting) == 1 else None
    return found[0] if len(found) == 1 else None


_number = attrgetter("n")


def _between(began: Event, until: Event, events: Sequence[Event]) -> Sequence[Event]:
    """Those of a process's events, which are in the order of their numbers, that lie between two others."""
    return events[bisect_right(events, began.n, key=_number) : bisect_left(events, until.n, key=_number)]


@once
def _lists_read(history: History) -> dict[tuple[str, str], list[Event]]:
    """(process, path) -> its replies with the children of a znode, in the order of their numbers."""
    replies = [event for event in events_of(history, Kind.OK) if event.of("op") == "children"]
    return grouped(sorted(replies, key=_number), lambda event: (event.actor, str(event.of("path"))))


@once
def _lists(history: History) -> dict[str, Timeline[tuple[str, ...]]]:
    """Group -> its members, ascending."""
    members: dict[str, set[str]] = {}
    found: dict[str, Timeline[tuple[str, ...]]] = {}
    for event in membership_changes(history):
        if event.member is None or event.kind is Kind.CHANGED:
            continue
        group = event.group or ""
        names = members.setdefault(group, set())
        (names.add if event.kind is Kind.CREATED else names.discard)(event.member)
        found.setdefault(group, Timeline()).put(event, tuple(sorted(names)))
    return found


def _partitions_before(history: History, began: Event, reply: Event) -> Iterator[dict[str, tuple[int, ...]]]:
    """The topics that the process had read in the attempt before a reply, with the partitions that they had then; all
    combinations if topics were read more than once and had changed."""
    read: dict[str, dict[tuple[int, ...], None]] = {}
    for event in _between(began, reply, _topics_read(history).get(reply.actor, ())):
        topic = str(event.of("path")).removeprefix(_TOPICS)
        content = _topics(history).get(topic, Timeline()).value(event.zxid or 0, ())
        read.setdefault(topic, {})[content] = None
    for chosen in islice(product(*read.values()), _MOST_VIEWS):
        yield dict(zip(read, chosen, strict=True))


@once
def _topics_read(history: History) -> dict[str, list[Event]]:
    """Process -> its replies to reads of a topic's znode, also if it does not exist."""
    replies = events_of(history, Kind.OK, Kind.FAILED_OP)
    reads = [each for each in replies if each.of("op") == "get" and str(each.of("path")).startswith(_TOPICS)]
    return grouped(sorted(reads, key=_number), lambda event: event.actor)


@once
def _topics(history: History) -> dict[str, Timeline[tuple[int, ...]]]:
    """Topic -> its partitions; none after its znode was deleted."""
    found: dict[str, Timeline[tuple[int, ...]]] = {}
    for topic, event in topic_changes(history):
        partitions = () if event.kind is Kind.DELETED else partitions_of(event)
        found.setdefault(topic, Timeline()).put(event, partitions)
    return found
