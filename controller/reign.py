"""The reign of a controller: from its election to the end of its time it carries out what `machine` decides.

All events are handled one after another, and reads of many znodes are pipelined. From the form of 2.1 on every write is
fenced by the controller epoch, except that of `/feature` (`controller.features`), so a controller that was deposed
without its knowledge writes nothing about topics and partitions (claim E3).

A watch tells that children have changed, and not what they are now, so the controller lists them when it comes to that.
With `lists_early` they are listed at once, and the list waits with the event, as with ZkClient: that of brokers up to
0.10, those of topics and of reports of ISRs up to 1.0 (`KafkaController.BrokerChange`, `TopicChange`,
`IsrChangeNotification`; KAFKA-5502, KAFKA-5879).

Up to 0.10.1 threads share the controller by a lock. With `resigns_under_lock` a controller whose session expires waits,
with that lock, for the end of its look for imbalance, which takes the lock many times. If it has begun or waits for the
lock, neither ends: in 0.8.2.2 to 0.10.1.1 before a day is over (KAFKA-1429, KAFKA-4360;
`KafkaController.SessionExpirationListener`, `onControllerResignation`, `KafkaScheduler.shutdown`). The look is one
event here. One that has not ended by then counts as one that needs the lock once more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, assert_never

from controller.cluster import LiveBroker, Stored, Topic
from controller.election import ControllerMoved, Elected
from controller.features import set_up_features
from controller.leader_election import LeaderAndIsr
from controller.machine import ControllerMachine
from controller.nodes import (
    contents,
    get,
    inside,
    live_brokers,
    read_topic,
    those_read,
    those_stored,
    those_there,
    those_unclean,
)
from controller.request_batch import Send
from controller.settings import ControllerBug, ControllerSettings
from controller.stimuli import (
    AnswerElection,
    AnswerIsr,
    AnswerListing,
    AnswerReassignment,
    AnswerShutdown,
    BrokersRead,
    DeletionsRead,
    DropDeletion,
    DropPreferred,
    DropReports,
    HandBack,
    ImbalanceDue,
    Instruction,
    IsrsReported,
    Loaded,
    Log,
    LogDirsFailed,
    PreferredRead,
    Purpose,
    ReadStates,
    ReadUnclean,
    ReassignmentRead,
    RemoveTopic,
    StatesRead,
    StatesWritten,
    Stimulus,
    TopicRemoved,
    TopicsRead,
    TrimReassignment,
    UncleanRead,
    WriteAssignments,
    WriteStates,
)
from controller.writes import Targets, Writes
from rebalance_lab.assignors import TopicPartition, partitions_of
from rebalance_lab.kernel import Future, Mailbox
from rebalance_lab.wire import paths
from rebalance_lab.wire.cluster import (
    read_assignment,
    read_isr_change,
    read_log_dir_event,
    read_preferred_election,
    read_reassignment,
)
from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.paths import (
    BROKER_IDS,
    BROKER_TOPICS,
    CONTROLLER,
    DELETE_TOPICS,
    ISR_CHANGES,
    LOG_DIR_EVENTS,
    PREFERRED_ELECTION,
    REASSIGNMENT,
    broker_path,
    partition_of_state,
    partition_state_path,
    topic_config_path,
    topic_path,
)
from rebalance_lab.world.errors import NoNode
from rebalance_lab.world.ports import Children, Reply, WatchEvent
from rebalance_lab.zkclient.pipelined import PipelinedClient

T = TypeVar("T")

#: Takes the epoch of a controller, a partition, and what the controller takes for its state.
Knows = Callable[[int, TopicPartition, LeaderAndIsr], None]

#: The paths whose children the controller knows.
_LISTS = (BROKER_IDS, BROKER_TOPICS, DELETE_TOPICS, ISR_CHANGES)

#: One of these paths, and its children when they were listed.
_Listed = tuple[str, tuple[str, ...]]

#: The states in one request.
STATES_TOGETHER = 1_000

#: Watches that fired and answers of brokers, until the controller handles them.
EVENTS_LIMIT = 100_000


class Channels(Protocol):
    """The way to the brokers: one queue for each, which is sent in order and again until it is answered."""

    def live(self, brokers: Mapping[int, LiveBroker]) -> None:
        """These brokers are live: open channels to new ones, close those to others."""
        ...

    def send(self, what: Send, answered: Callable[[Stimulus], None]) -> None:
        """`answered` is called with what the controller must hear of an answer."""
        ...


class Reign:
    """From an election to the end of the controller's time. `knows`: is called with what it takes for the state of a
    partition from then on."""

    def __init__(
        self,
        client: PipelinedClient,
        elected: Elected,
        machine: ControllerMachine,
        channels: Channels,
        report: Callable[[str, dict[str, object]], None],
        knows: Knows | None,
        settings: ControllerSettings,
    ) -> None:
        self._settings = settings
        self._client = client
        self._writes = Writes(client, elected, keeps_additions=settings.keeps_additions)
        self._elected = elected
        self._machine = machine
        self._channels = channels
        self._report = report
        self._knows = knows
        self._request_seen: int | None = None  # the zxid of the request to reassign that was read last
        self._requested: Targets = {}
        self._events: Mailbox[str | _Listed | Stimulus | ControllerMoved] = Mailbox(
            "events of the controller", EVENTS_LIMIT
        )
        self._fired: Mailbox[str] = Mailbox("children to be listed", EVENTS_LIMIT)
        self._watches: dict[str, Future[WatchEvent]] = {}
        self._looks = 0  # for imbalance, which have not ended
        self._is_stuck = False

    async def run(self) -> None:
        """Raises ControllerMoved."""
        if not await self._look():
            if self._settings.form.looks_before_loading:
                raise self._moved()
            self._events.put(CONTROLLER)
        await self._handle(await self._load())
        self._events.put(PREFERRED_ELECTION)
        while True:
            event = await self._events.get()
            if isinstance(event, ControllerMoved):
                if self._is_stuck:
                    await Future("the end of a look for imbalance, which waits for a lock that this controller has")
                raise event
            await self._handle(await self._seen(event) if isinstance(event, str | tuple) else event)
            self._looks -= isinstance(event, ImbalanceDue)

    async def list_early(self) -> None:
        """List children as their watches fire, one after another, whatever `run` does."""
        while True:
            path = await self._fired.get()
            self._events.put((path, await self._children(path)))

    def put(self, stimulus: Stimulus) -> None:
        """Handle it after all that waits already."""
        self._looks += isinstance(stimulus, ImbalanceDue)
        self._events.put(stimulus)

    def end(self, why: str) -> None:
        """Have `run` raise ControllerMoved after all that waits already; or never end, with `resigns_under_lock`."""
        self._is_stuck = self._settings.resigns_under_lock and self._looks > 0
        self._events.put(ControllerMoved(why))

    async def _handle(self, stimulus: Stimulus | None) -> None:
        """Carry out all that follows from a stimulus. What came of it is handled once all is carried out."""
        stimuli = deque([] if stimulus is None else [stimulus])
        while stimuli:
            instructions = self._machine.handle(stimuli.popleft())
            self._tell_what_is_known()
            self._channels.live(self._machine.cluster.brokers)
            for each in instructions:
                found = await self._carry_out(each)
                if found is not None:
                    stimuli.append(found)

    def _tell_what_is_known(self) -> None:
        """Tell of the states that the machine takes for others than before."""
        cluster, knows = self._machine.cluster, self._knows
        changed, cluster.changed = cluster.changed, {}
        if knows is not None:
            for each in changed:
                knows(self._elected.epoch, each, cluster.stored[each].leader_and_isr)

    async def _carry_out(self, instruction: Instruction) -> Stimulus | None:
        found: Stimulus | None = None
        match instruction:
            case Send():
                self._channels.send(instruction, self._events.put)
            case WriteStates():
                found = await self._write(instruction.states, instruction.of)
            case WriteAssignments():
                found = await self._writes.write_assignments(instruction)
            case ReadStates():
                found = await self._read_states(instruction.partitions)
            case ReadUnclean():
                partitions = instruction.partitions
                found = UncleanRead(partitions, await self._unclean(partitions), instruction.of)
            case HandBack():
                found = instruction.stimulus
            case AnswerIsr() | AnswerShutdown() | AnswerElection() | AnswerReassignment() | AnswerListing():
                instruction.give()
            case RemoveTopic():
                await self._writes.remove(instruction.topic)
                found = TopicRemoved(instruction.topic)
            case Log():
                self._log(instruction.message)
            case _:
                await self._drop(instruction)
        return found

    async def _write(
        self, states: Mapping[TopicPartition, tuple[LeaderAndIsr, int | None]], of: Purpose
    ) -> StatesWritten:
        written, refused = await self._writes.write(states)
        found = await self._states(refused)
        return StatesWritten(written, {each: found.get(each) for each in refused}, of)

    async def _drop(self, instruction: DropPreferred | DropDeletion | DropReports | TrimReassignment) -> None:
        """Delete a request that has been carried out, or what it still asks for."""
        match instruction:
            case DropPreferred():
                await self._writes.delete(PREFERRED_ELECTION)
            case DropDeletion():
                await self._writes.delete(f"{DELETE_TOPICS}/{instruction.topic}")
            case DropReports():
                await self._writes.drop_reports(instruction.reports)
            case TrimReassignment():
                await self._trim(instruction.dropped)
            case _:
                assert_never(instruction)

    async def _trim(self, dropped: Mapping[TopicPartition, tuple[int, ...] | None]) -> None:
        """Drop what is done from a request to reassign partitions."""
        keeps, done = self._settings.keeps_requests, False
        while not done:
            if self._settings.form.trims_what_it_knows and not keeps:
                wanted, version = self._requested, -1
            else:
                wanted, version = await self._targets()
            left = {
                each: its for each, its in wanted.items() if each not in dropped or dropped[each] not in (None, its)
            }
            self._requested = left
            done = len(left) == len(wanted) or await self._writes.trim(left, version if keeps else -1)

    # -- reads ------------------------------------------------------------------------------

    async def _load(self) -> Loaded:
        """The cluster as it is, with a watch on all that may change."""
        for path in _LISTS if self._settings.lists_early else ():
            await self._children(path)
        form, enabled = self._settings.form, self._settings.features_enabled
        if form.has_features and enabled is not None:
            await set_up_features(self._client, enabled=enabled)
        for folder in (LOG_DIR_EVENTS, ISR_CHANGES) if form.hears_of_failed_disks else (ISR_CHANGES,):
            names = await self._children(folder)
            await self._writes.drop_reports(inside(folder, names))  # all is read, and all brokers told, after it
        brokers = await self._brokers(await self._children(BROKER_IDS))
        topics = await self._topics({}, await self._children(BROKER_TOPICS))
        partitions = [each for topic, known in topics.items() for each in partitions_of(topic, known.replicas)]
        states, deletions = await self._states(partitions), await self._children(DELETE_TOPICS)
        wanted = await self._reassignment()
        if self._settings.bug is ControllerBug.FORGETS_NEW:
            old = {each: {number for name, number in states if name == each} for each in topics}
            topics = {
                name: Topic({each: its for each, its in topic.replicas.items() if each in old[name]}, topic.topic_id)
                for name, topic in topics.items()
            }
        deleted = () if self._settings.bug is ControllerBug.FORGETS_DELETIONS else deletions
        return Loaded(brokers, topics, states, deleted, {} if wanted is None else wanted.targets)

    async def _seen(self, event: str | _Listed) -> Stimulus | None:
        """What has changed where a watch fired. Raises ControllerMoved."""
        if isinstance(event, tuple):
            return await self._listed(*event)
        if event in _LISTS:
            return await self._listed(event, await self._children(event))
        return await self._read(event)

    async def _listed(self, path: str, names: Sequence[str]) -> Stimulus:
        match path:
            case paths.BROKER_IDS:
                return BrokersRead(await self._brokers(names))
            case paths.DELETE_TOPICS:
                return DeletionsRead(names)
            case paths.ISR_CHANGES:
                return await self._isrs_reported(names)
        assert path == BROKER_TOPICS, path
        return TopicsRead(await self._topics(self._machine.cluster.topics, names))

    async def _read(self, path: str) -> Stimulus | None:
        """Raises ControllerMoved."""
        match path:
            case paths.CONTROLLER:
                controls = await self._look()
                if controls is None or (not controls and self._settings.form.resigns_to_a_successor):
                    raise self._moved()
                found: Stimulus | None = None
            case paths.LOG_DIR_EVENTS:
                reports = inside(LOG_DIR_EVENTS, await self._children(LOG_DIR_EVENTS))
                found = LogDirsFailed(await self._reported(reports, read_log_dir_event), reports)
            case paths.PREFERRED_ELECTION:
                found = await self._preferred()
            case paths.REASSIGNMENT:
                found = await self._reassignment()
            case _ if (named := partition_of_state(path)) is not None:
                reassigned = self._machine.cluster.reassigning & {TopicPartition(*named)}
                found = await self._read_states(sorted(reassigned)) if reassigned else None
            case _:
                topic = path.removeprefix(f"{BROKER_TOPICS}/")
                found = TopicsRead({**self._machine.cluster.topics, **await self._assignments([topic])})
        return found

    async def _look(self) -> bool | None:
        """Whether `/controller` is of this session; None if there is none. Watches it."""
        there = await self._client.ask(lambda session: session.exists(CONTROLLER, watch=True))
        self._watch(CONTROLLER, there)
        return None if there.value is None else there.value.ephemeral_owner == self._client.session.session_id

    def _moved(self) -> ControllerMoved:
        return ControllerMoved(f"{CONTROLLER} is not of this session any more; epoch {self._elected.epoch} is over")

    async def _children(self, path: str) -> tuple[str, ...]:
        """No children, and no watch, if the znode does not exist (`KafkaZkClient.getChildren`)."""
        try:
            reply: Reply[Children] = await self._client.ask(lambda session: session.children(path, watch=True))
        except NoNode:
            return ()
        self._watch(path, reply)
        return reply.value.names

    async def _brokers(self, names: Sequence[str]) -> list[LiveBroker]:
        """Those of these that are registered now."""
        ids = [int(each) for each in names if each.isascii() and each.isdigit()]
        answers = await self._client.ask_all([get(broker_path(each)) for each in ids])
        return live_brokers(ids, answers, self._log)

    async def _topics(self, known: Mapping[str, Topic], names: Sequence[str]) -> dict[str, Topic]:
        """These topics. Of those that are known the assignment is not read again: they have a watch."""
        new = await self._assignments([each for each in names if each not in known])
        return {each: known[each] if each in known else new[each] for each in names if each in known or each in new}

    async def _assignments(self, topics: Sequence[str]) -> dict[str, Topic]:
        """Those that can be read; of the others a person is told."""
        answers = await self._client.ask_all([get(topic_path(each), watch=True) for each in topics])
        for topic, answer in zip(topics, answers, strict=True):
            if answer.error is None:
                self._watch(topic_path(topic), answer.reply)
        found = {}
        for topic, node in those_there(topics, answers):
            try:
                found[topic] = read_topic(read_assignment(topic, node.data))
            except KafkaException as error:
                self._log(f"topic {topic} is left out: {error}")
        return found

    async def _states(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Stored]:
        """Of those that have a state znode. A form that reads them together takes in some while ZooKeeper reads the
        next."""
        if not self._settings.form.reads_together:
            answers = await self._client.ask_all([get(partition_state_path(*each)) for each in partitions])
            return those_stored(those_there(partitions, answers), self._log)
        parts = [partitions[at : at + STATES_TOGETHER] for at in range(0, len(partitions), STATES_TOGETHER)]
        begun = [self._client.begin_to_read([partition_state_path(*each) for each in part]) for part in parts]
        found: dict[TopicPartition, Stored] = {}
        for part, reading in zip(parts, begun, strict=True):
            found |= those_stored(those_read(part, await reading.nodes()), self._log)
        return found

    async def _isrs_reported(self, names: Sequence[str]) -> IsrsReported:
        """The states of the partitions whose leaders report there that they have written them."""
        reports = inside(ISR_CHANGES, names)
        changes = await self._reported(reports, read_isr_change)
        reported = {TopicPartition(*each) for partitions in changes for each in partitions}
        return IsrsReported(await self._states(sorted(reported)), reports)

    async def _reported(self, reports: Sequence[str], read: Callable[[str, bytes], T]) -> list[T]:
        """What is in those reports of brokers that can be read."""
        return list(contents(reports, await self._client.ask_all([get(each) for each in reports]), read, self._log))

    async def _preferred(self) -> PreferredRead | None:
        """What the znode asks for; None if it is not there. What cannot be read asks for nothing, and is deleted."""
        there = await self._client.ask(lambda session: session.exists(PREFERRED_ELECTION, watch=True))
        self._watch(PREFERRED_ELECTION, there)
        if there.value is None:
            return None
        for _, node in those_there([PREFERRED_ELECTION], await self._client.ask_all([get(PREFERRED_ELECTION)])):
            try:
                return PreferredRead([TopicPartition(*each) for each in read_preferred_election(node.data)])
            except KafkaException as error:
                self._log(f"no preferred leader is elected: {error}")
        return PreferredRead(())

    async def _reassignment(self) -> ReassignmentRead | None:
        """What the znode asks for; None if it is not there, or has been read. One that cannot be
        read stays; in Kafka until the next reassignment ends or a client asks for one, because nothing is left of it
        then. A request that is written over another is only seen in some forms, or with `keeps_requests`."""
        there = await self._client.ask(lambda session: session.exists(REASSIGNMENT, watch=True))
        self._watch(REASSIGNMENT, there)
        stat, rewritten = there.value, self._settings.keeps_requests or self._settings.form.sees_rewritten_requests
        if stat is None or self._request_seen == (stat.mzxid if rewritten else stat.czxid):
            return None
        self._request_seen = stat.mzxid if rewritten else stat.czxid
        self._requested, _ = await self._targets()
        if not rewritten:
            return ReassignmentRead(self._requested)
        new = {each: target for each, target in self._requested.items() if not self._under_way(each, target)}
        return ReassignmentRead(new) if new else None

    def _under_way(self, partition: TopicPartition, target: tuple[int, ...]) -> bool:
        """Whether a partition is being reassigned: with `keeps_requests` to these replicas, as the later request
        counts."""
        cluster = self._machine.cluster
        if partition not in cluster.reassigning:
            return False
        return not self._settings.keeps_requests or cluster.assignment(partition).target == target

    async def _targets(self) -> tuple[Targets, int]:
        """What the znode asks for, and its version; nothing if it is not there or cannot be read."""
        for _, node in those_there([REASSIGNMENT], await self._client.ask_all([get(REASSIGNMENT)])):
            try:
                targets = {TopicPartition(*each): target for each, target in read_reassignment(node.data).items()}
                return targets, node.stat.version
            except KafkaException as error:
                self._log(f"no partition is reassigned: {error}")
        return {}, -1

    async def _read_states(self, partitions: Sequence[TopicPartition]) -> StatesRead:
        """With a watch on each, if leaders write them themselves in this broker's protocol. In a cluster of two
        protocols the others report it (`KafkaController.processIsrChangeNotification`)."""
        if not self._settings.leaders_write_isrs:
            return StatesRead(partitions, await self._states(partitions))
        answers = await self._client.ask_all([get(partition_state_path(*each), watch=True) for each in partitions])
        for each, answer in zip(partitions, answers, strict=True):
            if answer.error is None:
                self._watch(partition_state_path(*each), answer.reply)
        return StatesRead(partitions, those_stored(those_there(partitions, answers), self._log))

    async def _unclean(self, partitions: Sequence[TopicPartition]) -> set[str]:
        """Those of their topics that allow unclean elections. Settings that cannot be read allow none."""
        topics = sorted({each.topic for each in partitions})
        answers = await self._client.ask_all([get(topic_config_path(each)) for each in topics])
        return those_unclean(topics, answers, self._log, default=self._settings.unclean_default)

    def _log(self, message: str) -> None:
        self._report("log", {"message": message})

    def _watch(self, path: str, reply: Reply[Any]) -> None:
        """Put the path among the events when its watch fires. Reads that watch the same share one watch."""
        watch = reply.watch
        if watch is not None and self._watches.get(path) is not watch:
            self._watches[path] = watch
            early = self._settings.lists_early and path in _LISTS
            watch.on(lambda _fired: self._fired.put(path) if early else self._events.put(path))
