"""What each member takes if all members deal from one view, and how long its attempts take. Scenarios
derive their expectations from both."""

from __future__ import annotations

from rebalance_lab.assignors import AssignmentContext, by_name, java_order
from rebalance_lab.checks.bounds import REPLICATION_US
from rebalance_lab.trials.plan import Plan, PlanError
from zkconsumer.rules import RULE_SETS


def shares_of(plan: Plan, *, members: int, rule: str = "") -> list[frozenset[int]]:
    """The partitions that m1, m2, … of the plan's group take if it has so many members, by the assignor `rule`
    (default: the plan's). Members are ordered by their ids, m10 before m2. Raises UnknownAssignor."""
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


def attempt_ms(plan: Plan, *, members: int) -> int:
    """The longest time that the requests of one attempt take in a simulated world, rounded up: 3B + C + T + 7
    requests and three for each partition of the largest share, a round trip each (`checks.bounds`)."""
    largest = max(len(share) for share in shares_of(plan, members=members))
    requests = 3 * plan.number("brokers") + members + 1 + 7 + 3 * largest
    between_servers_us = 2 * REPLICATION_US if plan.number("servers") > 1 else 0
    return -(-requests * (2 * plan.number("latency_max_us") + between_servers_us) // 1000)


def retries_end_ms(plan: Plan) -> int:
    """When a member's last attempt begins, counted from its first. The back-off after the last attempt is left out."""
    return (plan.number("rebalance_max_retries") - 1) * plan.number("rebalance_backoff_ms")


def topics_may_differ(plan: Plan) -> None:
    """Raises PlanError if the assignor requires that all members read the same topics: otherwise every attempt would
    fail (`kafka.consumer.RoundRobinAssignor`, Kafka 0.8.2.2)."""
    if assignor_of(plan) == "roundrobin":
        raise PlanError(
            f"assignor=roundrobin: it works only if all members read the same topics, and those of {plan.scenario} "
            "read different ones; take another assignor, or scenario unequal-topics"
        )


def assignor_of(plan: Plan) -> str:
    """The assignor of the plan's members: the one that it names, or that of their rule set. Real members deal as
    `shipped`."""
    return plan.text("assignor") or RULE_SETS[plan.rules].assignor
