"""What the history shows of a rebalance: whether its member carried it out, and why it may have released nothing.

A member may report a rebalance and do nothing in it. Kafka 0.8.2 (`ZookeeperConsumerConnector`, `rebalance`) does one
of these things in each rebalance:

- It finds no broker: the attempt ends with a warning, and the registry had no broker.
- It reads the list of members, decides, and claims what it wants. So the attempt that decided last must have read that
  list. For each partition that it wants, an owner znode that names it must stand during the rebalance, or ZooKeeper
  must have refused to create one.
- All its attempts fail. At least one must have made a request before.

The attempt that decided must have made FEWEST_READS, and one for each member of its list. Where the history does not
record a member's requests to ZooKeeper, reads and requests are not required.

A rebalance may end without a release (Z5a) for three reasons (`rebalance` and `syncedRebalance`):

- An attempt found no broker.
- The member was shutting down: it reported that it began to close before the rebalance ended.
- Every attempt failed. For each of them the history shows why: a conflict that the registry witnesses (`conflicts`), a
  request that was answered with an error, or a request that a lost connection left without an answer. An attempt that
  failed for another reason may have failed before its release; so may a rebalance that failed and reports no attempt.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter

from rebalance_lab.checks.conflicts import met, owners_at, refused
from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted
from rebalance_lab.checks.members import Attempt, MemberLife, Rebalance
from rebalance_lab.checks.operations import only_counted, recorded_singly, requests
from rebalance_lab.checks.registry_state import membership_changes
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.rebalances import RebalanceOutcome
from rebalance_lab.history.views import events_of, grouped, once
from rebalance_lab.wire.warnings import NO_BROKERS

#: An attempt that decides makes 2B + C + T + 6 reads at least, for B brokers, C members and T topics.
FEWEST_READS = 7


def carried_out(history: History, life: MemberLife, rebalance: Rebalance) -> bool:
    """Whether a member did what its rebalance reports. True if the history ends in it."""
    ended, attempts = rebalance.ended, rebalance.attempts
    if ended is None:
        return True
    if ended.of("outcome") != RebalanceOutcome.OK:
        return any(each.failed and _asked_any(history, life, each.began, each.failed) for each in attempts)
    if attempts and found_no_broker(history, attempts[-1], ended):
        return True
    dealt = next((each for each in reversed(attempts) if each.decided is not None), None)
    return dealt is not None and _read(history, life, dealt) and _claimed(history, life, rebalance, dealt)


def _read(history: History, life: MemberLife, attempt: Attempt) -> bool:
    """Whether an attempt read, before it decided, what it decides from, as far as the history shows."""
    assert attempt.decided is not None
    asked = _asked(history, life, attempt.began, attempt.decided)
    if asked is None:
        return True
    ids = f"/consumers/{life.group}/ids"
    listed = life.actor in only_counted(history) or any(
        each.of("op") == "children" and each.of("path") == ids for each in asked
    )
    members = attempt.decided.of("members")
    fewest = FEWEST_READS + (members if isinstance(members, int) else 0)
    return listed and sum(requests(each)[0] for each in asked) >= fewest


def _asked_any(history: History, life: MemberLife, first: Event, last: Event) -> bool:
    """Whether `_asked` has any, or is not known."""
    asked = _asked(history, life, first, last)
    return asked is None or len(asked) > 0


def _asked(history: History, life: MemberLife, first: Event, last: Event) -> Sequence[Event] | None:
    """The requests of a process between two of its events: each INVOKED, and each OPERATIONS that may count a request
    of that time. None if the history does not record its requests."""
    if life.actor not in recorded_singly(history) | only_counted(history):
        return None
    requested = _requests(history).get(life.actor)
    return () if requested is None else requested.between(first, last)


@dataclass(frozen=True, slots=True)
class _Requested:
    """The requests of a process. `single`: those that are events of their own, sorted by their numbers `ns`.
    `counted`: events that count several since a moment."""

    single: list[Event]
    ns: list[int]
    counted: list[tuple[int, Event]]

    def between(self, first: Event, last: Event) -> Sequence[Event]:
        single = self.single[bisect_right(self.ns, first.n) : bisect_left(self.ns, last.n)]
        return single + [
            each for since_us, each in self.counted if first.at_us <= each.at_us and since_us <= last.at_us
        ]


@once
def _requests(history: History) -> dict[str, _Requested]:
    by_actor = grouped(events_of(history, Kind.INVOKED, Kind.OPERATIONS), lambda event: event.actor)
    return {actor: _requested(asked) for actor, asked in by_actor.items()}


def _requested(asked: list[Event]) -> _Requested:
    single, counted = [], []
    for each in asked:
        since_us = each.of("since_us")
        if isinstance(since_us, int):
            counted.append((since_us, each))
        else:
            single.append(each)
    single.sort(key=attrgetter("n"))
    return _Requested(single, [each.n for each in single], counted)


def _claimed(history: History, life: MemberLife, rebalance: Rebalance, attempt: Attempt) -> bool:
    """Whether the member owned, or tried to claim, each partition that an attempt wanted."""
    assert rebalance.ended is not None
    begin_us, end_us = rebalance.began.at_us - TOLERANCE_US, rebalance.ended.at_us + TOLERANCE_US
    missing = [
        place
        for place in attempt.wants
        if not any(
            each.member == life.member and each.stood(begin_us, end_us)
            for each in owners_at(history, life.group, *place)
        )
    ]
    return not missing or len(refused(history, life, begin_us, end_us)) >= len(missing)


# -- rebalances without a release ----------------------------------------------------------------


class Excuse(Enum):
    """`POSSIBLE`: the history neither shows nor contradicts it."""

    SHOWN = "shown"
    POSSIBLE = "possible"
    NONE = "none"


def excuse(history: History, life: MemberLife, rebalance: Rebalance, attempt: Attempt, ended: Event) -> Excuse:
    """Whether a rebalance that ended with `ended` may have released nothing. `attempt`: its last one."""
    if ended.of("outcome") == RebalanceOutcome.SHUTDOWN:
        closing = life.closing
        return Excuse.SHOWN if closing is not None and closing.at_us <= ended.at_us else Excuse.NONE
    if ended.of("outcome") == RebalanceOutcome.FAILED:
        tried = rebalance.attempts
        shown = bool(tried) and all(_failed(history, life, each) for each in tried)
        return Excuse.SHOWN if shown else Excuse.POSSIBLE
    return Excuse.SHOWN if found_no_broker(history, attempt, ended) else Excuse.NONE


def _failed(history: History, life: MemberLife, attempt: Attempt) -> bool:
    """Whether the history shows why an attempt failed."""
    failed = attempt.failed
    if failed is None:
        return False
    return met(history, life, attempt) or any(
        event.actor == life.actor and attempt.began.n < event.n < failed.n
        for event in events_of(history, Kind.FAILED_OP, Kind.DISCONNECTED, Kind.EXPIRED)
    )


def found_no_broker(history: History, attempt: Attempt, ended: Event) -> bool:
    """Whether an attempt warned that it found no broker, and the registry may have had none."""
    warned = any(
        event.actor == ended.actor
        and attempt.began.n < event.n < ended.n
        and str(event.of("message")).endswith(NO_BROKERS)  # real members put their name before it
        for event in events_of(history, Kind.WARNED)
    )
    return warned and may_lack_brokers(history, attempt.began.at_us, ended.at_us)


# -- times without brokers -----------------------------------------------------------------------


def may_lack_brokers(history: History, begin_us: int, end_us: int) -> bool:
    """Whether the registry may have had no broker at some moment of a time, 2 ms either way. It had none before the
    first broker came. If the clock drifted, any time without brokers may have been at that moment."""
    drifted = clock_drifted(history)
    return any(
        drifted or (begin_us <= until_us + TOLERANCE_US and from_us - TOLERANCE_US <= end_us)
        for from_us, until_us in _without(history)
    )


@once
def _without(history: History) -> list[tuple[int, int]]:
    """The times without a broker: from, until (us)."""
    end_us = history.events[-1].at_us if history.events else 0
    standing: set[str] = set()
    found: list[tuple[int, int]] = []
    since_us: int | None = 0
    for event in membership_changes(history):
        path = str(event.of("path"))
        if not path.startswith("/brokers/ids/"):
            continue
        if event.kind is Kind.DELETED:
            standing.discard(path)
        else:
            standing.add(path)
        if standing and since_us is not None:
            found.append((since_us, event.at_us))
            since_us = None
        elif not standing and since_us is None:
            since_us = event.at_us
    return found if since_us is None else [*found, (since_us, end_us)]
