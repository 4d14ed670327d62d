"""A stage for stories about controllers: brokers are registrations, and the way to them is a list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from controller.cluster import LiveBroker
from controller.controller import Controller
from controller.forms import ControllerForm
from controller.leader_election import LeaderAndIsr
from controller.request_batch import ControlRequest, Send
from controller.settings import ControllerSettings
from controller.stimuli import (
    ReplicasDeleted,
    Stimulus,
)
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.recorder import MemorySink
from rebalance_lab.kernel import Scope
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.wire.cluster import assignment_payload, registration_payload
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrRequest
from rebalance_lab.wire.kafka.messages.stop_replica import StopReplicaRequest
from rebalance_lab.wire.paths import BROKER_IDS, BROKER_TOPICS, DELETE_TOPICS, broker_path, topic_path
from rebalance_lab.world.errors import SessionExpired
from rebalance_lab.world.simulated.world import SimulatedWorld
from rebalance_lab.zkclient.pipelined import PipelinedClient

CONNECT = "simulated:2181"


class SentRequests:
    """What one reign sent. Every deletion is answered at once, unless `silent`."""

    def __init__(self, *, silent: bool = False) -> None:
        self.sent: list[tuple[int, ControlRequest]] = []
        self.brokers: tuple[int, ...] = ()
        self._silent = silent

    def live(self, brokers: Mapping[int, LiveBroker]) -> None:
        self.brokers = tuple(brokers)

    def send(self, what: Send, answered: Callable[[Stimulus], None]) -> None:
        broker_id, request = what.broker_id, what.request
        self.sent.append((broker_id, request))
        if isinstance(request, StopReplicaRequest) and not self._silent:
            partitions = [
                TopicPartition(topic.topic_name, each.partition_index)
                for topic in request.topic_states
                for each in topic.partition_states
            ]
            answered(ReplicasDeleted(broker_id, partitions))

    def leaders(self) -> list[tuple[int, str, int, int, int]]:
        """(broker, topic, partition, leader, leader epoch) of each leadership that was sent, in order."""
        return [
            (broker, topic.topic_name, each.partition_index, each.leader, each.leader_epoch)
            for broker, request in self.sent
            if isinstance(request, LeaderAndIsrRequest)
            for topic in request.topic_states
            for each in topic.partition_states
        ]


class Candidate:
    """One broker's controller on a session of its own."""

    def __init__(
        self, stage: Stage, broker_id: int, form: ControllerForm, *, reads_back: bool, lists_early: bool
    ) -> None:
        self.broker_id = broker_id
        self._form = form
        self._reads_back = reads_back
        self._lists_early = lists_early
        self.reigns: list[SentRequests] = []
        self.reports: list[tuple[str, dict[str, object]]] = []
        self.known: list[tuple[int, TopicPartition, LeaderAndIsr]] = []
        self.ended = False
        self.controller: Controller
        self.process = stage.tasks.process(f"b{broker_id}")
        self._stage = stage
        self._environment = stage.world.environment(f"b{broker_id}", self.process)
        self.session = self._environment.zookeeper.open(CONNECT, 2000)

    async def run(self) -> None:
        self.controller = Controller(
            self._stage.tasks,
            PipelinedClient(self.session, in_flight=self._form.in_flight),
            self.broker_id,
            ControllerSettings(
                form=self._form,
                deletes_topics=self._stage.deletes_topics,
                election_read_back=self._reads_back,
                lists_early=self._lists_early,
            ),
            wall_ms=lambda: 1000,
            channels=self._channels,
            report=lambda event, detail: self.reports.append((event, detail)),
            knows=lambda epoch, partition, state: self.known.append((epoch, partition, state)),
        )
        try:
            await self.controller.run()
        except SessionExpired:
            self.ended = True

    def _channels(self, _scope: Scope) -> SentRequests:
        self.reigns.append(SentRequests(silent=self._stage.silent))
        return self.reigns[-1]

    def said(self, event: str) -> list[dict[str, object]]:
        return [detail for each, detail in self.reports if each == event]

    @property
    def epochs(self) -> list[int]:
        return [each["epoch"] for each in self.said("elected") if isinstance(each["epoch"], int)]


class Stage:
    """`play(story)` runs `async def story(stage)`. `silent`: brokers do not answer. `deletes_topics`: the controllers'
    delete.topic.enable."""

    def __init__(self, seed: int = 1, *, silent: bool = False, deletes_topics: bool = True) -> None:
        self.silent = silent
        self.deletes_topics = deletes_topics
        self.simulation = Simulation(seed)
        self.tasks = self.simulation.kernel
        self.world = SimulatedWorld(self.simulation, seed, MemorySink())
        self.server = self.world.zookeeper
        self.other = PipelinedClient(
            self.world.environment("outside", self.tasks.process("outside")).zookeeper.open(CONNECT, 10_000)
        )
        self._scope: Scope

    def play(self, story: Callable[[Stage], Awaitable[None]]) -> None:
        async def main() -> None:
            async with self.tasks.scope("story") as scope:
                self._scope = scope
                for path in (BROKER_IDS, BROKER_TOPICS, DELETE_TOPICS):
                    await self.other.ensure_path(path)
                await story(self)
                scope.cancel("the story has ended")

        try:
            self.simulation.run(main())
        finally:
            self.simulation.close()

    def candidate(
        self,
        broker_id: int,
        form: ControllerForm = ControllerForm.V2_1,
        *,
        reads_back: bool = True,
        lists_early: bool = False,
    ) -> Candidate:
        candidate = Candidate(self, broker_id, form, reads_back=reads_back, lists_early=lists_early)

        async def run() -> None:
            await self.tasks.spawn(candidate.run(), f"controller {broker_id}", process=candidate.process)

        self._scope.spawn(run(), f"candidate {broker_id}")
        return candidate

    async def register(self, broker_id: int) -> None:
        payload = registration_payload(f"h{broker_id}", 9092, timestamp_ms=0)
        await self.create(broker_path(broker_id), payload)

    async def write_topic(self, name: str, replicas: Mapping[int, tuple[int, ...]], *, grow: bool = False) -> None:
        path, payload = topic_path(name), assignment_payload(replicas)
        if grow:
            await self.other.ask(lambda session: session.set(path, payload))
        else:
            await self.create(path, payload)

    async def create(self, path: str, data: bytes) -> None:
        await self.other.ask(lambda session: session.create(path, data))

    async def remove(self, path: str) -> None:
        """Delete a znode that has no children, whoever owns it."""
        await self.other.ask(lambda session: session.delete(path))

    async def data(self, path: str) -> bytes:
        return (await self.other.ask(lambda session: session.get(path))).value.data

    async def there(self, path: str) -> bool:
        return (await self.other.ask(lambda session: session.exists(path))).value is not None

    async def settle(self) -> None:
        """Let everything that is under way arrive: no message takes as long."""
        await self.tasks.sleep(200_000)
