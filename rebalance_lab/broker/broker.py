"""A broker: its parts, in the order in which they start and stop (`kafka.server.KafkaServer`, Kafka 3.9.1).

ZooKeeper, the cluster's id, the logs with their recovery, then the registration and the controller. The logs and the
replicas outlive a ZooKeeper session that expires; the registration and the controller begin anew with the next one.
"""

from __future__ import annotations

from collections.abc import Collection, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import msgspec

from controller.channels import BrokerChannels, Deliver
from controller.cluster import LiveBroker
from controller.controller import Controller
from controller.leader_election import LeaderAndIsr
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.calls import BrokerConfig, Parts
from rebalance_lab.broker.closing import ask_to_leave
from rebalance_lab.broker.control_link import ControlLinks
from rebalance_lab.broker.dispatch import advertised
from rebalance_lab.broker.halting import Halt
from rebalance_lab.broker.log.checkpoints import MetaProperties
from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.log.errors import FolderFailed
from rebalance_lab.broker.log.manager import LogManager
from rebalance_lab.broker.metadata_cache import MetadataCache
from rebalance_lab.broker.observe import Observe, unobserved
from rebalance_lab.broker.partition import ReplicaContext
from rebalance_lab.broker.producer_ids import ProducerIds
from rebalance_lab.broker.registration import BrokerIdTaken, Endpoint, cluster_id, is_registered_at, prepare, register
from rebalance_lab.broker.replicas import Replicas
from rebalance_lab.broker.replication.fetcher import ReplicaFetcher, ReplicaFetchers
from rebalance_lab.broker.replication.isr_changes import AskController
from rebalance_lab.broker.replication.isr_writes import WriteIsr
from rebalance_lab.broker.replication.leadership import Lag
from rebalance_lab.broker.replication.rules import IsrWriter
from rebalance_lab.broker.server import Report, Server
from rebalance_lab.broker.settings import broker_values
from rebalance_lab.broker.topic_configs import TopicConfigs
from rebalance_lab.broker.topic_store import TopicStore
from rebalance_lab.kernel import Flag, Future, Scope, TimedOut
from rebalance_lab.wire.kafka.calls import KafkaCodec
from rebalance_lab.wire.kafka.messages.controlled_shutdown import ControlledShutdownRequest
from rebalance_lab.wire.kafka.sentinels import NO_BROKER_EPOCH
from rebalance_lab.world.errors import SessionClosed, SessionExpired
from rebalance_lab.world.network import Address, Limits
from rebalance_lab.world.ports import Environment, SessionEventKind, ZooKeeper
from rebalance_lab.zkclient.pipelined import PipelinedClient, RenewedClient

T = TypeVar("T")

#: Of so many groups and transactions a broker reports that a client asks for their coordinator.
MOST_COORDINATORS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """`connect`, `session_timeout_ms`: of its ZooKeeper session. `connection_timeout_ms`: how long the first one may
    take to answer (Kafka's zookeeper.connection.timeout.ms). `host`: the name by which clients reach it; None: the
    address at which it listens. `port`: 0 for one that is free. `znode_version`: of its registration, 1 (0.8.2) or 5
    (3.9). `log`: the defaults of its topics' logs."""

    config: BrokerConfig
    connect: str
    host: str | None = None
    port: int = 0
    session_timeout_ms: int = 18_000
    connection_timeout_ms: int = 18_000
    znode_version: int = 5
    log: LogConfig = field(default_factory=LogConfig)

    @property
    def log_defaults(self) -> LogConfig:
        """Of topics that override nothing (`KafkaConfig.extractLogConfigMap`)."""
        return msgspec.structs.replace(
            self.log,
            min_insync_replicas=self.config.min_insync_replicas,
            unclean_leader_election_enable=self.config.unclean_leader_election_enable,
        )


def _controller(metadata: MetadataCache) -> LiveBroker | None:
    """Where the controller listens, as it has said last; its broker epoch is not known."""
    found = None if metadata.controller_id is None else metadata.nodes.get(metadata.controller_id)
    return None if found is None else LiveBroker(found.broker_id, NO_BROKER_EPOCH, found.host, found.port)


class NoZooKeeper(Exception):
    """ZooKeeper did not answer while the broker started. The message says where and for how long."""


class Broker:
    """One broker. `parts` is there once its logs are. `report(event, detail)` takes what a person should know;
    `observe` what trials record of replicas and controllers."""

    def __init__(
        self, environment: Environment, settings: BrokerSettings, report: Report, observe: Observe | None = None
    ) -> None:
        self.parts: Parts
        self._client: PipelinedClient
        self._cluster_id: str
        self._stored_configs: dict[str, LogConfig]
        self.broker_epoch = -1
        self._scope: Scope
        assert settings.config.conflict is None, settings.config.conflict
        self._environment = environment
        self._settings = settings
        self._report = report
        self._observe = observe or unobserved
        self._is_controller = False
        self._coordinators: set[str] = set()
        self._last_session: int | None = None
        self._fetchers: ReplicaFetchers
        self._isr_changes: AskController | WriteIsr
        self._links = self._control_links("controller")
        self._to_controller = self._control_links("to-controller")
        self._logs = LogManager(
            environment.tasks,
            environment.storage,
            environment.clock,
            environment.random("folders"),
            warn=self._warn,
            periods=settings.config.periods,
        )
        self._configs = TopicConfigs(
            environment.tasks,
            environment.clock,
            self._logs,
            settings.log_defaults,
            changed=self._settings_changed,
            warn=self._warn,
        )
        self._controller: Controller | None = None
        #: Of a controller that outlives sessions, once it stands.
        self._lasting: RenewedClient | None = None
        self._halt = Halt(settings.config.broker_id, report)

    def _warn(self, line: str) -> None:
        self._report("warning", {"message": line})

    def _coordinator_asked_for(self, what: str) -> None:
        """Reported once for each, and for so many of them."""
        if what not in self._coordinators and len(self._coordinators) < MOST_COORDINATORS:
            self._coordinators.add(what)
            why = "this broker serves no consumer groups and no transactions, so the client waits for ever"
            self._warn(f"a client asks for the coordinator of {what}; {why}")

    async def run(self, closing: Flag) -> None:
        """The broker's whole life, until `closing` is raised.

        Raises WrongFolder for a data folder of another broker or cluster, BrokerIdTaken, CannotListen, NoZooKeeper and
        StorageErrors; FolderFailed when a write to the data folder fails (`LogDirFailureHandler`: a broker ends when
        all its folders have failed, and this one has one).
        """
        environment, settings = self._environment, self._settings
        client = PipelinedClient(self._open())
        while not await self._prepared(client, closing):
            if closing.raised:
                return
            client = self._another_session(client, "it expired before the broker had started")
        await self._start_logs(client)
        limits = Limits(frame_bytes=settings.config.socket_request_max_bytes)
        listener = await environment.network.listen(KafkaCodec(), port=settings.port, limits=limits)
        async with environment.tasks.scope("broker") as scope:
            self._scope = scope
            scope.spawn(self._logs.run(), "care of logs")
            scope.spawn(self._fetchers.run(), "fetchers")
            scope.spawn(self._isr_changes.run(), "changes of the ISR")
            scope.spawn(self.parts.replicas.run(), "lag of followers")
            server = Server(
                environment.tasks,
                lambda: self.parts,
                self._report,
                settings.config.max_connections,
                settings.config.connections_max_idle_ms,
            )
            scope.spawn(server.run(listener), "connections")
            while not (closing.raised or self._logs.failed.raised):
                try:
                    await self._serve(client, listener.address, closing)
                except (SessionExpired, SessionClosed) as error:
                    client = self._another_session(client, str(error))
            listener.close()
            scope.cancel("the broker shuts down")
        self._links.close()
        self._to_controller.close()
        if self._logs.failed.raised:  # as after a crash: the next start recovers the logs
            await client.session.close()
            raise FolderFailed(f"the broker ends, because its data folder has failed: {self._logs.failure}")
        await self._logs.close(self.broker_epoch)
        await client.session.close()

    async def _prepared(self, client: PipelinedClient, closing: Flag) -> bool:
        """Create the paths that are missing, and read what the logs need. False: the broker was asked to end first, or
        the session has expired. Raises NoZooKeeper."""
        tasks = self._environment.tasks
        try:
            async with tasks.scope("start") as scope:
                preparing = scope.spawn(self._answered_in_time(self._prepare(client)), "paths")
                await tasks.first(closing.wait(), preparing)
                scope.cancel("the broker shuts down")
        except SessionExpired:
            return False
        return not closing.raised

    def _another_session(self, before: PipelinedClient, why: str) -> PipelinedClient:
        """A client of another session in place of one that is lost."""
        self._report("session lost", {"why": why})
        self._last_session = before.session.session_id
        return PipelinedClient(self._open())

    async def _prepare(self, client: PipelinedClient) -> None:
        await prepare(client)
        self._cluster_id = await cluster_id(client, self._environment.random("cluster id"))
        self._stored_configs = await self._configs.load(client)

    async def _answered_in_time(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`. Raises NoZooKeeper if it takes longer than a broker that starts waits for ZooKeeper."""
        settings, tasks = self._settings, self._environment.tasks
        limit_ms = settings.connection_timeout_ms
        try:
            async with tasks.timeout(limit_ms * 1000, "ZooKeeper"):
                return await work
        except TimedOut:
            raise NoZooKeeper(
                f"no ZooKeeper answers at {settings.connect} within {limit_ms} ms; start it, or correct the address"
            ) from None

    def _open(self) -> ZooKeeper:
        return self._environment.zookeeper.open(self._settings.connect, self._settings.session_timeout_ms)

    async def _start_logs(self, client: PipelinedClient) -> None:
        config, environment = self._settings.config, self._environment
        cluster, configs = self._cluster_id, self._stored_configs
        await self._logs.start(
            MetaProperties(cluster_id=cluster, broker_id=config.broker_id),
            lambda topic: configs.get(topic, self._configs.defaults),
        )
        metadata = MetadataCache(self._observe, keeps_isrs=config.lab_keeps_metadata)
        tasks, rules = environment.tasks, config.rules
        fetcher = partial(
            ReplicaFetcher,
            tasks,
            environment.network,
            config.broker_id,
            rules,
            config.fetch,
            self._warn,
            self._observe,
        )
        self._fetchers = ReplicaFetchers(tasks, rules, fetcher)
        self._isr_changes = self._isr_changes_of(config, metadata)
        replicas = Replicas(
            self._replica_context(metadata),
            self._fetchers,
            self._logs,
            log_of=lambda partition: self._configs.log_of(self._client, partition),
            broker_epoch=lambda: self.broker_epoch,
            metadata=metadata,
            warn=self._warn,
        )
        self.parts = Parts(
            config=config,
            advertised=advertised(config.lab_release),
            cluster_id=cluster,
            tasks=environment.tasks,
            random=environment.random("placement"),
            metadata=metadata,
            topics=TopicStore(client),
            replicas=replicas,
            producer_ids=ProducerIds(environment.tasks, client, config.broker_id),
            controller=lambda: self._controller,
            is_controller=lambda: self._is_controller,
            log_defaults=self._configs.defaults,
            settings=broker_values(self._configs.defaults, config, self._settings),
            coordinator_asked_for=self._coordinator_asked_for,
        )

    def _replica_context(self, metadata: MetadataCache) -> ReplicaContext:
        config = self._settings.config
        return ReplicaContext(
            tasks=self._environment.tasks,
            broker_id=config.broker_id,
            rules=config.rules,
            lag=Lag(config.replica_lag_time_max_ms * 1000, config.replica_lag_max_messages),
            may_be_in_sync=lambda broker: broker in metadata.nodes,
            change_isr=self._isr_changes.submit,
            observe=self._observe,
            refuses_before_append=config.lab_refuses_before_append,
            assumes_whole_isr=config.lab_assumes_whole_isr,
            ignores_min_isr=config.lab_ignores_min_isr,
            commits_alone=config.lab_commits_alone,
            counts_diverging=config.lab_counts_diverging,
            leads_as_first_of_isr=config.lab_leads_as_first_of_isr,
            leader_grace=config.lab_leader_grace,
            joins_caught_up=config.lab_joins_caught_up,
            commits_under_min_isr=config.lab_commits_under_min_isr,
            forgets_followers=config.lab_forgets_followers,
            keeps_fetchers=config.lab_keeps_fetchers,
            fences_orders=config.lab_fences_orders,
            fences_lives=config.lab_fences_lives,
            accepts_newer_epochs=config.lab_accepts_newer_epochs,
            leaders_from_metadata=config.lab_leaders_from_metadata,
            obeys_late_orders=config.lab_obeys_late_orders,
            obeys_after_us=config.lab_obeys_after_ms * 1000,
        )

    def _isr_changes_of(self, config: BrokerConfig, metadata: MetadataCache) -> AskController | WriteIsr:
        tasks = self._environment.tasks
        if config.isr_writer is IsrWriter.LEADER:
            return WriteIsr(tasks, config.broker_id, client=lambda: self._client, warn=self._warn)
        return AskController(
            tasks,
            self._to_controller,
            config.broker_id,
            controller=lambda: _controller(metadata),
            broker_epoch=lambda: self.broker_epoch,
        )

    # -- one session ------------------------------------------------------------------------

    async def _serve(self, client: PipelinedClient, address: Address, closing: Flag) -> None:
        """Be a broker in one ZooKeeper session, until it is to end. Raises SessionExpired, and BrokerIdTaken."""
        tasks, config = self._environment.tasks, self._settings.config
        self._client = client
        if self._lasting is not None:
            self._lasting.renew(self._session_of_controller(client.session))
            self._reelect("its session has expired")
        self.parts.topics = TopicStore(client)
        self.parts.producer_ids = ProducerIds(tasks, client, config.broker_id)
        async with tasks.scope("session") as scope:
            scope.spawn(self._follow(client.session), "session events")
            scope.spawn(self._configs.follow(client), "settings of topics")
            if config.lab_halts:
                scope.spawn(self._halt.follow(client), "lab_halt")
            serving = scope.spawn(self._register_and_stand(client, address), "registration and controller")
            leaving = scope.spawn(self._leave(closing), "leaving its partitions to others")
            try:
                await tasks.first(leaving, self._logs.failed.wait(), serving)
            finally:
                ends = self._lasting is None or closing.raised or self._logs.failed.raised
                if self._is_controller and ends and not config.lab_never_resigns:
                    self._controller_reported("resigned", {"why": "its session or its broker ends"})
            scope.cancel("the broker shuts down")

    def _control_links(self, purpose: str) -> ControlLinks:
        """Connections that others know by this purpose."""
        config = self._settings.config
        client_id, protocol = f"broker-{config.broker_id}-{purpose}", config.inter_broker_protocol_version
        return ControlLinks(self._environment.network, client_id, protocol, config.controller_socket_timeout_ms)

    async def _leave(self, closing: Flag) -> None:
        """Once the broker is to close, have its partitions led by others; this broker may be the controller itself."""
        await closing.wait()
        config = self._settings.config
        if self.broker_epoch < 0 or not config.controlled_shutdown_enable:
            return
        self._observe("shuts-down", None, {})
        links = self._control_links("shuts-down")
        request = ControlledShutdownRequest(broker_id=config.broker_id, broker_epoch=self.broker_epoch)
        metadata = self.parts.metadata
        try:
            await ask_to_leave(
                self._environment.tasks, links, config, request, lambda: _controller(metadata), self._report
            )
        finally:
            links.close()

    async def _follow(self, session: ZooKeeper) -> None:
        """Report when the connection is lost, and when it is back."""
        while True:
            event = await session.events.get()
            self._report("zookeeper", {"connection": event.kind.value, "session": f"{event.session_id:#x}"})
            if event.kind is SessionEventKind.CONNECTED and self._settings.config.lab_resigns_on_reconnect:
                self._reelect("it is connected to ZooKeeper again")

    async def _register_and_stand(self, client: PipelinedClient, address: Address) -> None:
        """Register, then stand for election as the controller. In 0.8.2 one thread tells both of a new session, first
        the controller."""
        if self._settings.config.lab_resigns_under_lock and self._controller is not None:
            await self._controller.resigned()
        if self.broker_epoch < 0 or not self._settings.config.lab_keeps_registration:
            await self._register(client, address)
        form = self._settings.config.lab_controller_form
        if not form.outlives_sessions:
            await self._stand(PipelinedClient(self._session_of_controller(client.session), in_flight=form.in_flight))
            return
        if self._lasting is None:
            self._lasting = RenewedClient(self._session_of_controller(client.session), in_flight=form.in_flight)
            self._scope.spawn(self._stand(self._lasting), "controller")
        await Future("the end of the session")

    async def _register(self, client: PipelinedClient, address: Address) -> None:
        settings, config = self._settings, self._settings.config
        endpoint = Endpoint(settings.host or address.host, address.port, config.rack, settings.znode_version)
        while True:  # with `lab_waits_for_registration` until its registration of an earlier session is gone
            try:
                self.broker_epoch = await self._registered(client, endpoint)
                break
            except BrokerIdTaken as taken:
                if not config.lab_waits_for_registration:
                    raise
                if not await is_registered_at(client, config.broker_id, endpoint):
                    raise
                self._warn(f"{taken}; it has this broker's address, so it is waited for")
            await self._environment.tasks.sleep(settings.session_timeout_ms * 1000)
        where = {"broker_epoch": self.broker_epoch, "host": endpoint.host, "port": endpoint.port}
        self._report("registered", {**where, **config.unusual_versions})

    async def _registered(self, client: PipelinedClient, endpoint: Endpoint) -> int:
        """The broker epoch of a registration at once. Raises BrokerIdTaken."""
        config = self._settings.config
        registering = register(
            client,
            config.broker_id,
            endpoint,
            timestamp_ms=self._environment.clock.wall_ms(),
            last_session=None if config.lab_waits_for_registration else self._last_session,
        )
        # Only the first registration has a limit: later a broker waits for ZooKeeper for ever, as in the original.
        return await (self._answered_in_time(registering) if self.broker_epoch < 0 else registering)

    def _session_of_controller(self, session: ZooKeeper) -> ZooKeeper:
        """A session as the controller uses it: with `lab_halts` it can be halted before an operation."""
        return self._halt.session(session) if self._settings.config.lab_halts else session

    async def _stand(self, client: PipelinedClient) -> None:
        """Stand for election as the controller. Ends only with an error."""
        environment, config = self._environment, self._settings.config
        deliver: Deliver = self._links.deliver
        if config.lab_halts:
            deliver = self._halt.deliver(deliver)
        self._controller = Controller(
            environment.tasks,
            client,
            config.broker_id,
            config.controller,
            wall_ms=environment.clock.wall_ms,
            channels=lambda scope: BrokerChannels(environment.tasks, scope, deliver),
            report=self._controller_reported,
            knows=None if self._observe is unobserved else self._controller_knows,
        )
        await self._controller.run()

    def _reelect(self, why: str) -> None:
        """Nothing happens at the first connection of a session: its controller does not stand yet."""
        if self._controller is not None:
            self._controller.reelect(why)

    def _settings_changed(self, topics: Collection[str]) -> None:
        if self._controller is not None:
            self._controller.settings_changed(topics)

    def _controller_reported(self, event: str, detail: dict[str, object]) -> None:
        if event in {"elected", "resigned"}:
            self._is_controller = event == "elected"
            self._observe("controls" if self._is_controller else "controls-no-more", None, detail)
        self._report(event, detail)

    def _controller_knows(self, epoch: int, partition: TopicPartition, state: LeaderAndIsr) -> None:
        """Record what this broker's controller takes for the state of a partition."""
        detail = {"epoch": epoch, "leader": state.leader, "leader_epoch": state.leader_epoch, "isr": state.isr}
        self._observe("state-known", partition, detail)
