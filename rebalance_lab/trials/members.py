"""From a plan to its members: the same settings in every world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rebalance_lab.hosts.spec import MemberSpec
from rebalance_lab.trials.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOptions:
    """How one member differs from the plan's settings for all members. None and empty mean: as in the plan.

    - `group`: "" means that the member names no group; the rule set decides what follows (claim Z14).
    - `streams`: topic -> stream count of a static subscription; or `whitelist`, `blacklist`: a filter, with
      `filter_streams` streams.
    - `fetcher_stop_ms`: how long its fetchers take to stop.
    - `properties`: settings under Kafka's own names, or the lab's. They override the plan's.
    - `servers`: names of the ZooKeeper servers in its connect string; empty: all of them.
    - `proxied`: whether its connections can be cut (in live trials, each goes through a proxy of its own).
    - `shares_process`: in live trials, members with the same name here share one OS process. Such a process
      cannot be paused or killed for one of them.
    """

    group: str | None = None
    rules: str | None = None
    assignor: str | None = None
    streams: Mapping[str, int] | None = None
    whitelist: str | None = None
    blacklist: str | None = None
    filter_streams: int = 1
    fetcher_stop_ms: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    servers: tuple[str, ...] = ()
    proxied: bool = False
    shares_process: str | None = None

    def __post_init__(self) -> None:
        given = [each for each in (self.streams, self.whitelist, self.blacklist) if each is not None]
        if len(given) > 1:
            raise ValueError("a member subscribes by topics, or by a white list, or by a black list")


AS_PLANNED = MemberOptions()


def member_spec(plan: Plan, actor: str, options: MemberOptions, *, connect: str, events: str) -> MemberSpec:
    """The start data of the plan's member `actor`."""
    group = plan.text("group") if options.group is None else options.group
    properties = {
        **({"group.id": group} if group else {}),
        "zookeeper.connect": connect,
        "zookeeper.session.timeout.ms": plan.text("session_timeout_ms"),
        "rebalance.backoff.ms": plan.text("rebalance_backoff_ms"),
        "rebalance.max.retries": plan.text("rebalance_max_retries"),
        **options.properties,
    }
    filtered = options.whitelist is not None or options.blacklist is not None
    planned = {} if filtered else {plan.text("topic"): plan.number("streams")}
    stop_ms = plan.number("fetcher_stop_ms") if options.fetcher_stop_ms is None else options.fetcher_stop_ms
    return MemberSpec(
        actor=actor,
        host=f"host-{actor}",
        seed=plan.seed,
        rules=options.rules or plan.rules_of(actor),
        assignor=options.assignor or plan.text("assignor") or None,
        properties=properties,
        streams=dict(planned if options.streams is None else options.streams),
        whitelist=options.whitelist,
        blacklist=options.blacklist,
        filter_streams=options.filter_streams,
        work_period_ms=plan.number("work_period_ms"),
        fetcher_stop_ms=stop_ms,
        operations=plan.operations,
        plant=plan.plant,
        events=events,
    )
