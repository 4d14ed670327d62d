"""O6w, hold and wait: members wait for each other, and each holds what another waits for (claim Z16).

The check looks at attempts until the phase `closing` that failed on a conflict, while their members went on holding
partitions in the registry. Such members form a cycle if each waits for a partition that the next one holds. The cycle
must last until the next rest, or until the runner stops waiting for one: members that let go before then were only
slow. Members of 0.8.2 delete what they claimed before they wait, so only other members can form a cycle.

Witness: the ATTEMPT_FAILED of each member of the cycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from rebalance_lab.checks.conflicts import met
from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted
from rebalance_lab.checks.members import Attempt, MemberLife, Partition, member_lives
from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.phases import closing_us
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval
from rebalance_lab.history.rebalances import AttemptFailure
from rebalance_lab.history.views import events_of, owners_by_member, owners_by_place


def judge(history: History) -> Finding:
    """Measures: `count` of cycles; `conflicts`, attempts that failed on one."""
    until_us, _ = closing_us(history)
    cycles = [] if clock_drifted(history) else wait_cycles(history, until_us)
    failed = events_of(history, Kind.ATTEMPT_FAILED)
    numbers = {
        "count": len(cycles),
        "conflicts": sum(event.of("reason") == AttemptFailure.CONFLICT for event in failed),
    }
    if cycles:
        why = ", ".join(f"{wait.member} holds {wait.holds} and waits for {wait.waits_for}" for wait in cycles[0])
        return violated(why, tuple(wait.failed.id for wait in cycles[0]), numbers)
    nothing = None if events_of(history, Kind.REBALANCE_BEGAN) else "no member ever rebalanced"
    why = "no members waited for each other in a cycle"
    return not_violated(history, why, numbers, vacuous=nothing, across_layers=True)


# -- members that wait for each other ------------------------------------------------------------

#: (group, member): groups may have members of the same name.
_GroupMember = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Wait:
    """From `failed`, an ATTEMPT_FAILED, until its next attempt ends, a member holds `held` and waits for `wanted`,
    partition -> its owner."""

    member: str
    group: str
    failed: Event
    held: tuple[Partition, ...]
    wanted: Mapping[Partition, str]

    @property
    def holds(self) -> str:
        return ", ".join(f"{topic}/{partition}" for topic, partition in self.held)

    @property
    def waits_for(self) -> str:
        return ", ".join(f"{topic}/{partition}" for topic, partition in self.wanted)


def wait_cycles(history: History, until_us: int) -> list[tuple[Wait, ...]]:
    """Each set of members that wait for each other in a lasting cycle, once, as the waits that closed it. A cycle does
    not last if one of them lets go before the next rest."""
    found: dict[frozenset[_GroupMember], tuple[Wait, ...]] = {}
    waiting: dict[_GroupMember, Wait] = {}
    for ended, life, attempt in _ends_of_attempts(history):
        if ended.at_us > until_us:
            break
        key = (life.group, life.member)
        waiting.pop(key, None)
        wait = _wait(history, life, attempt)
        if wait is None:
            continue
        waiting[key] = wait
        cycle = _cycle(wait, waiting)
        if cycle and _lasts(history, cycle, until_us):
            found.setdefault(frozenset((each.group, each.member) for each in cycle), cycle)
    return list(found.values())


def _ends_of_attempts(history: History) -> list[tuple[Event, MemberLife, Attempt]]:
    ends = [
        (attempt.ended, life, attempt)
        for life in member_lives(history)
        for attempt in life.attempts
        if attempt.ended is not None
    ]
    return sorted(ends, key=lambda row: (row[0].at_us, row[0].actor, row[0].n))


def _wait(history: History, life: MemberLife, attempt: Attempt) -> Wait | None:
    """What the member surely holds when its attempt has failed on a conflict that the registry witnesses."""
    failed = attempt.failed
    if failed is None or not met(history, life, attempt):
        return None
    group, member = life.group, life.member
    by_place = owners_by_place(history)
    mine = [one for one in owners_by_member(history).get((group, member), ()) if _there(one, failed.at_us)]
    if not mine:
        return None
    wanted = {}
    for topic, partition in attempt.lost:
        for one in by_place.get((group, topic, partition), ()):
            if one.member != member and _there(one, failed.at_us):
                wanted[one.topic, one.partition] = one.member
    held = tuple((one.topic, one.partition) for one in mine)
    return Wait(member, group, failed, held, wanted) if wanted else None


def _there(one: Interval, moment_us: int) -> bool:
    return one.begin_us <= moment_us and one.end_us > moment_us + TOLERANCE_US


def _lasts(history: History, cycle: tuple[Wait, ...], until_us: int) -> bool:
    """Whether each still holds what the one before it waits for at the next rest, or when the runner stops waiting for
    one (`until_us` if neither comes). The registry's times may be 2 ms early, and a quiet time precedes a rest: what
    was given up within 2 ms before it was given up after it."""
    closed_us = max(wait.failed.at_us for wait in cycle)
    rests = events_of(history, Kind.REST_REACHED, Kind.REST_MISSED)
    rest_us = min(next((rest.at_us for rest in rests if rest.at_us > closed_us), until_us), until_us)
    by_place = owners_by_place(history)
    return all(
        any(
            one.member == holder and one.begin_us <= closed_us and one.end_us > rest_us - TOLERANCE_US
            for (topic, partition), holder in wait.wanted.items()
            if holder == following.member
            for one in by_place[wait.group, topic, partition]
        )
        for wait, following in pairwise((*cycle, cycle[0]))
    )


def _cycle(wait: Wait, waiting: Mapping[_GroupMember, Wait]) -> tuple[Wait, ...]:
    """The shortest cycle of waits through `wait`; empty if there is none."""
    trails: list[tuple[Wait, ...]] = [(wait,)]
    seen = {wait.member}
    for trail in trails:  # grows during the loop, by each member once
        for partition, holder in trail[-1].wanted.items():
            other = waiting.get((wait.group, holder))
            if other is None or partition not in other.held:
                continue
            if other is wait:
                return trail
            if holder not in seen:
                seen.add(holder)
                trails.append((*trail, other))
    return ()


CHECK = Check(
    name="hold_and_wait",
    compares=(Layer.OP, Layer.REGISTRY),
    meaning="Members waited for each other forever, each holding what another waited for.",
    together=(
        "Each member waits for a partition that another one holds, and gives up nothing while it waits. None of them "
        "can go on before another does."
    ),
    plants=(Planted("keep-claims", "deadlock", settings={"keep": "false"}),),
    judge=judge,
    applies_to=(ZK,),
)
