"""What a member had read in an attempt when it decided: lists of its group's members, and its topics.

A reply carries the zxid of the last transaction that its server knew, so the registry's events say what the reply held.
What a member reports of its decision (DECIDED: `members_zxid`, the zxid of the latest change of the list; `view`, the
digest of list and partitions) only chooses among what it had read: in one attempt a process may read lists and topics
several times, as ZkClient's event thread reads again what a watch fired for. Where the report fits none of these, the
member saw what it had read if that was one view only; otherwise what it dealt from is not known.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product

from rebalance_lab.checks.groups import membership_changes, partitions_of, topic_changes
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once
from rebalance_lab.wire.view_digest import view_digest

_TOPICS = "/brokers/topics/"

#: More combinations of what topics held are not looked at: so many never change within one attempt.
_MOST_VIEWS = 256


@dataclass(frozen=True, slots=True)
class Read:
    """A view that a member had read. `zxid`: of the latest change of its list of members; `members`: how many were on
    it; `partitions`: (topic, its partitions) of the topics that were read before it in the attempt; `digest`: of the
    members and these."""

    zxid: int
    members: int
    partitions: tuple[tuple[str, tuple[int, ...]], ...]
    digest: str

    def is_named(self, decided: Event) -> bool:
        """Whether a decision says that it was made from this list."""
        return decided.of("members_zxid") == self.zxid

    def is_told(self, decided: Event) -> bool:
        """Whether a decision says that it was made from this view."""
        return self.is_named(decided) and decided.of("view") == self.digest


def views_read(history: History, group: str, began: Event, decided: Event) -> list[Read]:
    """The views that a process had read in an attempt when it decided, each once."""
    found: dict[Read, None] = {}
    replies = _lists_read(history).get((decided.actor, f"/consumers/{group}/ids"), ())
    for reply in [each for each in replies if began.n < each.n < decided.n]:
        zxid, members = _members_at(history, group, reply.zxid or 0)
        if zxid is not None:
            for partitions in _partitions_before(history, began, reply):
                read = Read(zxid, len(members), tuple(partitions.items()), view_digest(members, partitions))
                found[read] = None
    return list(found)


def view_read(history: History, group: str, began: Event, decided: Event) -> Read | None:
    """The view that a process dealt from; None where it is not known, or there is none."""
    found = views_read(history, group, began, decided)
    for fits in (Read.is_told, Read.is_named):
        fitting = [each for each in found if fits(each, decided)]
        if fitting:
            return fitting[0] if len(fitting) == 1 else None
    return found[0] if len(found) == 1 else None


@once
def _lists_read(history: History) -> dict[tuple[str, str], list[Event]]:
    """(process, path) -> its replies with the children of a znode, in order."""
    found: dict[tuple[str, str], list[Event]] = {}
    for event in events_of(history, Kind.OK):
        if event.of("op") == "children":
            found.setdefault((event.actor, str(event.of("path"))), []).append(event)
    return found


def _members_at(history: History, group: str, zxid: int) -> tuple[int | None, tuple[str, ...]]:
    """When a group's list of members had last changed by a zxid (None: never), and who was on it."""
    changes = _lists(history).get(group, [])
    place = bisect_right(changes, zxid, key=lambda change: change[0])
    return changes[place - 1] if place else (None, ())


@once
def _lists(history: History) -> dict[str, list[tuple[int, tuple[str, ...]]]]:
    """Group -> (zxid, the members then) at each change of its list."""
    members: dict[str, set[str]] = {}
    found: dict[str, dict[int, tuple[str, ...]]] = {}
    for event in membership_changes(history):
        if event.member is None or event.kind is Kind.CHANGED:
            continue
        group = event.group or ""
        names = members.setdefault(group, set())
        (names.add if event.kind is Kind.CREATED else names.discard)(event.member)
        found.setdefault(group, {})[event.zxid or 0] = tuple(sorted(names))
    return {group: list(lists.items()) for group, lists in found.items()}


def _partitions_before(history: History, began: Event, reply: Event) -> Iterator[dict[str, tuple[int, ...]]]:
    """Topics that the process had read in the attempt before a reply, with the partitions that they had then; all
    combinations where topics were read more than once, and had changed."""
    read: dict[str, dict[tuple[int, ...], None]] = {}
    for event in _topics_read(history).get(reply.actor, ()):
        if began.n < event.n < reply.n:
            topic = str(event.of("path")).removeprefix(_TOPICS)
            read.setdefault(topic, {})[_topic_at(history, topic, event.zxid or 0)] = None
    for chosen in islice(product(*read.values()), _MOST_VIEWS):
        yield dict(zip(read, chosen, strict=True))


@once
def _topics_read(history: History) -> dict[str, list[Event]]:
    """Process -> its replies with what a topic's znode holds, or that there is none."""
    replies = events_of(history, Kind.OK, Kind.FAILED_OP)
    return _by_actor([each for each in replies if each.of("op") == "get" and str(each.of("path")).startswith(_TOPICS)])


def _by_actor(events: Sequence[Event]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in sorted(events, key=lambda event: event.n):
        found.setdefault(event.actor, []).append(event)
    return found


def _topic_at(history: History, topic: str, zxid: int) -> tuple[int, ...]:
    changes = _topics(history).get(topic, [])
    place = bisect_right(changes, zxid, key=lambda change: change[0])
    return changes[place - 1][1] if place else ()


@once
def _topics(history: History) -> dict[str, list[tuple[int, tuple[int, ...]]]]:
    """Topic -> (zxid, its partitions then) at each change of its znode; none where it was deleted."""
    found: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
    for topic, event in topic_changes(history):
        partitions = () if event.kind is Kind.DELETED else partitions_of(event)
        found.setdefault(topic, []).append((event.zxid or 0, partitions))
    return found
