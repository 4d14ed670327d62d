"""The role of a member of a consumer group: the same in every world."""

from __future__ import annotations

from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.kernel import Flag
from rebalance_lab.roles.spec import NodeSpec, Role
from rebalance_lab.world.errors import NodeExists
from rebalance_lab.world.ports import Environment
from zkconsumer.config import ConsumerConfig
from zkconsumer.errors import IllegalArgumentException, InvalidConfigException
from zkconsumer.fetchers import LeaseSettings
from zkconsumer.member import Member
from zkconsumer.rules import rule_set
from zkconsumer.subscription import BlackList, Static, Subscription, WhiteList


class MemberSpec(NodeSpec, frozen=True, kw_only=True, tag=__name__):
    """Start data of a member.

    `config`: consumer settings, which the rule set has not checked yet. `streams`: topic -> stream count; or
    `whitelist` or `blacklist`: a filter, with `filter_streams` streams. `assignor`: the assignor to use instead of the
    rule set's. `real`: whether this starts a real Kafka consumer instead of one of the lab's members.
    """

    rules: str
    assignor: str | None
    config: ConsumerConfig
    streams: dict[str, int]
    whitelist: str | None = None
    blacklist: str | None = None
    filter_streams: int = 1
    work_period_ms: int = 50
    fetcher_stop_ms: int = 0
    real: bool = False


def build_member(environment: Environment, spec: MemberSpec) -> Member:
    """Build a member, but do not start it. Raises the errors of its configuration (`zkconsumer.config`)."""
    rules = rule_set(spec.rules)
    return Member(
        environment,
        spec.config.accepted(rules.default_group),
        rules=rules,
        assignor=spec.assignor,
        plant=spec.plant,
        lease=LeaseSettings(spec.work_period_ms, spec.fetcher_stop_ms),
    )


async def run_member(environment: Environment, spec: MemberSpec, closing: Flag) -> None:
    """Run a member's whole life. If Kafka refuses its settings, or another session holds its id (with
    check.session.of.own.node), this is a result and is recorded. Every other error is raised."""
    try:
        member = build_member(environment, spec)
        await member.run(subscription_of(spec), closing)
    except (IllegalArgumentException, InvalidConfigException, NodeExists) as refused:
        detail: dict[str, object] = {"error": str(refused), "group_given": spec.config.group_given}
        environment.recorder.emit(Layer.OP, Kind.MEMBER_REFUSED, detail=detail)


def subscription_of(spec: MemberSpec) -> Subscription:
    """What the member subscribes to."""
    if spec.whitelist is not None:
        return WhiteList(spec.whitelist, spec.filter_streams)
    if spec.blacklist is not None:
        return BlackList(spec.blacklist, spec.filter_streams)
    return Static(spec.streams)


ROLE = Role("member", MemberSpec, run_member)
