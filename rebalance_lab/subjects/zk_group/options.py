"""From a plan to its members: the same settings in every world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rebalance_lab.roles.member import MemberSpec
from rebalance_lab.subjects.zk_group.console import stand_in
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.stage import NodeOptions
from zkconsumer.config import ConsumerConfig
from zkconsumer.lab_settings import NO_LAB_SETTINGS, LabSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOptions(NodeOptions):
    """How one member differs from the plan's settings for all members. None and empty mean: as in the plan.

    - `group`: "" means that the member names no group; the rule set decides what follows (claim Z14).
    - `streams`: topic -> stream count of a static subscription; or `whitelist`, `blacklist`: a filter, with
      `filter_streams` streams.
    - `fetcher_stop_ms`: how long its fetchers take to stop.
    - `consumer_id`: Kafka's setting consumer.id. `lab`: the lab's own settings.
    """

    group: str | None = None
    rules: str | None = None
    real: bool = False
    assignor: str | None = None
    streams: Mapping[str, int] | None = None
    whitelist: str | None = None
    blacklist: str | None = None
    filter_streams: int = 1
    fetcher_stop_ms: int | None = None
    consumer_id: str | None = None
    lab: LabSettings = NO_LAB_SETTINGS

    def __post_init__(self) -> None:
        given = [each for each in (self.streams, self.whitelist, self.blacklist) if each is not None]
        if len(given) > 1:
            raise ValueError("a member subscribes by topics, or by a white list, or by a black list")

    def spec(self, plan: Plan, actor: str, *, connect: str, events: str) -> MemberSpec:
        """The start data of the plan's member `actor`. Raises TrialError for what a real member cannot do."""
        group = plan.text("group") if self.group is None else self.group
        config = ConsumerConfig(
            zookeeper_connect=connect,
            zookeeper_session_timeout_ms=plan.number("session_timeout_ms"),
            zookeeper_connection_timeout_ms=plan.number("session_timeout_ms"),
            group_id=group,
            group_given=group != "",
            consumer_id=self.consumer_id,
            rebalance_backoff_ms=plan.number("rebalance_backoff_ms"),
            rebalance_max_retries=plan.number("rebalance_max_retries"),
            lab=self.lab,
        )
        filtered = self.whitelist is not None or self.blacklist is not None
        planned = {} if filtered else {plan.text("topic"): plan.number("streams")}
        stop_ms = plan.number("fetcher_stop_ms") if self.fetcher_stop_ms is None else self.fetcher_stop_ms
        spec = MemberSpec(
            actor=actor,
            host=f"host-{actor}",
            seed=plan.seed,
            rules=self.rules or plan.rules,
            real=self.real or plan.is_real(actor),
            assignor=self.assignor or plan.text("assignor") or None,
            config=config,
            streams=dict(planned if self.streams is None else self.streams),
            whitelist=self.whitelist,
            blacklist=self.blacklist,
            filter_streams=self.filter_streams,
            work_period_ms=plan.number("work_period_ms"),
            fetcher_stop_ms=stop_ms,
            operations=plan.operations,
            plant=plan.plant,
            events=events,
        )
        return stand_in(spec) if plan.world == "simulated" else spec


AS_PLANNED = MemberOptions()
