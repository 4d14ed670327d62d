"""Which rebalances were carried out: a member may report a rebalance, and do nothing in it.

Kafka 0.8.2 (`ZookeeperConsumerConnector`, `rebalance`) does one of these things in each rebalance:

- It finds no broker: the attempt ends with a warning, and the registry had no broker.
- It reads the list of members, decides, and claims what it wants. So the attempt that decided last must have read that
  list. For each partition that it wants, an owner znode that names it must stand during the rebalance, or ZooKeeper
  must have refused to create one.
- All its attempts fail. At least one must have made a request before.

The attempt that decided must have made FEWEST_READS, and one for each member of its list. Where the history does not
say what a member asks of ZooKeeper, reads and requests are not looked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_lab.checks.conflicts import owners_at, refused
from rebalance_lab.checks.deals import partitions_in
from rebalance_lab.checks.excuses import found_no_broker
from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.lives import Attempt, Life, Rebalance
from rebalance_lab.checks.operations import only_counted, recorded_singly, requests
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once

#: An attempt that decides makes 2B + C + T + 6 reads at least, for B brokers, C members and T topics.
FEWEST_READS = 7


def carried_out(history: History, life: Life, rebalance: Rebalance) -> bool:
    """Whether a member did what its rebalance reports. True of one in which the history ends."""
    ended, attempts = rebalance.ended, rebalance.attempts
    if ended is None:
        return True
    if ended.of("outcome") != "ok":
        return any(_tried(history, life, each) for each in attempts)
    if attempts and found_no_broker(history, attempts[-1], ended):
        return True
    dealt = next((each for each in reversed(attempts) if each.decided is not None), None)
    return dealt is not None and _read(history, life, dealt) and _claimed(history, life, rebalance, dealt)


def _tried(history: History, life: Life, attempt: Attempt) -> bool:
    """Whether an attempt failed after a request."""
    failed = attempt.failed
    return failed is not None and _asked(history, life, attempt.began, failed) != []


def _read(history: History, life: Life, attempt: Attempt) -> bool:
    """Whether an attempt read what it decides from, as far as the history shows it, before it decided."""
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


def _asked(history: History, life: Life, first: Event, last: Event) -> Sequence[Event] | None:
    """What its process asked of ZooKeeper between two of its events: each INVOKED, and each OPERATIONS that may count
    a request of then. None where the history does not say what it asks."""
    if life.actor not in recorded_singly(history) | only_counted(history):
        return None
    return [each for each in _requests(history).get(life.actor, ()) if _between(each, first, last)]


def _between(asked: Event, first: Event, last: Event) -> bool:
    since_us = asked.of("since_us")
    if isinstance(since_us, int):
        return first.at_us <= asked.at_us and since_us <= last.at_us
    return first.n < asked.n < last.n


@once
def _requests(history: History) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in events_of(history, Kind.INVOKED, Kind.OPERATIONS):
        found.setdefault(event.actor, []).append(event)
    return found


def _claimed(history: History, life: Life, rebalance: Rebalance, attempt: Attempt) -> bool:
    """Whether it owned, or tried to claim, each partition that an attempt wanted."""
    assert attempt.decided is not None and rebalance.ended is not None
    begin_us, end_us = rebalance.began.at_us - TOLERANCE_US, rebalance.ended.at_us + TOLERANCE_US
    missing = [
        place
        for place in partitions_in(attempt.decided.of("wants"))
        if not any(
            each.member == life.member and each.stood(begin_us, end_us)
            for each in owners_at(history, life.group, *place)
        )
    ]
    return not missing or refused(history, life, begin_us, end_us) >= len(missing)
