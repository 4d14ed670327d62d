"""O4, orphaned owner: an owner znode whose member is gone, or does not believe that it owns the partition.

Either the session that owns the znode has not registered the member (it is dead, or came back in a new session), or the
live member does not believe that it owns the partition (defects F7, F8). Both happen for a while in any rebalance:
belief begins after the last claim, and a dead member's session lives until it expires. It is an anomaly if it lasts
longer than expiry and a rebalance may (`bounds`; 2 ms more, because layers are compared), or if it is still so at a
REST_REACHED: then nothing is left that would end it. What begins in the phase `closing` does not count.

The belief of a member without MEMBER_STARTED is not known: the check looks only at its registration.

Witness: the CREATED of the owner znode, what orphaned it (the end of its member's id or belief; nothing if the member
never believed), and what ended it, or the rest at which it existed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.checks.bounds import bounds, lacking
from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted
from rebalance_lab.checks.members import member_lives
from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, unknown, violated
from rebalance_lab.checks.phases import closing_us, rests_of
from rebalance_lab.checks.stretches import Stretch, gaps, parts, union
from rebalance_lab.checks.znodes import Znode, znodes_of
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import owner_claim
from rebalance_lab.history.views import beliefs


@dataclass(frozen=True, slots=True)
class _Orphan:
    """A time in which `znode` was orphaned. `rest`: the first REST_REACHED within it."""

    znode: Znode
    stretch: Stretch
    registered: bool
    rest: Event | None


def judge(history: History) -> Finding:
    """Measures: `count` of anomalies, of these `unregistered` and `unbelieved`; `longest_us` and `total_us` of all such
    times, within the bound too; `bound_us`."""
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
    why = "every owner znode named a registered member that believed that it owned the partition"
    return not_violated(history, why, numbers, vacuous=nothing, across_layers=True)


def _violated(worst: _Orphan, bound_us: int, numbers: dict[str, int]) -> Finding:
    znode, stretch = worst.znode, worst.stretch
    what = "did not believe that it owned the partition" if worst.registered else "was not registered in its session"
    limit = f"the bound is {seconds(bound_us)}" if worst.rest is None else "it still did so at rest"
    why = f"{znode.path} named {znode.member}, which {what}, for {seconds(stretch.length_us)}; {limit}"
    last = stretch.end if worst.rest is None else worst.rest.id
    return violated(why, (znode.created.id, stretch.begin, last), numbers)


def _orphans(history: History) -> list[_Orphan]:
    znodes, _ = znodes_of(history)
    known = {life.member for life in member_lives(history)}
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
            covers[key] = parts(registered, its_beliefs) if znode.member in known else registered
        found += [_orphan(znode, gap, registered, rests, end_us) for gap in gaps(covers[key], life)]
    return found


def _life(znode: Znode, end_us: int, end: tuple[str, int] | None) -> Stretch:
    """The znode's life, up to the phase `closing`."""
    created, deleted = znode.created, znode.deleted
    if deleted is None or deleted.at_us > end_us:
        return Stretch(created.at_us, end_us, created.id, end)
    return Stretch(created.at_us, deleted.at_us, created.id, deleted.id)


def _orphan(znode: Znode, gap: Stretch, registered: Sequence[Stretch], rests: Sequence[Event], end_us: int) -> _Orphan:
    """`end_us`: when the phase `closing` begins. No event ended a gap that reaches it."""
    until_us = gap.end_us if gap.end_us == end_us else gap.end_us - TOLERANCE_US - 1
    rest = next((rest for rest in rests if gap.begin_us + TOLERANCE_US < rest.at_us <= until_us), None)
    there = any(one.begin_us <= gap.begin_us < one.end_us for one in registered)
    return _Orphan(znode, gap, there, rest)


CHECK = Check(
    name="orphan_owner",
    compares=(Layer.REGISTRY, Layer.BELIEF),
    meaning="An owner znode named a member that was gone, or that did not believe it owned the partition.",
    together=(
        "The owner znode marks the partition as taken, so no other member claims it. But the member that it names is "
        "gone, or does not believe that it owns the partition. This lasts until that member's session ends."
    ),
    plants=(Planted("leave-orphan", "zombie", control=True),),
    judge=judge,
    applies_to=(ZK,),
)
