"""What answers one API: the versions that it serves, and a function of the request and of the broker's parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from controller.controller import Controller
from controller.forms import ControllerForm
from controller.leader_election import Selection
from controller.placement import PlacementBug
from controller.settings import ControllerBug, ControllerSettings, Imbalance
from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.log.manager import Periods
from rebalance_lab.broker.metadata_cache import MetadataCache
from rebalance_lab.broker.producer_ids import ProducerIds
from rebalance_lab.broker.refused import Refused
from rebalance_lab.broker.replicas import Replicas
from rebalance_lab.broker.replication.fetcher import FetchConfig
from rebalance_lab.broker.replication.rules import IsrWriter, ReplicationRules
from rebalance_lab.broker.settings import Value
from rebalance_lab.broker.topic_store import TopicStore
from rebalance_lab.broker.versions import ProtocolVersion, Release
from rebalance_lab.kernel import Kernel, RandomStream, TimedOut
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.schema import Message, Versions

K = TypeVar("K")
T = TypeVar("T")

#: How long an administrator's request waits for ZooKeeper if it names no time (a client's request.timeout.ms).
ADMIN_TIMEOUT_MS = 30_000

#: Rules whose requests exist in the protocol 1.1.
_RULES_OF_1_1 = (ReplicationRules.HIGH_WATERMARK, ReplicationRules.KIP_101)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """A broker's settings, under Kafka's names and with the defaults of 3.9.1.

    `rack`: None if it has none. `replica_lag_max_messages`: of 0.8; None in 0.9 and later.
    `inter_broker_protocol_version`: 2.7, where Kafka 3.9.1 has 3.9.
    These are the lab's own: `lab_release`: the versions of the APIs that it serves; `lab_replication_rules`: how
    replicas agree on one log, and `lab_isr_writer`: which broker writes another ISR; None: those of the protocol;
    `lab_fences_orders`, if False: it obeys controllers of earlier epochs; `lab_fences_lives`, if False: it obeys orders
    for a former life of its, as up to 2.1 (KIP-380); `lab_accepts_newer_epochs`, if False: it refuses orders for a
    registration of which it has not heard yet, as in 2.2 to 2.4 (KAFKA-9839); `lab_waits_for_registration`: a broker
    that finds itself registered in an earlier session waits until that is gone, as in 0.8.2; `lab_leader_grace`:
    whether followers have time to find a new leader before it drops them; `lab_joins_caught_up`: whether a follower
    must have caught up to join an ISR that is too small (KAFKA-19996); `lab_commits_under_min_isr`: whether the high
    watermark rises while fewer than `min.insync.replicas` are in sync (up to 3.6, KAFKA-15583);
    `lab_resigns_on_reconnect`: whether its controller resigns when its session is connected again (KAFKA-13461);
    `lab_resigns_under_lock`: a broker of form 0.8.2 whose session expires registers again once its controller has
    resigned, which may never be (KAFKA-4360, `controller.reign`); `lab_halts`: see `broker.halting`;
    `lab_leaders_from_metadata`: whether a follower looks for its leader among the brokers of which it has metadata, as
    from 0.9 on, and not in the order. Those of its controller are in
    `ControllerSettings`, under the names that `controller` gives them. Planted mistakes: `lab_controller_bug`,
    `lab_placement_bug`; `lab_refuses_before_append`, if False: a batch for which too few replicas are in sync is
    refused when it is in the log already; `lab_acks_before_replication`: acks=all is answered as acks=1;
    `lab_assumes_whole_isr`, if False: a new leader leaves the last of the ISR out; `lab_ignores_min_isr`: a leader goes
    on as if `min.insync.replicas` were 1; `lab_commits_alone`: a leader commits what it has written, whatever its
    followers have; `lab_counts_diverging`: it counts fetches although it answers that the logs part (KAFKA-13141);
    `lab_leads_as_first_of_isr`: a broker leads if it stands first in the ISR, whoever was elected;
    `lab_obeys_after_ms`: how long a leader takes to obey an order for a partition that it leads already;
    `lab_obeys_late_orders`: a broker obeys the last update of a deposed controller after one of its successor;
    `lab_keeps_fetchers`: a follower that becomes the leader goes on fetching; `lab_keeps_metadata`: a broker does not
    take over metadata of a partition whose leader is the same; `lab_never_answers`: a leader of a later epoch than the
    first answers no write; `lab_keeps_registration`: a broker whose session expires does not register again;
    `lab_never_resigns`: it goes on to believe that it is the controller; `lab_removes_partitions`: a topic gets fewer
    partitions if a client asks for it.
    """

    broker_id: int
    num_partitions: int = 1
    default_replication_factor: int = 1
    auto_create_topics_enable: bool = True
    delete_topic_enable: bool = True
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    max_connections: int = 2**31 - 1
    connections_max_idle_ms: int = 10 * 60 * 1000
    socket_request_max_bytes: int = 100 * 1024 * 1024
    rack: str | None = None
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_seconds: int = 300
    leader_imbalance_per_broker_percentage: int = 10
    replica_lag_time_max_ms: int = 30_000
    replica_lag_max_messages: int | None = None
    replica_fetch_wait_max_ms: int = 500
    replica_fetch_min_bytes: int = 1
    replica_fetch_max_bytes: int = 1024 * 1024
    replica_fetch_response_max_bytes: int = 10 * 1024 * 1024
    replica_fetch_backoff_ms: int = 1000
    replica_socket_timeout_ms: int = 30_000
    controller_socket_timeout_ms: int = 30_000
    controlled_shutdown_enable: bool = True
    controlled_shutdown_max_retries: int = 3
    controlled_shutdown_retry_backoff_ms: int = 5000
    log_retention_check_interval_ms: int = 300_000
    log_flush_scheduler_interval_ms: int = 3_000
    log_flush_offset_checkpoint_interval_ms: int = 60_000
    replica_high_watermark_checkpoint_interval_ms: int = 5_000
    inter_broker_protocol_version: ProtocolVersion = ProtocolVersion.V2_7
    lab_release: Release = Release.V3_9
    lab_replication_rules: ReplicationRules | None = None
    lab_isr_writer: IsrWriter | None = None
    lab_controller_form: ControllerForm = ControllerForm.V2_1
    lab_fences_writes: bool = True
    lab_fences_orders: bool = True
    lab_fences_lives: bool = True
    lab_accepts_newer_epochs: bool = True
    lab_waits_for_registration: bool = False
    lab_leader_selection: Selection = Selection.V2_1
    lab_controller_bug: ControllerBug | None = None
    lab_placement_bug: PlacementBug | None = None
    lab_refuses_before_append: bool = True
    lab_acks_before_replication: bool = False
    lab_isr_read_back: bool = False
    lab_election_read_back: bool = True
    lab_reassignment_awaits_deletion: bool = False
    lab_reassignment_keeps_additions: bool = False
    lab_reassignment_keeps_requests: bool = False
    lab_reassignment_refuses_dead_targets: bool = False
    lab_elects_batch_again: bool = False
    lab_orders_before_metadata: bool = False
    lab_resigns_under_lock: bool = False
    lab_leaders_from_metadata: bool = False
    lab_assumes_whole_isr: bool = True
    lab_ignores_min_isr: bool = False
    lab_commits_alone: bool = False
    lab_counts_diverging: bool = False
    lab_leads_as_first_of_isr: bool = False
    lab_leader_grace: bool = True
    lab_joins_caught_up: bool = False
    lab_commits_under_min_isr: bool = False
    lab_forgets_followers: bool = False
    lab_obeys_after_ms: int = 0
    lab_obeys_late_orders: bool = False
    lab_keeps_fetchers: bool = False
    lab_keeps_metadata: bool = False
    lab_never_answers: bool = False
    lab_keeps_registration: bool = False
    lab_never_resigns: bool = False
    lab_broker_epochs: bool = True
    lab_resigns_on_reconnect: bool = False
    lab_halts: bool = False
    lab_removes_partitions: bool = False

    @property
    def rules(self) -> ReplicationRules:
        """By which its replicas agree on one log."""
        return self.lab_replication_rules or self.inter_broker_protocol_version.rules

    @property
    def isr_writer(self) -> IsrWriter:
        """Which broker writes the ISRs of partitions that it leads."""
        return self.lab_isr_writer or self.inter_broker_protocol_version.isr_writer

    @property
    def unusual_versions(self) -> dict[str, str]:
        """Its release and its inter-broker protocol, where they are not the usual ones: those of an upgrade."""
        protocol, release = self.inter_broker_protocol_version, self.lab_release
        found = {} if release is Release.V3_9 else {"release": release.value}
        return found if protocol is ProtocolVersion.V2_7 else {**found, "protocol": protocol.value}

    @property
    def conflict(self) -> str | None:
        """Settings that no broker can have at once, with what to do; None if there are none."""
        protocol, release = self.inter_broker_protocol_version, self.lab_release
        named = f"inter.broker.protocol.version={protocol}"
        if protocol not in release.protocols:
            return (
                f"{named}: a broker with lab.release={release} knows {', '.join(release.protocols)}; take one of these"
            )
        if protocol is ProtocolVersion.V1_1 and self.rules not in _RULES_OF_1_1:
            return f"{named} has no requests for lab.replication.rules={self.rules}; leave the rules out"
        if protocol is ProtocolVersion.V1_1 and self.isr_writer is IsrWriter.CONTROLLER:
            return f"{named} has no AlterPartition for lab.isr.writer={self.isr_writer}; leave the writer out"
        return None

    @property
    def controller(self) -> ControllerSettings:
        """Those of its controller. It elects preferred leaders unasked if auto.leader.rebalance.enable is set."""
        interval_ms = self.leader_imbalance_check_interval_seconds * 1000
        imbalance = Imbalance(self.leader_imbalance_per_broker_percentage, interval_ms)
        return ControllerSettings(
            unclean_default=self.unclean_leader_election_enable,
            deletes_topics=self.delete_topic_enable,
            imbalance=imbalance if self.auto_leader_rebalance_enable else None,
            form=self.lab_controller_form,
            fences_writes=self.lab_fences_writes,
            selection=self.lab_leader_selection,
            isr_read_back=self.lab_isr_read_back,
            election_read_back=self.lab_election_read_back,
            awaits_deletion=self.lab_reassignment_awaits_deletion,
            keeps_additions=self.lab_reassignment_keeps_additions,
            keeps_requests=self.lab_reassignment_keeps_requests,
            refuses_dead_targets=self.lab_reassignment_refuses_dead_targets,
            elects_batch_again=self.lab_elects_batch_again,
            orders_before_metadata=self.lab_orders_before_metadata,
            resigns_under_lock=self.lab_resigns_under_lock,
            broker_epochs=self.lab_broker_epochs,
            leaders_write_isrs=self.isr_writer is IsrWriter.LEADER,
            features_enabled=self._features_enabled,
            bug=self.lab_controller_bug,
        )

    @property
    def _features_enabled(self) -> bool | None:
        """Whether its protocol has finalized features (`isFeatureVersioningSupported`); None: its release has none."""
        if self.lab_release is Release.V1_1:
            return None
        return self.inter_broker_protocol_version is ProtocolVersion.V2_7

    @property
    def periods(self) -> Periods:
        """How often it cares for its logs."""
        return Periods(
            log_retention_check_interval_ms=self.log_retention_check_interval_ms,
            log_flush_scheduler_interval_ms=self.log_flush_scheduler_interval_ms,
            log_flush_offset_checkpoint_interval_ms=self.log_flush_offset_checkpoint_interval_ms,
            replica_high_watermark_checkpoint_interval_ms=self.replica_high_watermark_checkpoint_interval_ms,
        )

    @property
    def fetch(self) -> FetchConfig:
        """How it fetches as a follower."""
        return FetchConfig(
            protocol=self.inter_broker_protocol_version,
            wait_max_ms=self.replica_fetch_wait_max_ms,
            min_bytes=self.replica_fetch_min_bytes,
            max_bytes=self.replica_fetch_max_bytes,
            response_max_bytes=self.replica_fetch_response_max_bytes,
            backoff_ms=self.replica_fetch_backoff_ms,
            socket_timeout_ms=self.replica_socket_timeout_ms,
        )


@dataclass(slots=True, kw_only=True)
class Parts:
    """The parts of a running broker that requests are answered from.

    - `advertised`: the versions of each API that ApiVersions names.
    - `controller()`: its controller, which reigns or stands for election; None while the broker has no session.
    - `is_controller`: whether it is the controller now.
    - `log_defaults`: the configuration of a topic that overrides nothing.
    - `settings`: the broker's own, by Kafka's names.
    - `coordinator_asked_for(what)`: a client wants the coordinator of a group or transaction, and there is none.
    """

    config: BrokerConfig
    advertised: Mapping[ApiKey, Versions]
    cluster_id: str
    tasks: Kernel
    random: RandomStream
    metadata: MetadataCache
    topics: TopicStore
    replicas: Replicas
    producer_ids: ProducerIds
    controller: Callable[[], Controller | None]
    is_controller: Callable[[], bool]
    log_defaults: LogConfig
    settings: Mapping[str, Value | None]
    coordinator_asked_for: Callable[[str], None]

    async def outcomes(
        self, work: Mapping[K, Callable[[], Awaitable[T]]], timeout_ms: int = ADMIN_TIMEOUT_MS
    ) -> dict[K, T | Refused]:
        """Do all this work, one after another. What is not done in time, because ZooKeeper does not answer, is refused
        with REQUEST_TIMED_OUT. Without any time from the client it has `ADMIN_TIMEOUT_MS`: such a client waits for
        nothing that comes after it."""
        limit_ms = timeout_ms if timeout_ms > 0 else ADMIN_TIMEOUT_MS
        done: dict[K, T | Refused] = {}
        try:
            async with self.tasks.timeout(limit_ms * 1000, "ZooKeeper"):
                for name, each in work.items():
                    try:
                        done[name] = await each()
                    except Refused as refused:
                        done[name] = refused
        except TimedOut:
            late = Refused(
                ErrorCode.REQUEST_TIMED_OUT, f"ZooKeeper has not answered in {limit_ms} ms; it may be done all the same"
            )
            done |= {each: late for each in work if each not in done}
        return done

    def left_ms(self, asked_us: int, timeout_ms: int) -> int:
        """Of the time that a request has which came at `asked_us`."""
        return timeout_ms - (self.tasks.now_us() - asked_us) // 1000

    async def until_metadata(self, ready: Callable[[], bool], timeout_ms: int) -> bool:
        """Wait for the metadata cache to be as wanted. False: it was not in time."""
        try:
            async with self.tasks.timeout(timeout_ms * 1000, "metadata"):
                while not ready():
                    await self.metadata.changed
        except TimedOut:
            return False
        return True

    async def topics_without_leaders(self, wanted: Mapping[str, Collection[int]], timeout_ms: int) -> set[str]:
        """Wait until all these partitions have a leader. Returns the topics of those that have none in time; all, if
        there is no time."""

        def waiting() -> set[str]:
            leader_of = self.metadata.leader_of
            return {name for name, them in wanted.items() if any(leader_of(name, each) is None for each in them)}

        if timeout_ms <= 0:
            return set(wanted)
        await self.until_metadata(lambda: not waiting(), timeout_ms)
        return waiting()


Handle = Callable[[Parts, Call], Awaitable[Message | None]]


@dataclass(frozen=True, slots=True)
class Handler:
    """`handle`: the response; None if the client waits for none. `abandoned`: whether it stops, unanswered, once its
    client has gone."""

    key: ApiKey
    versions: Versions
    handle: Handle
    abandoned: bool = False
