"""What scenarios with replicated partitions expect, whatever they do."""

from __future__ import annotations

from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Outcome
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.scenario import usual


def usual_of(plan: Plan, **otherwise: Outcome | None) -> dict[str, Outcome | None]:
    """The usual expectation of every check (`usual`), by the plan's rules. `otherwise`: the checks for which the
    scenario expects something else. Raises ValueError for an unknown check.

    By the rules of 0.8 a follower that gets a leader cuts its log at its own high watermark. It learns of its leader's
    one fetch late, so until it has fetched again it may lack what the leader has committed with it. By the rules up to
    KIP-101 it joins the ISR of a new leader once it has passed the high watermark, which that leader knows late; so it
    may lack what the leader before has committed (KAFKA-7128).
    """
    rules = ReplicationRules(plan.rules)
    cuts = rules is ReplicationRules.HIGH_WATERMARK
    lacks = not rules.joins_from_epoch_start and not plan.control
    by_rules = {
        "ahead_of_assumed_isr": None if cuts else Outcome.CLEAN,
        "ahead_of_isr": None if lacks else Outcome.CLEAN,
    }
    return usual(REPLICATION, **{**by_rules, **otherwise})
