"""Building a member of the chosen generation from its start data: the same in every world."""

from __future__ import annotations

from rebalance_lab.hosts.spec import MemberSpec
from rebalance_lab.world.ports import Environment
from zkconsumer.fetchers import LeaseSettings
from zkconsumer.member import Member
from zkconsumer.rules import rule_set


def build_member(environment: Environment, spec: MemberSpec) -> Member:
    """A member that has not started. Raises what its configuration raises (`zkconsumer.config`)."""
    rules = rule_set(spec.rules)
    return Member(
        environment,
        rules.config(spec.properties),
        rules=rules,
        assignor=spec.assignor,
        plant=spec.plant,
        lease=LeaseSettings(spec.work_period_ms, spec.fetcher_stop_ms),
    )
