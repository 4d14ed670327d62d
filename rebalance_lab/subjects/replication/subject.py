"""The subject of a replicated partition: brokers with replicas of it, a client that writes and reads, a reader of every
replica."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from controller.forms import ControllerForm
from rebalance_lab.broker.calls import BrokerConfig
from rebalance_lab.broker.replication.rules import IsrWriter, ReplicationRules
from rebalance_lab.broker.versions import ProtocolVersion
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.client.consumer import Reset
from rebalance_lab.history.planted import PlantedBug
from rebalance_lab.history.rest import NodeState
from rebalance_lab.roles.broker import BrokerPlant
from rebalance_lab.roles.outside_client import OutsideClientSpec
from rebalance_lab.roles.partition_reader import PartitionReaderSpec
from rebalance_lab.roles.replica_reader import ReplicaReaderSpec
from rebalance_lab.roles.values import LEAST_BYTES
from rebalance_lab.subjects.broker_log.subject import (
    ONE_BROKER,
    TOPIC,
    BrokerOptions,
    ClientOptions,
)
from rebalance_lab.subjects.replication.outside import OutsideLab
from rebalance_lab.subjects.replication.real import RealBrokers, demands
from rebalance_lab.subjects.replication.tracker import PARTITION, ReplicationTracker
from rebalance_lab.trials.lab import START_LIMIT_MS, NodeHandle
from rebalance_lab.trials.plan import WORLD_PARAMETERS, Parameter, Plan, PlanError
from rebalance_lab.trials.stage import NodeOptions
from rebalance_lab.trials.subject import RealNodes, Subject
from rebalance_lab.wire.cluster import (
    preferred_election_payload,
)
from rebalance_lab.wire.paths import CONTROLLER, PREFERRED_ELECTION
from rebalance_lab.world.errors import NoNode
from rebalance_lab.world.kafka.jars import Role

#: What every scenario of this subject has.
COMMON: tuple[Parameter, ...] = (
    Parameter("brokers", 3, "", "brokers; some scenarios leave one without a replica", 1, maximum=9),
    Parameter("messages", 200, "", "records that the client writes", 1, maximum=1_000_000),
    Parameter("min_isr", 2, "", "min.insync.replicas", 1, maximum=9),
    Parameter("unclean", False, "", "unclean.leader.election.enable"),
    Parameter("lag_ms", 2000, "ms", "replica.lag.time.max.ms", 10, maximum=3_600_000),
    Parameter("lag_messages", 0, "", "replica.lag.max.messages of 0.8; 0: off, as from 0.9 on", 0, maximum=1_000_000),
    Parameter("isr_writer", IsrWriter.CONTROLLER.value, "", "lab.isr.writer", choices=tuple(IsrWriter)),
    Parameter("flush_messages", 0, "", "flush.messages: 1 syncs each record; 0 none", 0, maximum=1_000_000),
    Parameter("segment_bytes", 1 << 20, "bytes", "segment.bytes", 512, maximum=1 << 30),
    Parameter("value_bytes", 32, "bytes", "the size of each value", LEAST_BYTES, maximum=1_000_000),
    Parameter("idempotent", False, "", "whether the producer is idempotent: repeated batches are written once"),
    Parameter("pause_us", 5000, "µs", "the client's pause between two writes", 0),
    Parameter("request_timeout_ms", 3000, "ms", "how long the client waits for a broker", 1, maximum=3_600_000),
    *WORLD_PARAMETERS.values(),
)

#: Of scenarios that ask what controllers of each form do.
FORM = Parameter(
    "form",
    ControllerForm.V2_1.value,
    "",
    "the release as which controllers write",
    choices=tuple(ControllerForm),
)

#: How long brokers may take to create one of many topics.
TOPIC_LIMIT_MS = 1_000


def with_default(parameters: Sequence[Parameter], **defaults: int | str) -> list[Parameter]:
    """The parameters, some with another default."""
    return [replace(each, default=defaults.get(each.name, each.default)) for each in parameters]


def spares_a_controller(plan: Plan) -> None:
    """Of scenarios whose controller gets no replica. Raises PlanError."""
    if plan.number("brokers") < 3:
        raise PlanError(f"brokers={plan.number('brokers')}: must be at least 3: a controller, a leader and a follower")


def last_writes_alone(plan: Plan) -> None:
    """Of scenarios in which the last replica writes `alone` records before it dies. Raises PlanError."""
    if plan.number("min_isr") > 1:
        raise PlanError(f"min_isr={plan.number('min_isr')}: must be 1, because the last replica writes alone")
    if plan.number("messages") < 4 * plan.number("alone"):
        raise PlanError(f"alone={plan.number('alone')}: must be a quarter of messages at most")


def lacks_a_replica(plan: Plan) -> None:
    """Of scenarios that write while one of the replicas is missing, and whose controller has none. Raises PlanError."""
    replicas = plan.number("brokers") - 1
    if plan.number("min_isr") >= replicas:
        raise PlanError(
            f"min_isr={plan.number('min_isr')}: must be less than the {replicas} replicas, because one will be missing"
        )


def has_three_replicas(plan: Plan) -> None:
    """Of scenarios whose script names the controller and each of three replicas. Raises PlanError."""
    if plan.number("brokers") != 4:
        raise PlanError(f"brokers={plan.number('brokers')}: must be 4, a controller and three replicas")


def number_of(actor: str) -> int:
    """The id of a broker: that of `b2` is 2."""
    return int(actor[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaOptions(BrokerOptions):
    """A broker of the trial; its name ends with its id. `more`: fields of its BrokerConfig that the scenario sets. If
    its inter-broker protocol is 1.1, that says by which rules its replicas go, and not the plan. `rack`: None if it has
    none."""

    more: Mapping[str, Any]
    rack: str | None = None

    def config(self, plan: Plan, actor: str) -> BrokerConfig:
        more = {"controlled_shutdown_enable": False, "auto_leader_rebalance_enable": False, **self.more}
        by_plan: dict[str, Any] = {
            "lab_replication_rules": ReplicationRules(plan.rules),
            "lab_isr_writer": IsrWriter(plan.text("isr_writer")),
        }
        return BrokerConfig(
            broker_id=number_of(actor),
            rack=self.rack,
            min_insync_replicas=plan.number("min_isr"),
            unclean_leader_election_enable=plan.switch("unclean"),
            replica_lag_time_max_ms=plan.number("lag_ms"),
            replica_lag_max_messages=plan.number("lag_messages") or None,
            **({} if more.get("inter_broker_protocol_version") is ProtocolVersion.V1_1 else by_plan),
            **more,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOptions(ClientOptions):
    """The client of the trial."""

    def request_timeout_ms(self, plan: Plan) -> int:
        return plan.number("request_timeout_ms")


class ClientPlant(PlantedBug):
    """Planted bugs of a client."""

    IGNORES_KEYS = "ignores-keys", "a client that writes records with keys to the partitions in turn"
    ACKS_ONE = "asks-for-one-ack", "a client that claims acks=all, and asks the leader alone to acknowledge"
    NEVER_VALIDATES = (
        "never-validates",
        "a reader that names its leader epoch, and does not ask where its last one ended",
    )
    GOES_BACK = "goes-back-a-record", "a reader that reads its last record again after each error"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideOptions(NodeOptions):
    """A client that others wrote, by the library that the plan names."""

    def spec(self, plan: Plan, actor: str, *, connect: str, events: str) -> OutsideClientSpec:
        return OutsideClientSpec(
            actor=actor,
            host=actor,
            seed=plan.seed,
            events=events,
            connect=connect,
            session_timeout_ms=plan.number("session_timeout_ms"),
            topic=TOPIC,
            library=plan.text("client"),
            duration_ms=plan.number("seconds") * 1000,
            pause_us=plan.number("pause_us"),
            value_bytes=plan.number("value_bytes"),
            request_timeout_ms=plan.number("request_timeout_ms"),
            acks=1 if plan.plant == ClientPlant.ACKS_ONE else -1,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderOptions(NodeOptions):
    """The reader of all replicas. `brokers`: those that have one."""

    brokers: tuple[int, ...]

    def spec(self, plan: Plan, actor: str, *, connect: str, events: str) -> ReplicaReaderSpec:
        return ReplicaReaderSpec(
            actor=actor,
            host=actor,
            seed=plan.seed,
            events=events,
            connect=connect,
            session_timeout_ms=plan.number("session_timeout_ms"),
            brokers=self.brokers,
            topic=TOPIC,
            folders={each: _files(events, each) for each in self.brokers} if plan.has_real_nodes else {},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AlongOptions(NodeOptions):
    """The reader that reads along. `epochs`: whether it knows leader epochs (KIP-320)."""

    epochs: bool
    reset: Reset

    def spec(self, plan: Plan, actor: str, *, connect: str, events: str) -> PartitionReaderSpec:
        return PartitionReaderSpec(
            actor=actor,
            host=actor,
            seed=plan.seed,
            events=events,
            connect=connect,
            session_timeout_ms=plan.number("session_timeout_ms"),
            topic=TOPIC,
            request_timeout_ms=plan.number("request_timeout_ms"),
            epochs=self.epochs,
            validates=self.epochs and plan.plant != ClientPlant.NEVER_VALIDATES,
            reset=self.reset,
            rereads=plan.plant == ClientPlant.GOES_BACK,
        )


def _files(events: str, broker: int) -> str:
    """The folder of a broker's files, which are beside the event files of all nodes."""
    return str(Path(events).with_name(f"b{broker}.files"))


#: A broker of a trial, as its script sees it.
BrokerNode = NodeHandle[Any, NodeState]


class ReplicationLab(OutsideLab):
    """The interface for scripts about a replicated partition."""

    @property
    def brokers(self) -> list[BrokerNode]:
        """In the order of their ids."""
        found = [each for each in self.nodes if isinstance(each.options, ReplicaOptions)]
        return sorted(found, key=lambda each: number_of(each.actor))

    async def assemble(
        self,
        *,
        spare_controller: bool = False,
        partitions: int = 1,
        proxied: bool = False,
        racks: int = 0,
        first: int | None = None,
        configs: Mapping[int, Mapping[str, Any]] | None = None,
        **more: Any,
    ) -> None:
        """Start the brokers at once, create the topic with a replica on each, in the order of their ids, and wait until
        all are in sync. `spare_controller`: the controller gets no replica. `partitions`: of the topic; they have the
        same replicas, and each begins with another of them. `proxied`: brokers can be cut off from ZooKeeper. `racks`:
        how many the brokers stand in, in turn; 0 if they have none. `first`: the broker that starts before the others,
        and so is the controller. `more`: further fields of BrokerConfig; `configs`: those of some brokers."""
        await self.connected()
        count = self.plan.number("brokers")
        for number in sorted(range(1, count + 1), key=lambda each: each != first):
            rack = f"rack-{(number - 1) % racks}" if racks else None
            own = {**more, **(configs or {}).get(number, {})}
            options = ReplicaOptions(port=self._stage.port(f"b{number}"), proxied=proxied, rack=rack, more=own)
            self.start(f"b{number}", options)
            await self._stage.started_one_of_several()
            if number == first:
                await self.controlled()
        await self.registered(count)
        replicas = list(range(1, count + 1))
        if spare_controller:
            controller = await self.controlled()
            replicas = [each for each in replicas if each != number_of(controller.actor)]
        await self.create(TOPIC, {each: [*replicas[each:], *replicas[:each]] for each in range(partitions)})
        await self.in_sync(len(replicas))  # the tracker may hear of the topic later

    async def replicas_read(self) -> None:
        """Read every replica."""
        brokers = self._replicas.assigned
        self.start("r1", ReaderOptions(brokers=brokers))
        await self.until(lambda: self._replicas.replicas_read == set(brokers), f"the reads of {len(brokers)} replicas")

    async def in_sync(self, count: int | None = None) -> None:
        """Wait until so many replicas are in sync, by default all, according to ZooKeeper, and one of them leads."""
        wanted = len(self._replicas.assigned) if count is None else count
        await self.until(lambda: len(self.isr) == wanted and self.leader is not None, f"{wanted} replicas in sync")

    async def leader_and_followers(self) -> tuple[BrokerNode, list[BrokerNode]]:
        """Wait until all replicas are in sync, according to ZooKeeper. Returns the leader and its followers, these in
        the order of their ids. On a busy host a leader may drop a follower before the script makes anything fail."""
        await self.in_sync()
        leader = self.leader
        assert leader is not None, "in_sync waits for it"
        return leader, [each for each in self.isr if each is not leader]

    async def conclude(self, limit_ms: int | None = None) -> None:
        """Wait until the client has read the whole log, as `all_read`; read every replica once all are in sync;
        come to rest."""
        await self.all_read(limit_ms)
        await self.in_sync()
        await self.replicas_read()
        await self.recover()

    async def created(self, count: int) -> None:
        """Wait until brokers have created or refused so many topics, which are asked for one after another."""
        limit_ms = START_LIMIT_MS + count * TOPIC_LIMIT_MS
        await self.until(lambda: self._replicas.creations_answered >= count, f"the answers to {count} topics", limit_ms)

    async def truncated(self, follower: BrokerNode, count: int = 1) -> None:
        """Wait until a follower has cut its log so often."""
        await self.until(lambda: self._replicas.cuts[follower.actor] >= count, f"cut {count} of {follower.actor}'s log")

    async def read_so_far(self) -> None:
        """Wait until the reader that reads along has read all that is acknowledged now."""
        tracker, end = self._replicas, self._replicas.acknowledged_end
        await self.until(lambda: tracker.position >= end, f"the reader's read up to offset {end}")

    async def read_to_end(self) -> None:
        """Wait until the client has read the whole log, and the reader that reads along has got as far."""
        await self.all_read()
        tracker = self._replicas
        await self.until(lambda: tracker.position >= tracker.end, f"the reader's read up to offset {tracker.end}")

    async def moved(self) -> None:
        """Wait until the position of the reader that reads along has been moved once."""
        await self.until(lambda: self._replicas.moves > 0, "a move of the reader's position")

    async def written_beyond_reader(self, count: int) -> None:
        """Wait until records are acknowledged up to so many behind the position of the reader that reads along."""
        tracker = self._replicas
        await self.until(
            lambda: tracker.acknowledged_end >= tracker.position + count, f"{count} records behind the reader"
        )

    async def prefer(self) -> None:
        """Have the preferred replica lead, as tools up to Kafka 2.3 ask for it: by a znode."""
        await self._stage.zookeeper.create(PREFERRED_ELECTION, preferred_election_payload([(TOPIC, PARTITION)]))

    async def elected(self, broker: BrokerNode) -> None:
        """Wait until a broker leads according to ZooKeeper, and believes so."""
        tracker = self._replicas

        def leads() -> bool:
            state = tracker.state
            return self.leader is broker and state is not None and tracker.led.get(broker.actor) == state.leader_epoch

        await self.until(leads, f"the leadership of {broker.actor}")

    def write_under_way(self) -> bool:
        """Whether the client, which stands still, waits for the answer to a write."""
        self._stage.poll()
        return self._replicas.writing

    def cut_us(self, one: BrokerNode, other: BrokerNode) -> int:
        """Since when nothing passes between two brokers whose link has just been cut. In a live world the runner hears
        of it later, and meanwhile the leader may have written already; in the simulator it hears at once."""
        linked_us, now_us = self._replicas.linked_us, self.tasks.now_us()
        ends = ((one.actor, other.actor), (other.actor, one.actor))
        return max(linked_us.get(each, now_us) for each in ends)

    async def appended_since(self, leader: BrokerNode, since_us: int) -> bool:
        """Wait until a leader has written a batch after `since_us`. False: the client has given up an attempt first."""
        tracker, before = self._replicas, self._replicas.unanswered

        def appended() -> bool:
            return tracker.appended_us.get(leader.actor, 0) > since_us

        await self.until(lambda: appended() or tracker.unanswered > before, f"a batch of {leader.actor}")
        return appended()

    async def following(self, follower: BrokerNode, leader: BrokerNode) -> None:
        """Wait until a broker believes that it follows another."""
        await self.until(
            lambda: self._replicas.followed.get(follower.actor) == number_of(leader.actor),
            f"the moment when {follower.actor} follows {leader.actor}",
        )

    async def led(self) -> None:
        """Wait until the partition has a leader."""
        await self.until(lambda: self.leader is not None, "a leader")

    async def leaderless(self) -> None:
        """Wait until the partition has no leader, according to ZooKeeper, or no broker is left that could say so."""
        tracker = self._replicas
        await self.until(
            lambda: self.leader is None or all(each.state.session in tracker.closed_sessions for each in self.brokers),
            "the end of the last leader",
        )

    async def controlled(self, *, not_by: BrokerNode | None = None) -> BrokerNode:
        """Wait until a broker, another than `not_by`, is the controller according to ZooKeeper. Returns it."""
        await self.until(
            lambda: self.controller is not None and self.controller is not not_by, "the election of a controller"
        )
        found = self.controller
        assert found is not None
        return found

    def reign(self, broker: BrokerNode) -> int:
        """The last controller epoch in which a broker believed that it controls; 0 if there was none."""
        return self._replicas.reigned.get(broker.actor, 0)

    def resigned(self, broker: BrokerNode) -> bool:
        """Whether a broker has believed that it controls, and does no more."""
        seen = self._replicas
        return seen.resigned.get(broker.actor) == seen.reigned.get(broker.actor, 0)

    def cuts(self, broker: BrokerNode) -> int:
        """How often a broker has cut its log as a follower."""
        return self._replicas.cuts[broker.actor]

    async def move_controller(self, to: BrokerNode) -> None:
        """Have the brokers elect a controller, until it is `to`: `/controller` is deleted, as operators do it."""
        while self.controller is not to:
            await self.controlled()
            await self.depose()

    async def depose(self, *, unless: Callable[[], bool] = lambda: False) -> None:
        """Delete `/controller`, and wait until a broker is elected and knows it, or until `unless` is true."""
        reigns, believed = self._replicas.reigns, self._replicas.believed
        with suppress(NoNode):  # the controller has given up itself
            await self._stage.zookeeper.delete(CONTROLLER)

        def elected() -> bool:
            return self._replicas.reigns > reigns and self._replicas.believed > believed

        await self.until(lambda: elected() or unless(), "the election of a controller")

    @property
    def acknowledged(self) -> int:
        return self._replicas.acknowledged

    @property
    def controller(self) -> BrokerNode | None:
        """According to ZooKeeper."""
        number = self._replicas.controller
        return next((each for each in self.brokers if number_of(each.actor) == number), None)

    @property
    def writes_no_more(self) -> bool:
        """Whether the client has begun to read."""
        return self._replicas.writes_no_more

    @property
    def largest_batch(self) -> int:
        """The most records that a leader has written at once."""
        return self._replicas.largest_batch

    @property
    def isr(self) -> list[BrokerNode]:
        """According to ZooKeeper."""
        state = self._replicas.state
        return [each for each in self.brokers if state is not None and number_of(each.actor) in state.isr]

    @property
    def leader(self) -> BrokerNode | None:
        """According to ZooKeeper."""
        state = self._replicas.state
        return next(
            (each for each in self.brokers if state is not None and number_of(each.actor) == state.leader), None
        )

    @property
    def _replicas(self) -> ReplicationTracker:
        tracker = self._stage.tracker
        assert isinstance(tracker, ReplicationTracker)
        return tracker


REPLICATED = Subject(
    name=REPLICATION,
    rules=tuple(sorted(ReplicationRules, key=lambda each: each is not ReplicationRules.KIP_320)),
    lab=ReplicationLab,
    tracker=ReplicationTracker,
    demands=demands,
    real=RealNodes(
        rules=ReplicationRules.KIP_320.value,
        settings={},
        take_part=RealBrokers,
        name="brokers",
        roles=(Role.BROKER,),
        mixed=False,
    ),
    plants=(BrokerPlant, ClientPlant),
    words=ONE_BROKER.words,
    narrator=ONE_BROKER.narrator,
)
