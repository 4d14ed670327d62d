"""O4, orphaned owner: an owner znode that stands for nobody.

Its member is not registered by the session that owns the znode (it is dead, or came back in a new
session), or its living member does not believe that it owns the partition (defects F7, F8). Either
happens for a while in any rebalance: belief begins after the last claim, and a dead member's session
lives until it expires. It is an anomaly when it lasts longer than expiry and a rebalance may
(`bounds`; 2 ms more, as layers are compared), or when it is still so at a REST_REACHED: then nothing
is left that would end it. What begins in the phase `closing` does not count.

Of a member that never said MEMBER_STARTED no belief is known: only its registration is looked at.

Witness: the CREATED of the owner znode, what took its member away (the end of its id or of its
belief; nothing where it never believed), and what ended it, or the rest it stood at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.checks.bounds import bounds, lacking
from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted
from rebalance_lab.checks.findings import not_violated, unknown, violated
from rebalance_lab.checks.members import lives
from rebalance_lab.checks.model import ZK, Check, Finding
from rebalance_lab.checks.phases import closing_us, rests_of
from rebalance_lab.checks.stretches import Stretch, common, gaps, union
from rebalance_lab.checks.znodes import Znode, znodes_of
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import owner_claim
from rebalance_lab.history.views import beliefs


@dataclass(frozen=True, slots=True)
class _Orphan:
    """A stretch in which `znode` stood for nobody. `rest`: the first REST_REACHED within it."""

    znode: Znode
    stretch: Stretch
    registered: bool
    rest: Event | None


def judge(history: History) -> Finding:
    """Measures: `count` of anomalies, of these `unregistered` and `unbelieved`; `longest_us` and
    `total_us` of all stretches, legal ones too; `bound_us`."""
    missing = lacking(history)
    if missing is not None:
        return unknown(history, missing)
    limits = bounds(history)
    bound_us = limits.expiry_us + limits.rebalance_us
    found = _orphans(history)
    bad = [one for one in found if one.rest is not None or one.stretch.length_us > bound_us + TOLERANCE_US]
    if clock_drifted(history):
        bad = []
    lengths = [one.stretch.length_us for one in found]
    numbers = {
        "count": len(bad),
        "unregistered": sum(not one.registered for one in bad),
        "unbelieved": sum(one.registered for one in bad),
        "longest_us": max(lengths, default=0),
        "total_us": sum(lengths),
        "bound_us": bound_us,
    }
    if bad:
        return _violated(max(bad, key=lambda one: one.stretch.length_us), bound_us, numbers)
    nothing = None if any(not znode.is_id for znode in znodes_of(history)[0]) else "the registry never held an owner"
    why = "every owner znode stood for a registered member that believed to own it"
    return not_violated(history, why, numbers, vacuous=nothing, across_layers=True)


def _violated(worst: _Orphan, bound_us: int, numbers: dict[str, int]) -> Finding:
    znode, stretch = worst.znode, worst.stretch
    what = "did not believe to own it" if worst.registered else "was not registered by its session"
    told = f"for {seconds(stretch.length_us)}"
    told += f"; the bound is {seconds(bound_us)}" if worst.rest is None else ", also at rest"
    last = stretch.end if worst.rest is None else worst.rest.id
    return violated(
        f"{znode.path} named {znode.member} as owner, which {what} {told}",
        (znode.created.id, stretch.begin, last),
        numbers,
    )


def _orphans(history: History) -> list[_Orphan]:
    znodes, _ = znodes_of(history)
    known = {life.member for life in lives(history)}
    ids: dict[tuple[str, str | None], list[Stretch]] = {}
    believed: dict[tuple[str, tuple[str, str, int]], list[Stretch]] = {}
    end_us, end = closing_us(history)
    for znode in znodes:
        if znode.is_id:
            ids.setdefault((znode.member, znode.created.session), []).append(_life(znode, end_us, end))
    for one in beliefs(history):
        believed.setdefault((one.member, one.place), []).append(Stretch(one.begin_us, one.end_us, one.begin, one.end))
    found: list[_Orphan] = []
    rests = rests_of(history)
    covers: dict[tuple[str | None, tuple[str, str, int, str]], list[Stretch]] = {}
    for znode in znodes:
        life = _life(znode, end_us, end)
        claim = owner_claim(znode.created)
        if claim is None:
            continue
        registered = union(ids.get((znode.member, znode.created.session), ()))
        key = (znode.created.session, claim)
        if key not in covers:
            its_beliefs = union(believed.get((znode.member, claim[:3]), ()))
            covers[key] = _both(registered, its_beliefs) if znode.member in known else registered
        found += [_orphan(znode, gap, registered, rests, end_us) for gap in gaps(covers[key], life)]
    return found


def _life(znode: Znode, end_us: int, end: tuple[str, int] | None) -> Stretch:
    """The znode's life, up to the phase `closing`."""
    created, deleted = znode.created, znode.deleted
    if deleted is None or deleted.at_us > end_us:
        return Stretch(created.at_us, end_us, created.id, end)
    return Stretch(created.at_us, deleted.at_us, created.id, deleted.id)


def _both(ones: Sequence[Stretch], others: Sequence[Stretch]) -> list[Stretch]:
    """The common parts of two unions, in order."""
    return [part for one in ones for other in others if (part := common(one, other)) is not None]


def _orphan(znode: Znode, gap: Stretch, registered: Sequence[Stretch], rests: Sequence[Event], end_us: int) -> _Orphan:
    """`end_us`: where the phase `closing` begins. A gap that reaches it was not ended by an event."""
    until_us = gap.end_us if gap.end_us == end_us else gap.end_us - TOLERANCE_US - 1
    rest = next((rest for rest in rests if gap.begin_us + TOLERANCE_US < rest.at_us <= until_us), None)
    there = any(one.begin_us <= gap.begin_us < one.end_us for one in registered)
    return _Orphan(znode, gap, there, rest)


CHECK = Check(
    name="orphan_owner",
    compares=(Layer.REGISTRY, Layer.BELIEF),
    meaning="An owner znode named a member that was gone, or that did not believe it owned the partition.",
    plants=("leave-orphan",),
    judge=judge,
    applies_to=(ZK,),
)
