"""What a member had read when it decided: the list of members that its decision names, and its topics.

A reply carries the zxid of the last transaction that its server knew, so the registry's events say what the reply held.
A decision (DECIDED) names the list that it was made from by `members_zxid`, the zxid of the latest change of that list.
If the member had such a reply, the list is what the registry held then, whatever else the decision reports of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.checks.groups import membership_changes, partitions_of, topic_changes
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once
from rebalance_lab.wire.view_digest import view_digest

_TOPICS = "/brokers/topics/"


@dataclass(frozen=True, slots=True)
class ReadList:
    """`members`: how many were on the list; `digest`: of these and of the partitions of the topics that were read
    before it in the same attempt; `at`: the OK of the reply."""

    members: int
    digest: str
    at: Event


def read_list(history: History, group: str, decided: Event, zxid: int) -> ReadList | None:
    """The latest reply before a decision whose list of members had changed last at a zxid; None where there is none."""
    replies = _lists_read(history).get((decided.actor, f"/consumers/{group}/ids"), ())
    for reply in reversed([each for each in replies if each.n < decided.n]):
        changed, members = _members_at(history, group, reply.zxid or 0)
        if changed == zxid:
            return ReadList(len(members), view_digest(members, _partitions_before(history, reply)), reply)
    return None


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


def _partitions_before(history: History, reply: Event) -> dict[str, tuple[int, ...]]:
    """Topics that the process had read in its attempt before a reply, with the partitions that they had then."""
    began = _latest(_attempts(history).get(reply.actor, []), reply)
    read: dict[str, Event] = {}
    for event in _topics_read(history).get(reply.actor, ()):
        if began is not None and began.n < event.n < reply.n:
            read[str(event.of("path")).removeprefix(_TOPICS)] = event
    return {topic: _topic_at(history, topic, event.zxid or 0) for topic, event in read.items()}


def _latest(events: Sequence[Event], before: Event) -> Event | None:
    place = bisect_right(events, before.n, key=lambda event: event.n)
    return events[place - 1] if place else None


@once
def _attempts(history: History) -> dict[str, list[Event]]:
    return _by_actor(events_of(history, Kind.ATTEMPT_BEGAN))


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
