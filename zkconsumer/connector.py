"""The connector: the parts of a member, and how they are created, survive a session's expiry, and shut down."""

from __future__ import annotations

from rebalance_lab.history.events import Kind
from rebalance_lab.kernel import Future, Scope
from rebalance_lab.wire.paths import BROKER_IDS, member_path, members_path, topic_path
from rebalance_lab.wire.registration import registration_payload
from rebalance_lab.world.ports import Environment
from rebalance_lab.zkclient import ZkClient
from rebalance_lab.zkclient.client import ZkSettings
from rebalance_lab.zkclient.helpers import create_ephemeral_checked, create_ephemeral_handle_bug
from zkconsumer.claims import Claims
from zkconsumer.contexts import threads_of
from zkconsumer.errors import ConsumerRebalanceFailedException
from zkconsumer.fetchers import Fetchers, FetcherSettings, LeaderFinder
from zkconsumer.group_view import GroupView
from zkconsumer.ownership import Ownership
from zkconsumer.plants import Plant
from zkconsumer.rebalance import Flags, MemberSettings, Rebalancer
from zkconsumer.report import Report
from zkconsumer.streams import Streams
from zkconsumer.subscription import Static, registration_of
from zkconsumer.topic_watcher import TopicWatcher
from zkconsumer.watcher import Watcher


class Connector:
    """A connected consumer. Its threads are tasks of `scope`: ZkClient's two, the watcher, the fetchers. `broken` fails
    if creating the streams raised an error that ends the consumer; `failed` is done when a rebalance has failed, after
    which the member stays as a ghost."""

    def __init__(self, environment: Environment, scope: Scope, settings: MemberSettings, report: Report) -> None:
        self.broken: Future[None] = Future("a broken consumer")
        self._tasks = environment.tasks
        self._clock = environment.clock
        self._scope = scope
        self._settings = settings
        self._report = report
        self._shutting_down = False
        self._initialised = False
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
        self._view = GroupView(
            self._client,
            group=config.group_id,
            consumer_id=settings.consumer_id,
            exclude_internal=config.exclude_internal_topics,
            multi_read=config.lab.cures.multi_read,
            skip_vanished=config.lab.cures.skip_vanished_members,
        )
        self._streams = Streams(settings.subscription)
        self._topics: TopicWatcher | None = None
        self._ownership = Ownership(report)
        self._claims = Claims(self._client, report, group=config.group_id, lab=config.lab, plant=settings.plant)
        self._watcher = Watcher(environment.tasks, report, name=settings.consumer_id, plant=settings.plant)
        self._fetchers = self._build_fetchers()
        self._rebalancer = self._build_rebalancer()

    @property
    def failed(self) -> Future[None]:
        return self._rebalancer.failed

    def _build_fetchers(self) -> Fetchers:
        settings, config = self._settings, self._settings.config
        finder = LeaderFinder(self._tasks, self._view, self._report, backoff_ms=config.refresh_leader_backoff_ms)
        return Fetchers(
            self._tasks,
            self._scope,
            self._report,
            FetcherSettings(
                name=settings.consumer_id,
                lease=settings.lease,
                fetchers=config.num_consumer_fetchers,
                queue_limit=config.queued_max_message_chunks,
            ),
            finder,
        )

    def _build_rebalancer(self) -> Rebalancer:
        return Rebalancer(
            self._tasks,
            self._settings,
            client=self._client,
            view=self._view,
            fetchers=self._fetchers,
            ownership=self._ownership,
            claims=self._claims,
            streams=self._streams,
            report=self._report,
            on_brokers=self._watcher,
            flags=Flags(lambda: self._shutting_down, lambda: self._watcher.triggers),
        )

    # -- life -------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Open the session. Raises ZkTimeoutException."""
        await self._client.connect(self._settings.config.zookeeper_connection_timeout_ms)

    async def create(self) -> None:
        """createMessageStreams, or by filter: register, then initialise. A rebalance that fails leaves a ghost: a
        member that is registered and listens, but whose streams no application reads."""
        try:
            if isinstance(self._settings.subscription, Static):
                await self._create_by_name(self._settings.subscription)
            else:
                await self._create_by_filter()
            self._fetchers.streams_returned()
        except ConsumerRebalanceFailedException as error:
            self._report.warned(str(error))
        except Exception as error:
            if not self._shutting_down:  # a shutdown closes the client under a create that still runs
                self.broken.fail(error)

    async def _create_by_name(self, subscription: Static) -> None:
        self._threads()  # fewer than one stream: refused before anything is written
        await self._register()
        await self._initialise("create")

    async def _create_by_filter(self) -> None:
        """As in 0.8.2, a number of streams below one is refused only after the registration, and only if a topic
        matches."""
        self._topics = TopicWatcher(
            self._tasks,
            self._client,
            self._report,
            known=self._allowed(await self._view.topics()),
            allowed=self._allowed,
            changed=self._topics_changed,
        )
        await self._register()
        await self._initialise("create")
        await self._topics.start()

    async def _topics_changed(self) -> None:
        await self._initialise("topics")

    async def _register(self) -> None:
        """Create the id znode; loops forever while another session's exists
        (`ZkUtils.createEphemeralPathExpectConflictHandleZKBug`, 0.8.2.2)."""
        config = self._settings.config
        path = member_path(config.group_id, self._settings.consumer_id)
        payload = registration_payload(registration_of(self._settings.subscription, self._clock.wall_ms()))
        if config.lab.cures.check_session_of_own_node:
            await create_ephemeral_checked(self._client, path, payload)
            return
        await create_ephemeral_handle_bug(
            self._client,
            path,
            payload,
            tasks=self._tasks,
            backoff_ms=config.zookeeper_session_timeout_ms,
            warn=self._report.warned,
            ephemeral=self._settings.plant != Plant.PERSISTENT_REGISTRATION,
        )

    async def _initialise(self, by: str) -> None:
        """Create queues, set watches, then force a rebalance (`reinitializeConsumer`, 0.8.2.2; the order of claim Z6).
        The id znode is older than the watch of the ids, so a joiner is not notified of itself. With a filter all of
        this is repeated whenever topics come or go."""
        first, self._initialised = not self._initialised, True
        name, client, rules = self._settings.consumer_id, self._client, self._settings.rules
        if first:
            watch = self._watcher.run(self._rebalance_watched, lambda: self._shutting_down)
            self._scope.spawn(watch, f"{name}-watcher")
        topics = () if self._topics is None else await self._view.topics()
        self._streams.put(self._threads(topics))
        client.subscribe_state_changes(self)
        hears = self._settings.plant != Plant.IGNORE_WATCH
        if hears:
            await client.subscribe_child_changes(members_path(self._settings.config.group_id), self._watcher)
        if first and rules.watches_brokers and hears:
            await client.subscribe_child_changes(BROKER_IDS, self._watcher)
        if first and rules.watches_topics_first and self._topics is not None:
            await self._topics.watch()
        for topic in self._streams.topics:
            await client.subscribe_data_changes(topic_path(topic), self._watcher)
        await self._rebalancer.synced(by)

    def _threads(self, topics: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
        """topic -> my threads. `topics`: all there are, which only a filter needs."""
        settings = self._settings
        registration = registration_of(settings.subscription)
        exclude_internal = settings.config.exclude_internal_topics
        return threads_of(settings.consumer_id, registration, topics, exclude_internal=exclude_internal)

    def _allowed(self, topics: tuple[str, ...]) -> tuple[str, ...]:
        registration = registration_of(self._settings.subscription)
        exclude_internal = self._settings.config.exclude_internal_topics
        return tuple(registration.streams(topics, exclude_internal=exclude_internal))

    async def _rebalance_watched(self) -> None:
        await self._rebalancer.synced("watcher")

    async def handle_new_session(self) -> None:
        """The member's ephemeral znodes are gone: forget what it owned, register again, rebalance.

        Fetchers are *not* stopped and no lock is taken, as in 0.8.2: the member works on what
        it owned until the rebalance stops it (claim Z10). If the event task was busy and a
        rebalance has claimed in the new session meanwhile, that is forgotten too (F8).
        """
        self._ownership.clear()
        self._claims.session_lost()
        await self._register()
        await self._rebalancer.synced("session")

    async def shutdown(self) -> None:
        """Leave. Waits for a running rebalance with all its back-offs, and so forever if that waits for a ZooKeeper
        that never comes back. Closing the session removes the id and owner znodes; none is deleted individually.

        With a filter, 0.8.2 takes the topic watcher's lock here, inside the rebalance's, and the topic handler takes
        them in the other order, so both can deadlock. The lab does not copy this race.
        """
        self._report.step(Kind.MEMBER_CLOSING)
        self._shutting_down = True
        async with self._rebalancer.lock:
            if self._topics is not None:
                self._client.unsubscribe_all()
            await self._fetchers.stop()
            self._ownership.disbelieve()
            await self._client.close()
        self._report.step(Kind.MEMBER_CLOSED)
