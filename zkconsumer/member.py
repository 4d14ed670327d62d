"""A member of a consumer group, as `ZookeeperConsumerConnector` of Kafka 0.8.2 (facts 3)."""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lab.history.events import Kind
from rebalance_lab.kernel import Flag
from rebalance_lab.world.ports import Environment
from zkconsumer.config import ConsumerConfig
from zkconsumer.connector import Connector, ConnectorSettings
from zkconsumer.errors import MessageStreamsExistException, NotSupported
from zkconsumer.fetchers import LeaseSettings
from zkconsumer.identifiers import consumer_id
from zkconsumer.report import Report
from zkconsumer.rules import DESCRIBED, RuleSet

DEFAULT_LEASE = LeaseSettings()


class Member:
    """One consumer with a static subscription.

    `rules`: whom it is faithful to. `assignor`: a rule by name that comes before what the
    settings say. `lease`: the lab's own, how its effect is reported. `plant`:
    a planted bug (`zkconsumer.plants`); other names are of no concern here.

    Raises NotSupported for Kafka's offset storage, and assignors.UnknownAssignor.
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
        if config.offsets_storage != "zookeeper":
            raise NotSupported(f"offsets.storage={config.offsets_storage} needs brokers; use zookeeper")
        self.consumer_id = consumer_id(
            config.group_id,
            config.consumer_id,
            host=environment.host,
            wall_ms=environment.clock.wall_ms(),
            random=environment.random("consumer id"),
        )
        name, rule = rules.assignor_of(config, assignor)
        self._environment = environment
        self._settings = ConnectorSettings(
            config=config,
            rules=rules,
            consumer_id=self.consumer_id,
            assignor=rule,
            assignor_name=name,
            lease=lease,
            plant=plant,
        )
        self._report = Report(environment.recorder, member=self.consumer_id, group=config.group_id)
        self._created = False

    async def run(self, streams: Mapping[str, int], closing: Flag) -> None:
        """Connect, create `streams` (topic -> number), work until `closing` is raised, leave.

        When the first rebalance fails the member stays as a ghost: registered, without streams
        (facts 8.6, F9). Raises ZkTimeoutException, AssertionError for fewer than one stream,
        MessageStreamsExistException when called again.
        """
        if self._created:
            raise MessageStreamsExistException
        self._created = True
        self._started(streams)
        tasks = self._environment.tasks
        async with tasks.scope(self.consumer_id) as scope:
            connector = Connector(self._environment, scope, self._settings, self._report)
            await connector.connect()
            scope.spawn(connector.create(streams), f"{self.consumer_id}-create")
            await tasks.first(closing.wait(), connector.broken)
            await connector.shutdown()
            scope.cancel(f"{self.consumer_id} has shut down")
        if connector.broken.done:
            connector.broken.result()

    def _started(self, streams: Mapping[str, int]) -> None:
        settings, config = self._settings, self._settings.config
        self._report.step(
            Kind.MEMBER_STARTED,
            host=self._environment.host,
            rules=settings.rules.name,
            assignor=settings.assignor_name,
            streams=dict(sorted(streams.items())),
            session_timeout_ms=config.zookeeper_session_timeout_ms,
            rebalance_backoff_ms=config.rebalance_backoff_ms,
            rebalance_max_retries=config.rebalance_max_retries,
            work_period_ms=settings.lease.work_period_ms,
            fetcher_stop_ms=settings.lease.stop_ms,
        )
        for warning in config.warnings:
            self._report.warned(warning)
