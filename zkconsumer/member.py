"""A member of a consumer group, as `ZookeeperConsumerConnector` of Kafka 0.8.2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rebalance_lab.history.events import Kind
from rebalance_lab.kernel import Flag
from rebalance_lab.world.ports import Environment
from zkconsumer.config import ConsumerConfig
from zkconsumer.connector import Connector
from zkconsumer.errors import NotSupported
from zkconsumer.fetchers import LeaseSettings
from zkconsumer.identifiers import consumer_id
from zkconsumer.plants import Plant
from zkconsumer.rebalance import MemberSettings
from zkconsumer.report import Report
from zkconsumer.rules import DESCRIBED, RuleSet
from zkconsumer.subscription import Subscription, exists_already, registration_of, subscription_of

DEFAULT_LEASE = LeaseSettings()


class Member:
    """One consumer.

    `rules`: the rule set that it follows. `assignor`: the name of an assignor that overrides the settings. `lease`: how
    its work is reported (a setting of the lab). `plant`: a planted bug (`zkconsumer.plants`); other names are ignored.

    `consumer_id` is that of the current connector: with restart.after.failure each has its own.

    Raises NotSupported for settings that work nowhere (see `_refuse`) and for Kafka's offset
    storage, and assignors.UnknownAssignor.
    """

    def __init__(
        self,
        environment: Environment,
        config: ConsumerConfig,
        *,
        rules: RuleSet = DESCRIBED,
        assignor: str | None = None,
        plant: str | None = None,
        lease: LeaseSettings = DEFAULT_LEASE,
    ) -> None:
        _refuse(config)
        self._assignor_name, self._assignor = rules.assignor_of(config, assignor)
        self._environment = environment
        if plant == Plant.GROUP_OF_ITS_OWN and not config.group_given:
            config = replace(config, group_id=environment.host)
        self._config = config
        self._rules = rules
        self._lease = lease
        self._plant = plant
        self._random = environment.random("consumer id")
        self._created = False
        self.consumer_id = self._new_id()

    def _new_id(self) -> str:
        environment, config = self._environment, self._config
        wall_ms = environment.clock.wall_ms()
        return consumer_id(
            config.group_id, config.consumer_id, host=environment.host, wall_ms=wall_ms, random=self._random
        )

    async def run(self, subscription: Subscription | Mapping[str, int], closing: Flag) -> None:
        """Connect, create the streams, work until `closing` is raised, leave. A mapping of topic -> streams is Static.

        If the first rebalance fails, the member stays as a ghost: registered, without streams (defect F9). With the
        cure restart.after.failure, a member leaves after any failed rebalance and starts again after one back-off, as
        often as necessary.

        Raises ZkTimeoutException, AssertionError for fewer than one stream, when called again
        MessageStreamsExistException or, with a filter, FilterStreamsExistException.
        """
        wanted = subscription_of(subscription)
        if self._created:
            raise exists_already(wanted)
        self._created = True
        tasks = self._environment.tasks
        while await self._live(wanted, closing):
            await tasks.first(closing.wait(), tasks.sleep(self._config.rebalance_backoff_ms * 1000))
            if closing.raised:
                return
            self.consumer_id = self._new_id()

    async def _live(self, subscription: Subscription, closing: Flag) -> bool:
        """The life of one connector. True when it ended because of a failed rebalance."""
        report = Report(self._environment.recorder, member=self.consumer_id, group=self._config.group_id)
        self._started(report, subscription)
        tasks = self._environment.tasks
        async with tasks.scope(self.consumer_id) as scope:
            connector = Connector(self._environment, scope, self._settings(subscription), report)
            await connector.connect()
            scope.spawn(connector.create(), f"{self.consumer_id}-create")
            ends = [closing.wait(), connector.broken]
            if self._config.lab.cures.restart_after_failure:
                ends.append(connector.failed)
            await tasks.first(*ends)
            await connector.shutdown()
            scope.cancel(f"{self.consumer_id} has shut down")
        if connector.broken.done:
            connector.broken.result()
        return not closing.raised

    def _settings(self, subscription: Subscription) -> MemberSettings:
        return MemberSettings(
            config=self._config,
            rules=self._rules,
            consumer_id=self.consumer_id,
            subscription=subscription,
            assignor=self._assignor,
            lease=self._lease,
            plant=self._plant,
        )

    def _started(self, report: Report, subscription: Subscription) -> None:
        config = self._config
        registration = registration_of(subscription)
        report.step(
            Kind.MEMBER_STARTED,
            host=self._environment.host,
            rules=self._rules.name,
            assignor=self._assignor_name,
            pattern=registration.pattern,
            streams=dict(sorted(registration.subscription)),
            session_timeout_ms=config.zookeeper_session_timeout_ms,
            rebalance_backoff_ms=config.rebalance_backoff_ms,
            rebalance_max_retries=config.rebalance_max_retries,
            work_period_ms=self._lease.work_period_ms,
            fetcher_stop_ms=self._lease.stop_ms,
            lab=list(config.lab.switched_on),
            **({} if config.group_given else {"group_given": False}),
        )
        for warning in config.warnings:
            report.warned(warning)


def _refuse(config: ConsumerConfig) -> None:
    """Refuse settings that Kafka accepts and that fail later. Raises NotSupported."""
    if config.offsets_storage != "zookeeper":
        raise NotSupported(f"offsets.storage={config.offsets_storage} needs brokers; use zookeeper")
    if config.rebalance_backoff_ms < 0:
        raise NotSupported(
            f"rebalance.backoff.ms={config.rebalance_backoff_ms}: Kafka cannot sleep that long and gives the "
            "rebalance up at its first failed attempt; use 0 or more"
        )
    for name, value, why in (
        ("num.consumer.fetchers", config.num_consumer_fetchers, "Kafka divides by it and never fetches"),
        ("queued.max.message.chunks", config.queued_max_message_chunks, "Kafka can make no such queue"),
        ("zookeeper.session.timeout.ms", config.zookeeper_session_timeout_ms, "no session lives that long"),
    ):
        if value < 1:
            raise NotSupported(f"{name}={value}: {why}; use 1 or more")
