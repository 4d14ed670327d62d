"""Building a member of the chosen generation from its start data: the same in every world."""

from __future__ import annotations

from pathlib import Path

from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.recorder import Sink
from rebalance_lab.hosts.spec import MemberSpec
from rebalance_lab.kernel import Flag
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.world.errors import NodeExists
from rebalance_lab.world.live.environment import live_environment, live_factory
from rebalance_lab.world.live.factory import LiveZooKeeperFactory
from rebalance_lab.world.live.security import NO_SECURITY, read_security
from rebalance_lab.world.ports import Environment
from zkconsumer.errors import IllegalArgumentException, InvalidConfigException
from zkconsumer.fetchers import LeaseSettings
from zkconsumer.member import Member
from zkconsumer.rules import rule_set
from zkconsumer.subscription import BlackList, Static, Subscription, WhiteList


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


def live_member(live: LiveKernel, spec: MemberSpec, sink: Sink) -> tuple[LiveZooKeeperFactory, Environment]:
    """Where a member on a real ZooKeeper opens its sessions, and its environment, recorded to `sink`. Raises
    BadSecurity."""
    security = NO_SECURITY if spec.security is None else read_security(Path(spec.security))
    factory = live_factory(spec.actor, live, spec.seed, security)
    environment = live_environment(
        spec.actor, live, sink, spec.seed, host=spec.host, operations=spec.operations, factory=factory
    )
    return factory, environment


async def run_member(environment: Environment, spec: MemberSpec, closing: Flag) -> None:
    """A member's whole life. Settings that Kafka refuses are a result, told in the history, and
    so is an id that another session holds (with check.session.of.own.node); all else that goes
    wrong is raised."""
    try:
        member = build_member(environment, spec)
        await member.run(subscription_of(spec), closing)
    except (IllegalArgumentException, InvalidConfigException, NodeExists) as refused:
        detail: dict[str, object] = {"error": str(refused), "group_given": "group.id" in spec.properties}
        environment.recorder.emit(Layer.OP, Kind.MEMBER_REFUSED, detail=detail)


def subscription_of(spec: MemberSpec) -> Subscription:
    """What the member subscribes to."""
    if spec.whitelist is not None:
        return WhiteList(spec.whitelist, spec.filter_streams)
    if spec.blacklist is not None:
        return BlackList(spec.blacklist, spec.filter_streams)
    return Static(spec.streams)
