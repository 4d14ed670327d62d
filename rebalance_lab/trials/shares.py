"""What each member takes when all members deal from one view: scenarios reason from it beforehand."""

from __future__ import annotations

from rebalance_lab.assignors import AssignmentContext, by_name, java_order
from rebalance_lab.trials.plan import Plan
from zkconsumer.rules import RULE_SETS


def shares_of(plan: Plan, *, members: int, rule: str = "") -> list[frozenset[int]]:
    """The partitions that m1, m2, … of the plan's group take when it has so many members, by the assignor `rule` (left
    out: the plan's). Members stand in the order of their ids, m10 before m2. Raises UnknownAssignor."""
    topic = plan.text("topic")
    partitions = tuple(range(plan.number("partitions")))
    threads = {
        f"m{number}": tuple(f"m{number}-{stream}" for stream in range(plan.number("streams")))
        for number in range(1, members + 1)
    }
    in_order = tuple(sorted((thread for own in threads.values() for thread in own), key=java_order))
    deal = by_name(rule or assignor_of(plan))
    return [
        frozenset(
            taken.partition
            for taken, _ in deal(
                AssignmentContext(plan.text("group"), member, {topic: own}, {topic: partitions}, {topic: in_order})
            ).owners
        )
        for member, own in threads.items()
    ]


def assignor_of(plan: Plan) -> str:
    """The assignor of the plan's members: the one it names, or that of their rule set; real ones deal as `shipped`."""
    return plan.text("assignor") or RULE_SETS["shipped" if plan.has_real_members else plan.rules].assignor
