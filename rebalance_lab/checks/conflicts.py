"""Conflicts: attempts that failed because another member still owned a partition.

ATTEMPT_FAILED events show the conflicts of a spaced change; its cost does not. The registry must witness each of them:
during the attempt ZooKeeper refused as many creates of the member's session with NodeExists as it reported conflicts,
and each of these partitions had the owner znode of another member of the group, in a session of that member. Without
these witnesses, or if the attempt had not decided to claim the partition, the conflict is *contradicted*: a member
cannot excuse its reads by reporting attempts as failed.

A failed attempt that wants p partitions and loses f of them costs, by protocol: 2B + C + T + p + 6 + 2w + W reads, and
f more of the znodes that existed; p creates, and p - f deletes of what it got
(`ZookeeperConsumerConnector.reflectPartitionOwnershipDecision` of 0.8.2.2). This *accounts* for an excess over the
formulas (`change_costs`); it is not part of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.members import Attempt, MemberLife, member_lives
from rebalance_lab.checks.spaced_changes import SpacedChange
from rebalance_lab.checks.znodes import Znode, znodes_of
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.rebalances import AttemptFailure
from rebalance_lab.history.views import actor_by_session, events_of, grouped, once

#: ZooKeeper's error code if the znode to be created exists.
NODE_EXISTS = -110


@dataclass(frozen=True, slots=True)
class Conflict:
    """An attempt that failed on others' claims. `contradicted`: why the registry contradicts that; None if it does
    not."""

    life: MemberLife
    attempt: Attempt
    contradicted: str | None


def conflicts_of(history: History, change: SpacedChange) -> list[Conflict]:
    """The failed attempts of a change, each compared with the registry."""
    return [Conflict(life, attempt, _contradicted(history, life, attempt)) for life, attempt in change.conflicts()]


def met(history: History, life: MemberLife, attempt: Attempt) -> bool:
    """Whether an attempt failed on a conflict that the registry does not contradict."""
    return attempt.reason == AttemptFailure.CONFLICT and _contradicted(history, life, attempt) is None


def _contradicted(history: History, life: MemberLife, attempt: Attempt) -> str | None:
    """Why the registry, or the member's own decision, contradicts the conflicts that an attempt reported; None if
    neither does."""
    lost, failed = attempt.lost, attempt.failed
    if not lost or failed is None:
        return f"{life.member} reported a conflict without a partition"
    begin_us, end_us = attempt.began.at_us - TOLERANCE_US, failed.at_us + TOLERANCE_US
    for topic, partition in lost:
        if attempt.decided is not None and (topic, partition) not in attempt.wants:
            return f"{life.member} reported a conflict over {topic}/{partition}, which it had not decided to claim"
        if not any(
            _met(history, znode, life, begin_us, end_us) for znode in owners_at(history, life.group, topic, partition)
        ):
            return f"{life.member} reported a conflict over {topic}/{partition}, which no other member owned"
    creates = len(refused(history, life, begin_us, end_us))
    if creates < len(lost):
        return f"{life.member} reported {len(lost)} conflicts in one attempt, but ZooKeeper refused {creates} creates"
    return None


def refused(history: History, life: MemberLife, begin_us: int, end_us: int) -> list[Event]:
    """The creates of the member's sessions that ZooKeeper refused with NodeExists in this time."""
    return [
        event
        for event in events_of(history, Kind.FAILED)
        if event.of("code") == NODE_EXISTS
        and begin_us <= event.at_us <= end_us
        and actor_by_session(history).get(event.session) == life.actor
    ]


def _met(history: History, znode: Znode, life: MemberLife, begin_us: int, end_us: int) -> bool:
    """Whether another member of the group owned the znode, in a session of that member, during the attempt."""
    actor = actor_by_session(history).get(znode.created.session)
    other = znode.member != life.member and (life.group, znode.member, actor) in _started(history)
    return other and znode.stood(begin_us, end_us)


@once
def _started(history: History) -> frozenset[tuple[str, str, str | None]]:
    """(group, member, process) of every member that started."""
    return frozenset((life.group, life.member, life.actor) for life in member_lives(history))


def owners_at(history: History, group: str, topic: str, partition: int) -> Sequence[Znode]:
    """The lives of a partition's owner znode."""
    return _owners(history).get(f"/consumers/{group}/owners/{topic}/{partition}", ())


@once
def _owners(history: History) -> dict[str, list[Znode]]:
    """Path -> the lives of the owner znode there."""
    return grouped((znode for znode in znodes_of(history)[0] if not znode.is_id), lambda znode: znode.path)
