"""The parts of a member and their life: create, session expiry, shutdown (facts 3.1 to 3.11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rebalance_lab.assignors import Assignor
from rebalance_lab.history.events import Kind
from rebalance_lab.kernel import Future, Scope
from rebalance_lab.wire.paths import BROKER_IDS, member_path, members_path, topic_path
from rebalance_lab.wire.registration import Registration, registration_payload
from rebalance_lab.world.ports import Environment
from rebalance_lab.zkclient import ZkClient
from rebalance_lab.zkclient.client import ZkSettings
from rebalance_lab.zkclient.helpers import create_ephemeral_handle_bug
from zkconsumer.config import ConsumerConfig
from zkconsumer.errors import ConsumerRebalanceFailedException
from zkconsumer.fetchers import Fetchers, LeaderFinder, LeaseSettings
from zkconsumer.group_view import GroupView
from zkconsumer.identifiers import thread_ids
from zkconsumer.ownership import Ownership
from zkconsumer.plants import Plant
from zkconsumer.rebalance import Rebalancer, RebalanceSettings
from zkconsumer.report import Report
from zkconsumer.rules import RuleSet
from zkconsumer.watcher import Watcher


@dataclass(frozen=True, slots=True)
class ConnectorSettings:
    """Kafka's settings, and those of the lab: see `zkconsumer.member.Member`."""

    config: ConsumerConfig
    rules: RuleSet
    consumer_id: str
    assignor: Assignor
    assignor_name: str
    lease: LeaseSettings
    plant: str | None


class Connector:
    """A connected consumer. Its threads are tasks of `scope`: ZkClient's two, the watcher, the
    fetchers. `broken` fails when creating the streams went wrong in a way nobody survives."""

    def __init__(self, environment: Environment, scope: Scope, settings: ConnectorSettings, report: Report) -> None:
        self.broken: Future[None] = Future("a broken consumer")
        self._tasks = environment.tasks
        self._clock = environment.clock
        self._scope = scope
        self._settings = settings
        self._report = report
        self._shutting_down = False
        self._streams: dict[str, int] = {}
        config = settings.config
        self._client = ZkClient(
            environment,
            ZkSettings(
                connect=config.zookeeper_connect,
                session_timeout_ms=config.zookeeper_session_timeout_ms,
                member=settings.consumer_id,
                group=config.group_id,
            ),
            scope,
        )
        self._ownership = Ownership(report)
        self._watcher = Watcher(environment.tasks, report, name=settings.consumer_id)
        self._fetchers, self._rebalancer = self._build()

    def _build(self) -> tuple[Fetchers, Rebalancer]:
        settings, config, tasks, report = self._settings, self._settings.config, self._tasks, self._report
        view = GroupView(
            self._client,
            group=config.group_id,
            consumer_id=settings.consumer_id,
            exclude_internal=config.exclude_internal_topics,
        )
        finder = None
        if settings.rules.finds_leaders:
            finder = LeaderFinder(tasks, view, report, backoff_ms=config.refresh_leader_backoff_ms)
        fetchers = Fetchers(tasks, self._scope, report, name=settings.consumer_id, lease=settings.lease, finder=finder)
        rebalancer = Rebalancer(
            tasks,
            RebalanceSettings(
                group=config.group_id,
                consumer_id=settings.consumer_id,
                max_retries=config.rebalance_max_retries,
                backoff_ms=config.rebalance_backoff_ms,
                assignor=settings.assignor,
                plant=settings.plant,
            ),
            client=self._client,
            view=view,
            fetchers=fetchers,
            ownership=self._ownership,
            report=report,
            on_brokers=self._watcher,
            shutting_down=lambda: self._shutting_down,
        )
        return fetchers, rebalancer

    # -- life -------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Open the session. Raises ZkTimeoutException."""
        await self._client.connect(self._settings.config.zookeeper_connection_timeout_ms)

    async def create(self, streams: Mapping[str, int]) -> None:
        """createMessageStreams: register, then initialise. A rebalance that fails leaves a
        ghost behind: registered and listening, without streams."""
        try:
            for count in streams.values():
                thread_ids(self._settings.consumer_id, count)
            self._streams = dict(streams)
            await self._register()
            await self._initialise()
        except ConsumerRebalanceFailedException as error:
            self._report.warned(str(error))
        except Exception as error:
            if not self._shutting_down:  # a shutdown closes the client under a create that still runs
                self.broken.fail(error)

    async def _register(self) -> None:
        """Create the id znode; loops without end while another one stands there (1.5)."""
        config = self._settings.config
        registration = Registration(tuple(self._streams.items()), timestamp_ms=self._clock.wall_ms())
        await create_ephemeral_handle_bug(
            self._client,
            member_path(config.group_id, self._settings.consumer_id),
            registration_payload(registration),
            tasks=self._tasks,
            backoff_ms=config.zookeeper_session_timeout_ms,
            warn=self._report.warned,
            ephemeral=self._settings.plant != Plant.PERSISTENT_REGISTRATION,
        )

    async def _initialise(self) -> None:
        """Watch, then force a rebalance (3.4; the order of claim Z6). The id znode is older than
        the watch of the ids, so a joiner is not told of itself."""
        name = self._settings.consumer_id
        self._scope.spawn(self._watcher.run(self._rebalance_watched, lambda: self._shutting_down), f"{name}-watcher")
        client = self._client
        client.subscribe_state_changes(self)
        await client.subscribe_child_changes(members_path(self._settings.config.group_id), self._watcher)
        if self._settings.rules.watches_brokers:
            await client.subscribe_child_changes(BROKER_IDS, self._watcher)
        for topic in sorted(self._streams):
            await client.subscribe_data_changes(topic_path(topic), self._watcher)
        await self._rebalancer.synced("create")

    async def _rebalance_watched(self) -> None:
        await self._rebalancer.synced("watcher")

    async def handle_new_session(self) -> None:
        """Our ephemeral znodes are gone: forget what we owned, register again, rebalance.

        Fetchers are *not* stopped and no lock is taken, as in 0.8.2: the member works on what
        it owned until the rebalance stops it (claim Z10).
        """
        self._ownership.clear()
        await self._register()
        await self._rebalancer.synced("session")

    async def shutdown(self) -> None:
        """Leave. Waits for a running rebalance with all its back-offs (3.11), and so without end
        when that waits for a ZooKeeper that never comes back. Closing the session is what
        removes the id and owner znodes; nothing is deleted one by one."""
        self._report.step(Kind.MEMBER_CLOSING)
        self._shutting_down = True
        async with self._rebalancer.lock:
            await self._fetchers.stop()
            self._ownership.disbelieve()
            await self._client.close()
        self._report.step(Kind.MEMBER_CLOSED)
