"""Z10, zombie: a member that outlived its session went on working beside its successor.

A member is a zombie from the moment at which the registry closes its session, if it is alive then and has not begun to
leave, until it first owns something in a new session: it was paused, or cut off, or another client ended its session
(S2). Its own report, OWNED, does not suffice to end that: the member must have reported before that it was CONNECTED in
the new session, and the registry must have the owner znode, created in that session.

A violation is work (effect runs, `history.intervals`) of the zombie on a partition while another member works on it.
The zombie must have reported work in that run at two moments since its session ended that are a work period apart (the
report at a stop does not count): a single report, or several at once, may be late reports of earlier work. If members
were paused, and the session of a member that was not paused ended without a fault that explains it, that member does
not show the effect of a pause. Both leave the check unknown.

`effect_overlap` looks at any two members; this check connects the overlap with the session that ended. A process that
stands still keeps its belief, and so does one that wakes and is fenced before it works: overlaps of belief are only
measured here; `belief_overlap` reports them. The registry's moment counts from 2 ms before.

Witness: the FAULT_BEGAN of the fault in which the session ended, if there was one; the SESSION_CLOSED; and the two
reports that began the overlapping runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted, faults
from rebalance_lab.checks.members import MemberLife, member_lives
from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.overlaps import Overlap, overlaps, worked_for_a_period
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import PAUSE, owner_claim
from rebalance_lab.history.views import beliefs, effects, events_of, once


@dataclass(frozen=True, slots=True)
class _Zombie:
    """`life` outlived its session, which ended with `closed`. `again_us`: when it first owned something in a new one;
    None if never. `fault`: the FAULT_BEGAN of the fault during which the session ended."""

    life: MemberLife
    closed: Event
    again_us: int | None
    fault: Event | None


@dataclass(frozen=True, slots=True)
class _Beside:
    """The overlap of a zombie and its successor in one layer, from `begin_us`."""

    zombie: _Zombie
    overlap: Overlap
    begin_us: int

    @property
    def length_us(self) -> int:
        return self.overlap.end_us - self.begin_us


def judge(history: History) -> Finding:
    """Measures: `zombies`; `count` of overlaps of work; `longest_us` of these, `longest_belief_us` of overlaps of
    belief; `total_belief_us` and `total_effect_us`, in partition-microseconds."""
    zombies = _zombies(history)
    belief = _beside(zombies, overlaps(beliefs(history), closed=False))
    every = _beside(zombies, overlaps(effects(history), closed=True))
    judged = [(one, _doubt(history, one)) for one in every]
    effect = [one for one, doubt in judged if doubt is None]
    numbers = {
        "count": len(effect),
        "zombies": len(zombies),
        "longest_us": _longest_us(effect),
        "longest_belief_us": _longest_us(belief),
        "total_belief_us": sum(one.length_us for one in belief),
        "total_effect_us": sum(one.length_us for one in effect),
    }
    if effect and not clock_drifted(history):
        return _violated(max(effect, key=lambda one: one.length_us), numbers)
    why = "no member that outlived its session went on working beside a successor"
    first = next((doubt for _, doubt in judged if doubt is not None), None)
    nothing = first if effects(history) else "no member ever worked on a partition"
    return not_violated(history, why, numbers, vacuous=nothing, across_layers=True)


def _doubt(history: History, one: _Beside) -> str | None:
    """Why an overlap of work does not show that a zombie worked on."""
    life, closed = one.zombie.life, one.zombie.closed
    paused = _paused(history)
    if one.zombie.fault is None and paused and life.actor not in paused:
        return f"session {closed.session} of {life.member} ended, but no fault paused it or explains it otherwise"
    own = one.overlap.first if one.overlap.first.holder == life.key else one.overlap.second
    if worked_for_a_period(history, own, closed.at_us - TOLERANCE_US):
        return None
    what = f"{life.member} reported work on {own.topic}/{own.partition}"
    return f"{what} for less than a work period after its session ended: the reports may be late"


@once
def _paused(history: History) -> frozenset[object]:
    """The targets of all pauses."""
    return frozenset(fault.began.of("target") for fault in faults(history) if fault.began.of("fault") == PAUSE)


def _violated(worst: _Beside, numbers: dict[str, int]) -> Finding:
    zombie, first, second = worst.zombie, worst.overlap.first, worst.overlap.second
    other = second.member if first.holder == zombie.life.key else first.member
    within = "" if zombie.fault is None else f" ({zombie.fault.of('fault')})"
    why = (
        f"{zombie.life.member} outlived its session {zombie.closed.session}{within}, and went on working beside "
        f"{other} for {seconds(numbers['longest_us'])}; beliefs overlapped for {seconds(numbers['longest_belief_us'])}"
    )
    began = None if zombie.fault is None else zombie.fault.id
    return violated(why, (began, zombie.closed.id, first.begin, second.begin), numbers)


def _zombies(history: History) -> list[_Zombie]:
    """Members whose session ended while they lived, by the time it ended."""
    sessions = _sessions(history)
    found = []
    for closed in events_of(history, Kind.SESSION_CLOSED):
        life = sessions.get(closed.session)
        if life is None or (life.left_us is not None and life.left_us <= closed.at_us + TOLERANCE_US):
            continue
        claims = _claims_after(history, life, closed)
        again = (event.at_us for event in events_of(history, Kind.OWNED) if _backed(event, life, claims))
        found.append(_Zombie(life, closed, next(again, None), _fault(history, life, closed)))
    return found


def _claims_after(history: History, life: MemberLife, closed: Event) -> list[tuple[Event, Event]]:
    """The claims of a member in other sessions, in which it was connected after `closed`: CONNECTED and CREATED."""
    connected = {
        event.session: event
        for event in reversed(events_of(history, Kind.CONNECTED))
        if event.actor == life.actor and event.session != closed.session and event.at_us > closed.at_us - TOLERANCE_US
    }
    return [
        (connected[event.session], event)
        for event in events_of(history, Kind.CREATED)
        if event.session in connected and owner_claim(event) is not None and event.member == life.member
    ]


def _backed(owned: Event, life: MemberLife, claims: Sequence[tuple[Event, Event]]) -> bool:
    """Whether a member's OWNED is backed by such a claim, and so ends the time in which it is a zombie."""
    return (owned.actor, owned.member) == life.key and any(
        connected.n < owned.n
        and created.at_us <= owned.at_us + TOLERANCE_US
        and owner_claim(created) == owner_claim(owned)
        for connected, created in claims
    )


def _sessions(history: History) -> dict[str | None, MemberLife]:
    """The member of each session."""
    begun = {life.started.id: life for life in member_lives(history)}
    current: dict[str, MemberLife] = {}
    found: dict[str | None, MemberLife] = {}
    for event in events_of(history, Kind.MEMBER_STARTED, Kind.CONNECTED):
        if event.kind is Kind.MEMBER_STARTED:
            current[event.actor] = begun[event.id]
        elif event.actor in current:
            found.setdefault(event.session, current[event.actor])
    return found


def _fault(history: History, life: MemberLife, closed: Event) -> Event | None:
    """The fault in which the session ended: one that targets the member, else the latest that targets no member."""
    during = [
        fault.began
        for fault in faults(history)
        if fault.began.at_us <= closed.at_us + TOLERANCE_US
        and (fault.ended is None or fault.ended.at_us >= closed.at_us - TOLERANCE_US)
    ]
    members = {each.actor for each in member_lives(history)}
    own = [began for began in during if began.of("target") == life.actor]
    others = [began for began in during if began.of("target") not in members]
    return next(reversed(own or others), None)


def _beside(zombies: Sequence[_Zombie], found: Sequence[Overlap]) -> list[_Beside]:
    """The overlaps of zombies with others while they were zombies."""
    by_who: dict[tuple[str, str], list[Overlap]] = {}
    for overlap in found:
        for one in (overlap.first, overlap.second):
            by_who.setdefault(one.holder, []).append(overlap)
    beside = []
    for zombie in zombies:
        for overlap in by_who.get(zombie.life.key, ()):
            begin_us = max(overlap.begin_us, zombie.closed.at_us - TOLERANCE_US)
            if overlap.end_us >= begin_us and (zombie.again_us is None or begin_us < zombie.again_us):
                beside.append(_Beside(zombie, overlap, begin_us))
    return beside


def _longest_us(found: Sequence[_Beside]) -> int:
    return max((one.length_us for one in found), default=0)


CHECK = Check(
    name="zombie_overlap",
    compares=(Layer.BELIEF, Layer.EFFECT, Layer.REGISTRY),
    meaning="A member that outlived its session went on working beside its successor.",
    together=(
        "ZooKeeper ended the member's session and others took its partitions, but the member goes on. It learns of "
        "this only when it speaks to a server again, and nothing checks what it does until then."
    ),
    plants=(Planted("pause-that-overstays", "zombie", settings={"pause_ms": "500"}),),
    judge=judge,
    applies_to=(ZK,),
)
