"""From a plan to its members: the same settings in every world."""

from __future__ import annotations

from rebalance_lab.hosts.spec import MemberSpec
from rebalance_lab.trials.plan import Plan


def member_spec(plan: Plan, actor: str, *, connect: str, events: str) -> MemberSpec:
    """The start data of the plan's member `actor`."""
    properties = {
        "group.id": plan.text("group"),
        "zookeeper.connect": connect,
        "zookeeper.session.timeout.ms": plan.text("session_timeout_ms"),
        "rebalance.backoff.ms": plan.text("rebalance_backoff_ms"),
        "rebalance.max.retries": plan.text("rebalance_max_retries"),
    }
    return MemberSpec(
        actor=actor,
        host=f"host-{actor}",
        seed=plan.seed,
        rules=plan.rules,
        assignor=plan.text("assignor") or None,
        properties=properties,
        streams={plan.text("topic"): plan.number("streams")},
        work_period_ms=plan.number("work_period_ms"),
        fetcher_stop_ms=plan.number("fetcher_stop_ms"),
        plant=plan.plant,
        events=events,
    )
