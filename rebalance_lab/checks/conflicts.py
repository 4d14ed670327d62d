"""Conflicts: attempts that failed because another member still owned a partition.

A spaced change is known to have conflicts by its ATTEMPT_FAILED events, never by what it cost. Each must be
witnessed by the registry: while the attempt went on, ZooKeeper refused as many creates of the member's
session with NodeExists as it reported conflicts, and each of these partitions had the owner znode of another
member of the group, in a session of that member. A conflict without these witnesses, or over a partition that the
attempt did not decide to claim, is *invented*: a member cannot excuse its reads by reporting attempts as failed.

What a failed attempt costs by protocol, with p partitions wanted and f of them lost: its reads, 2B + C
+ T + p + 6 + 2w + W, and f more to look at the znodes that were there; p creates, and p - f deletes of what
it won (`ZookeeperConsumerConnector.reflectPartitionOwnershipDecision` of 0.8.2.2). This *accounts* for an
excess over the formulas (`herd_formulas`); it is not part of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.checks.decisions import partitions_in
from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.members import Attempt, Life, lives
from rebalance_lab.checks.phases import changes_scope
from rebalance_lab.checks.spaced_changes import SpacedChange
from rebalance_lab.checks.znodes import Znode, znodes_of
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import actor_by_session, events_of, once

#: ZooKeeper's error code of a create where a znode already is.
NODE_EXISTS = -110


@dataclass(frozen=True, slots=True)
class Conflict:
    """An attempt of `life` that failed on others' claims. `wants`: partitions it tried to claim;
    `lost`: those that others owned. `invented`: why the registry contradicts it, None where it does
    not."""

    life: Life
    failed: Event
    wants: int
    lost: int
    invented: str | None


def conflicts_of(history: History, change: SpacedChange) -> list[Conflict]:
    """The failed attempts of a change, each held against the registry."""
    return [_conflict(history, life, attempt) for life, attempt in change.conflicts()]


@once
def met_in_changes(history: History) -> bool:
    """Whether any attempt after the first rest failed on a conflict that the registry does not contradict."""
    scope = changes_scope(history)
    return scope is not None and any(
        scope.holds(attempt.began) and met(history, life, attempt)
        for life in lives(history)
        for rebalance in life.rebalances
        for attempt in rebalance.attempts
    )


def met(history: History, life: Life, attempt: Attempt) -> bool:
    """Whether an attempt failed on a conflict that the registry does not contradict."""
    failed = attempt.failed
    if failed is None or failed.of("reason") != "conflict":
        return False
    return _invented(history, life, attempt, failed) is None


def _conflict(history: History, life: Life, attempt: Attempt) -> Conflict:
    assert attempt.failed is not None
    lost = partitions_in(attempt.failed.of("conflicts"))
    wants = () if attempt.decided is None else partitions_in(attempt.decided.of("wants"))
    why = _invented(history, life, attempt, attempt.failed)
    return Conflict(life, attempt.failed, len(wants), len(lost), why)


def _invented(history: History, life: Life, attempt: Attempt, failed: Event) -> str | None:
    """Why the registry, or the member's own decision, contradicts the conflicts that an attempt reported when it
    failed; None where neither does."""
    lost = partitions_in(failed.of("conflicts"))
    if not lost:
        return f"{life.member} reported a conflict and named no partition"
    begin_us, end_us = attempt.began.at_us - TOLERANCE_US, failed.at_us + TOLERANCE_US
    wants = None if attempt.decided is None else partitions_in(attempt.decided.of("wants"))
    for topic, partition in lost:
        if wants is not None and (topic, partition) not in wants:
            return f"{life.member} reported a conflict over {topic}/{partition}, which it had not decided to claim"
        if not any(
            _met(history, znode, life, begin_us, end_us) for znode in owners_at(history, life.group, topic, partition)
        ):
            return f"{life.member} reported a conflict over {topic}/{partition}, which no other member owned"
    creates = refused(history, life, begin_us, end_us)
    if creates < len(lost):
        return f"{life.member} reported {len(lost)} conflicts in one attempt; ZooKeeper refused {creates} creates"
    return None


def refused(history: History, life: Life, begin_us: int, end_us: int) -> int:
    """How many creates of the member's sessions ZooKeeper refused with NodeExists then."""
    return sum(
        event.of("code") == NODE_EXISTS
        and begin_us <= event.at_us <= end_us
        and actor_by_session(history).get(event.session) == life.actor
        for event in events_of(history, Kind.FAILED)
    )


def _met(history: History, znode: Znode, life: Life, begin_us: int, end_us: int) -> bool:
    """Whether it is another member's of the group, in a session of that member, and stood at some time of the
    attempt."""
    actor = actor_by_session(history).get(znode.created.session)
    other = znode.member != life.member and (life.group, znode.member, actor) in _started(history)
    return other and znode.stood(begin_us, end_us)


@once
def _started(history: History) -> frozenset[tuple[str, str, str | None]]:
    """(group, member, process) of every member that was started."""
    return frozenset((life.group, life.member, life.actor) for life in lives(history))


def owners_at(history: History, group: str, topic: str, partition: int) -> Sequence[Znode]:
    """The lives of a partition's owner znode."""
    return _owners(history).get(f"/consumers/{group}/owners/{topic}/{partition}", ())


@once
def _owners(history: History) -> dict[str, list[Znode]]:
    """Path -> the lives of the owner znode there."""
    found: dict[str, list[Znode]] = {}
    for znode in znodes_of(history)[0]:
        if not znode.is_id:
            found.setdefault(znode.path, []).append(znode)
    return found
