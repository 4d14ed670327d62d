"""O8, churn: a change moves no more partitions than necessary, and interrupts no ownership.

Between two consecutive rests, from the first until the phase `closing`, by the registry:

- *moved*: partitions with another owner than before;
- *minimum*: how many had to move so that each member owns as many as it does afterwards: what members gained, less the
  partitions without a former owner (a lower bound, whatever the rule);
- *interrupted*: partitions that a member released and then claimed again.

The statement fails if more than the minimum moved, or if any ownership was interrupted. In 0.8 every member gives up
all that it owns at every change (`ZKRebalancerListener.rebalance`, Kafka 0.8.2), so there it fails at nearly every
change.

Witness: of an interruption the DELETED and the CREATED; else the two CREATED of a partition that moved although its
owner stayed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from rebalance_lab.checks.faults import clock_drifted
from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.phases import NO_REST, JudgedPeriod, judged_period
from rebalance_lab.checks.registry_state import Place, RegistryState, membership_changes, states_at_rests, unrested
from rebalance_lab.checks.znodes import Znode, znodes_of
from rebalance_lab.history.events import Event, EventId, Layer
from rebalance_lab.history.files import History


@dataclass(frozen=True, slots=True)
class _Step:
    """From one rest to the next. `moved`: place -> its owners' events before and after."""

    moved: dict[Place, tuple[Event, Event]]
    minimum: int
    after: RegistryState

    @property
    def needless(self) -> int:
        return len(self.moved) - self.minimum


def judge(history: History) -> Finding:
    """Measures: `moved`, `minimum` and `interrupted`; `changes` of members, topics and brokers;
    `count`, partitions moved needlessly or interrupted."""
    period = judged_period(history)
    states = [state for _, state in states_at_rests(history)]
    steps = [_step(before, after) for before, after in pairwise(states)]
    broken = [] if period is None else _interruptions(history, period)
    numbers = {
        "count": sum(step.needless for step in steps) + len(broken),
        "moved": sum(len(step.moved) for step in steps),
        "minimum": sum(step.minimum for step in steps),
        "interrupted": len(broken),
        "changes": 0 if period is None else sum(period.holds(event) for event in membership_changes(history)),
    }
    if numbers["count"] and not clock_drifted(history):
        why = (
            f"{numbers['changes']} changes moved {numbers['moved']} partitions (minimum: {numbers['minimum']}) and "
            f"interrupted {len(broken)} ownerships"
        )
        return violated(why, broken[0] if broken else _needless(steps), numbers)
    nothing = NO_REST if period is None else unrested(history)
    why = "no more partitions moved than necessary, and no ownership was interrupted"
    return not_violated(history, why, numbers, vacuous=nothing, across_layers=True)


def _step(before: RegistryState, after: RegistryState) -> _Step:
    moved = {
        place: (former, owner)
        for place, owner in after.owners.items()
        if (former := before.owners.get(place)) is not None and former.member != owner.member
    }
    had = Counter((place[0], event.member) for place, event in before.owners.items())
    has = Counter((place[0], event.member) for place, event in after.owners.items())
    gained = sum(max(0, count - had[member]) for member, count in has.items())
    new = sum(place not in before.owners for place in after.owners)
    return _Step(moved, max(0, gained - new), after)


def _interruptions(history: History, period: JudgedPeriod) -> list[tuple[EventId, ...]]:
    """(DELETED, CREATED) of each time that a member claimed again what it had released."""
    former: dict[str, Znode] = {}
    found: list[tuple[EventId, ...]] = []
    for znode in sorted(znodes_of(history)[0], key=lambda znode: znode.rank):
        last = former.get(znode.path)
        former[znode.path] = znode
        if znode.is_id or last is None or last.deleted is None or last.member != znode.member:
            continue
        if period.holds(last.deleted) and period.holds(znode.created):
            found.append((last.deleted.id, znode.created.id))
    return found


def _needless(steps: list[_Step]) -> tuple[EventId, ...]:
    """The two owners of a partition that moved although its first owner stayed."""
    step = next(step for step in steps if step.needless > 0)
    pairs = sorted(step.moved.items())
    stayed = [pair for place, pair in pairs if (place[0], pair[0].member or "") in step.after.ids]
    former, owner = (stayed or [pair for _, pair in pairs])[0]
    return former.id, owner.id


CHECK = Check(
    name="churn",
    compares=(Layer.REGISTRY,),
    meaning="A change moved more partitions than necessary, or took some from their owner and gave them back.",
    together=(
        "Whatever has changed, every member gives up all it owns and takes it again. Partitions that need not move are "
        "interrupted, too."
    ),
    statement="A change moves no more partitions than necessary, and interrupts none that stay",
    plants=(Planted("rebalance-unasked", "zombie", control=True),),
    judge=judge,
    applies_to=(ZK,),
)
