"""The premise of Z16: members keep what they claimed while they wait to try again.

The check looks at every attempt that failed after its member had claimed something, in it or in an attempt before,
whatever reason the member reports: it may report a conflict as an error. (An attempt that a shutdown ended is not
repeated.) Kafka 0.8.2 deletes these owner znodes before the attempt ends as failed
(`ZookeeperConsumerConnector.reflectPartitionOwnershipDecision`), so it holds nothing while it waits. A member keeps its
claims if the registry has an owner znode of its session at any time of the wait: from 2 ms after the attempt failed to
2 ms before the next one began, or the rebalance ended. A member also waits within an attempt if, after ZooKeeper first
refused it a claim, it owns something for longer than the requests of an attempt may take (`bounds`; time under a fault
does not count). The member's settings and reports do not matter.

Witness: the ATTEMPT_FAILED, and the CREATED of an owner znode that the member had while it waited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.checks.bounds import bounds
from rebalance_lab.checks.conflicts import refused
from rebalance_lab.checks.faults import TOLERANCE_US, disturbed_until
from rebalance_lab.checks.members import Attempt, MemberLife, member_lives
from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.znodes import sessions_of
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval
from rebalance_lab.history.rebalances import AttemptFailure
from rebalance_lab.history.views import events_of, once, owners_by_member


@dataclass(frozen=True, slots=True)
class _Wait:
    """A failed attempt before which its member had claimed something; `held`: what it has while it waits."""

    member: str
    failed: Event
    held: Sequence[Interval]


def judge(history: History) -> Finding:
    """Measures: `waits` of members that had claimed something, `count` of those that kept it."""
    waits = _waits(history)
    kept = [wait for wait in waits if wait.held]
    numbers = {"count": len(kept), "waits": len(waits)}
    if kept:
        first = kept[0]
        names = ", ".join(f"{one.topic}/{one.partition}" for one in first.held)
        why = f"{first.member} kept {names} while it waited to try again"
        return violated(why, (first.failed.id, first.held[0].begin), numbers)
    why = "every member released its claims before it waited to try again"
    nothing = None if waits else "no member had claimed anything when an attempt failed"
    return not_violated(history, why, numbers, vacuous=nothing, across_layers=True)


@once
def _waits(history: History) -> list[_Wait]:
    """By member, and then by time."""
    made_by = {event.id: event.session for event in events_of(history, Kind.CREATED, Kind.CHANGED)}
    sessions = sessions_of(history)
    found = []
    for life in member_lives(history):
        claims = owners_by_member(history).get((life.group, life.member), ())
        own = [one for one in claims if _own(one, life, made_by, sessions)]
        for rebalance in life.rebalances:
            for index, attempt in enumerate(rebalance.attempts):
                following = rebalance.attempts[index + 1 : index + 2]
                until = following[0].began if following else rebalance.ended
                wait = _wait(history, life, attempt, until, own)
                if wait is not None:
                    found.append(wait)
    return found


def _own(
    one: Interval, life: MemberLife, made_by: Mapping[EventId, str | None], sessions: Mapping[str, set[str]]
) -> bool:
    """Whether this process created the znode: two processes may use one member's name."""
    return life.actor not in sessions or made_by.get(one.begin) in sessions[life.actor]


def _wait(
    history: History, life: MemberLife, attempt: Attempt, until: Event | None, own: Sequence[Interval]
) -> _Wait | None:
    """`until` ends the wait: the next attempt begins, or the rebalance ends; None if neither does."""
    failed = attempt.failed
    if failed is None or attempt.reason == AttemptFailure.SHUTDOWN:
        return None
    began_us = failed.at_us + TOLERANCE_US
    ended_us = None if until is None else max(failed.at_us, until.at_us - TOLERANCE_US)
    held = [one for one in own if one.end_us > began_us and (ended_us is None or one.begin_us <= ended_us)]
    held = held or _held_within(history, life, attempt, failed, own)
    claimed = [one for one in own if attempt.began.at_us - TOLERANCE_US <= one.begin_us <= failed.at_us]
    return _Wait(life.member, failed, held) if held or claimed else None


def _held_within(
    history: History, life: MemberLife, attempt: Attempt, failed: Event, own: Sequence[Interval]
) -> list[Interval]:
    """What the member owned for too long after ZooKeeper first refused it a claim in an attempt."""
    creates = refused(history, life, attempt.began.at_us, failed.at_us)
    if not creates:
        return []
    until_us = disturbed_until(history, creates[0].at_us, failed.at_us) + bounds(history).requests_us + TOLERANCE_US
    return [one for one in own if one.begin_us <= until_us < min(one.end_us, failed.at_us)]


CHECK = Check(
    name="kept_claims",
    compares=(Layer.REGISTRY, Layer.OP),
    meaning="A member kept what it had claimed while it waited for its next attempt.",
    together=(
        "A member waits for a partition that another one holds, and keeps what it has claimed itself. The other may be "
        "waiting for just that."
    ),
    statement="Members give back what they claimed before they wait for the next attempt",
    plants=(Planted("keep-claims", "deadlock", settings={"keep": "false"}),),
    judge=judge,
    applies_to=(ZK,),
    looks_at=_waits,
)
