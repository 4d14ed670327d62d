"""Z14: a member that names no group joins the default group.

A member that names no group reports this when it starts or is refused. None of them may be refused. All that register
must always be in the same group, whatever its name, and claim, own and work in no other. Kafka 0.8.2 as shipped
requires group.id (`kafka.consumer.ConsumerConfig`), so there the statement fails.

A group may be named after what its members have in common. So the check is unknown if only one member named no group;
if all of them subscribe to the same topics; if no two of them are known to be on different hosts (MEMBER_STARTED names
the host); and if another member named that group. The check cannot recognise a group that is named after something
that no event records, such as the user.

Witness: the refusal; or two events (a registration, a claim, OWNED or WORKED) in different groups.
"""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.registry_state import registration_of
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once


def judge(history: History) -> Finding:
    """Measures: `members` that named no group, of them `refused` and `registered`; `groups` in which they register,
    claim, own or work; `count`, the refused and the groups beyond the first."""
    refused, started = _refused(history), _started(history)
    registered = _registered(history, started)
    names = {event.member for event in registered}
    firsts: dict[str, Event] = {}
    for event in (*registered, *_used(history, started)):
        firsts.setdefault(str(event.group), event)
    numbers = {
        "count": len(refused) + max(0, len(firsts) - 1),
        "members": len(refused) + len(started),
        "refused": len(refused),
        "registered": len(names),
        "groups": len(firsts),
    }
    if refused:
        first = refused[0]
        return violated(f"{first.actor} named no group and was refused: {first.of('error')}", (first.id,), numbers)
    if len(firsts) > 1:
        one, other = list(firsts.values())[:2]
        both = f"groups {one.group} and {other.group}"
        why = f"{one.member} and {other.member} named no group, and are in {both}"
        if one.member == other.member:
            why = f"{one.member} named no group, and is in {both}"
        return violated(why, (one.id, other.id), numbers)
    why = f"{len(names)} members that named no group are all in group {', '.join(firsts)}"
    return not_violated(history, why, numbers, vacuous=_doubt(history, started, registered))


def _doubt(history: History, started: Sequence[Event], registered: Sequence[Event]) -> str | None:
    """Why it is not known which group is the default one."""
    names = {event.member for event in registered}
    if len(names) < len(started):
        return f"only {len(names)} of {len(started)} members that named no group registered"
    groups = {event.group for event in registered}
    for event in events_of(history, Kind.MEMBER_STARTED):
        if event not in started and event.group in groups:
            named = f"they are in group {event.group}, which {event.member} named"
            return f"{named}: it may not be the default group"
    if len(names) == 1:
        return "only one member named no group: others might be in another"
    if len({found for event in registered if (found := _subscription(event))}) <= 1:
        return "all members that named no group subscribe to the same topics: the group may be named after these"
    hosts = {str(event.of("host")) for event in started if event.of("host") is not None}
    if len(hosts) <= 1:
        where = f"but host {hosts.pop()}" if hosts else "at all"
        return f"no host {where} is known for the members that named no group: the group may be named after their host"
    return None


def _subscription(registered: Event) -> tuple[str, ...]:
    """The filter or the topics that a registration names; none if it cannot be read."""
    registration = registration_of(registered)
    return () if registration is None else tuple(sorted(dict(registration.subscription)))


@once
def _refused(history: History) -> list[Event]:
    """The members that were refused because they named no group."""
    refused = events_of(history, Kind.MEMBER_REFUSED)
    return [event for event in refused if event.of("group_given") is False and "group.id" in str(event.of("error"))]


@once
def _started(history: History) -> list[Event]:
    return [event for event in events_of(history, Kind.MEMBER_STARTED) if event.of("group_given") is False]


def _registered(history: History, started: Sequence[Event]) -> list[Event]:
    """All registrations of these members in the registry: a member may register more than once."""
    members = {event.member for event in started}
    return [event for event in events_of(history, Kind.CREATED) if event.member in members and event.partition is None]


def _used(history: History, started: Sequence[Event]) -> list[Event]:
    """The events in which one of these members uses a partition in a group: it claims it, owns it, or works on it."""
    members = {event.member for event in started}
    events = events_of(history, Kind.CREATED, Kind.OWNED, Kind.WORKED)
    return [event for event in events if event.member in members and event.partition is not None]


CHECK = Check(
    name="default_group",
    compares=(Layer.OP, Layer.REGISTRY),
    meaning="Members that named no group were refused, or are not all in one group.",
    together=(
        "A member that names no group must still be put into a group, or it cannot share topics with others. Here it "
        "was refused, or it is alone in a group of its own."
    ),
    statement="Members that name no group are all in the default group",
    plants=(Planted("group-of-its-own", "group-scope"),),
    judge=judge,
    applies_to=(ZK,),
    looks_at=lambda history: _refused(history) or _started(history),
)
