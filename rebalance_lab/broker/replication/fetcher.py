"""How followers get their leaders' records: one fetcher for each broker that leads (`ReplicaFetcherThread`, 3.9.1).

A fetcher asks for all its partitions at once, and has one request under way. What comes back for a partition that has
been given another role meanwhile is dropped: `Follower` checks the leader epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.log.epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET, EpochEnd
from rebalance_lab.broker.log.errors import LogError
from rebalance_lab.broker.log.log import PartitionLog
from rebalance_lab.broker.observe import Observe
from rebalance_lab.broker.replication.fetch_state import FETCH_TRANSITIONS, FetchState, asks_leader, first_state
from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.broker.replication.truncation import (
    Truncation,
    at_epoch_end,
    at_high_watermark,
    at_leader_end,
    must_restart,
)
from rebalance_lab.broker.versions import ProtocolVersion
from rebalance_lab.kernel import Flag, Kernel, Scope, Task
from rebalance_lab.wire.kafka.calls import Call, KafkaCodec
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.frames import key_of
from rebalance_lab.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from rebalance_lab.wire.kafka.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from rebalance_lab.wire.kafka.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from rebalance_lab.wire.kafka.schema import Message
from rebalance_lab.wire.kafka.sentinels import EARLIEST, LATEST
from rebalance_lab.world.network import Address, Connection, Network, NetworkError


class IllegalFetchTransition(Exception):
    """A change of state that the table does not have: a mistake in the fetcher."""


class Follower(Protocol):
    """A replica that follows. The changing methods return False, and do nothing, if it does not follow in that leader
    epoch any more. They raise LogErrors."""

    @property
    def partition(self) -> TopicPartition: ...
    @property
    def log(self) -> PartitionLog: ...
    async def truncate(self, offset: int, leader_epoch: int) -> bool: ...
    async def restart_at(self, offset: int, leader_epoch: int) -> bool: ...
    async def append_fetched(
        self, records: bytes, leader_epoch: int, *, fetch_offset: int, high_watermark: int, start_offset: int
    ) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchConfig:
    """How a follower fetches. `protocol`: in which it asks. `backoff_ms`: how long a partition waits after an error.
    `socket_timeout_ms`: for a connection, and for an answer."""

    protocol: ProtocolVersion
    wait_max_ms: int
    min_bytes: int
    max_bytes: int
    response_max_bytes: int
    backoff_ms: int
    socket_timeout_ms: int


class Following:
    """One replica in a fetcher. `not_before_us`: when the leader is asked about it again, after an error."""

    def __init__(self, follower: Follower, leader_epoch: int, state: FetchState) -> None:
        self.follower = follower
        self.leader_epoch = leader_epoch
        self.state = state
        self.not_before_us = 0

    def change(self, state: FetchState) -> None:
        if state not in FETCH_TRANSITIONS[self.state]:
            raise IllegalFetchTransition(f"{self.follower.log}: from {self.state.value} to {state.value}")
        self.state = state


@dataclass(frozen=True, slots=True)
class Source:
    """What a fetcher fetches from. `leader`: the id of the broker; `address`: where it listens; `fetcher`: the number
    of the fetcher in this process."""

    leader: int
    address: Address
    fetcher: int


class ReplicaFetcher:
    """Fetches from one broker until it is cancelled. `observe`: is called with what trials record."""

    def __init__(
        self,
        tasks: Kernel,
        network: Network,
        broker_id: int,
        rules: ReplicationRules,
        config: FetchConfig,
        warn: Callable[[str], None],
        observe: Observe,
        source: Source,
    ) -> None:
        self.source = source
        self._observe = observe
        self._tasks = tasks
        self._network = network
        self._broker_id = broker_id
        self._rules = rules
        self._config = config
        self._warn = warn
        self._following: dict[TopicPartition, Following] = {}
        self._changed = Flag(f"partitions to fetch from {source.address}")
        self._connection: Connection[Call, Message] | None = None

    @property
    def partitions(self) -> dict[TopicPartition, Following]:
        return dict(self._following)

    def add(self, following: Following) -> None:
        """Begin, or begin anew, with a replica."""
        partition, source = following.follower.partition, self.source
        self._following[partition] = following
        epoch = following.leader_epoch
        self._observe("fetches", partition, {"leader": source.leader, "leader_epoch": epoch, "fetcher": source.fetcher})
        self._changed.raise_()

    def remove(self, partition: TopicPartition) -> None:
        following = self._following.pop(partition, None)
        if following is not None and following.state is not FetchState.FAILED:
            self._ends(partition)

    def _ends(self, partition: TopicPartition) -> None:
        self._observe("fetches-no-more", partition, {"leader": self.source.leader, "fetcher": self.source.fetcher})

    def let_go(self) -> list[Following]:
        """Fetch nothing any more. Returns what it has fetched for."""
        them = list(self._following.values())
        for each in them:
            self.remove(each.follower.partition)
        return them

    async def run(self) -> None:
        try:
            while True:
                self._changed.clear()
                truncating = self._ready(FetchState.TRUNCATING)
                if truncating:
                    await self._truncate(truncating)
                fetching = self._ready(FetchState.FETCHING)
                if fetching:
                    await self._fetch(fetching)
                elif not truncating:
                    await self._until_something_is_ready()
        finally:
            self._drop_connection()
            self.let_go()

    def _ready(self, state: FetchState) -> list[Following]:
        now_us = self._tasks.now_us()
        return [each for each in self._following.values() if each.state is state and each.not_before_us <= now_us]

    async def _until_something_is_ready(self) -> None:
        waiting = [each.not_before_us for each in self._following.values() if each.state is not FetchState.FAILED]
        if not waiting:
            await self._changed.wait()
            return
        left_us = max(0, min(waiting) - self._tasks.now_us())
        await self._tasks.first(self._tasks.sleep(left_us), self._changed.wait())

    def _is_current(self, following: Following) -> bool:
        """Whether it is still this fetcher's."""
        return self._following.get(following.follower.partition) is following

    # -- requests ---------------------------------------------------------------------------

    async def _ask(self, request: Message, concerned: Iterable[Following]) -> Any:
        """The leader's answer; None if there is none, and what it is about waits."""
        try:
            if self._connection is None or self._connection.ended.done:
                self._connection = await self._network.connect(
                    self.source.address, KafkaCodec(), timeout_us=self._config.socket_timeout_ms * 1000
                )
            version = self._config.protocol.version_of(key_of(type(request)))
            call = Call.of(request, version, f"broker-{self._broker_id}-fetcher")
            return await self._connection.request(call, timeout_us=self._config.socket_timeout_ms * 1000)
        except NetworkError:
            self._drop_connection()
            for each in concerned:
                self._delay(each)
            return None

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _delay(self, following: Following) -> None:
        following.not_before_us = self._tasks.now_us() + self._config.backoff_ms * 1000

    def _fail(self, following: Following, why: str) -> None:
        topic, partition = following.follower.partition
        self._warn(
            f"{topic}-{partition} is not fetched from {self.source.address} any more in leader epoch "
            f"{following.leader_epoch}: {why}; it waits for the controller"
        )
        following.change(FetchState.FAILED)
        self._ends(following.follower.partition)

    def _refused(self, following: Following, error: int) -> None:
        """The leader does not answer for a partition."""
        if error == ErrorCode.FENCED_LEADER_EPOCH:
            self._fail(following, "its leader has a later leader epoch")
        else:
            self._delay(following)

    def _known_epoch(self, following: Following) -> int:
        return following.leader_epoch if self._rules.fences else UNDEFINED_EPOCH

    # -- truncation -------------------------------------------------------------------------

    async def _truncate(self, them: Sequence[Following]) -> None:
        """Make logs prefixes of their leaders'."""
        asked = {}
        for each in them:
            log = each.follower.log
            if asks_leader(self._rules, has_epochs=log.leader_epoch != UNDEFINED_EPOCH):
                asked[each] = log.leader_epoch
            else:
                await self._cut(each, at_high_watermark(log.high_watermark, log.end_offset))
        if not asked:
            return
        answer = await self._ask(self._epochs_request(asked), asked)
        if answer is None:
            return
        found = {
            TopicPartition(topic.topic, each.partition): each for topic in answer.topics for each in topic.partitions
        }
        for following in asked:
            if self._is_current(following):
                await self._cut_by_answer(following, found.get(following.follower.partition))

    def _epochs_request(self, asked: dict[Following, int]) -> OffsetForLeaderEpochRequest:
        return OffsetForLeaderEpochRequest(
            replica_id=self._broker_id,
            topics=tuple(
                OffsetForLeaderTopic(
                    topic=each.follower.partition.topic,
                    partitions=(
                        OffsetForLeaderPartition(
                            partition=each.follower.partition.partition,
                            current_leader_epoch=self._known_epoch(each),
                            leader_epoch=epoch,
                        ),
                    ),
                )
                for each, epoch in asked.items()
            ),
        )

    async def _cut_by_answer(self, following: Following, answer: EpochEndOffset | None) -> None:
        if answer is None or answer.error_code:
            self._refused(following, ErrorCode.UNKNOWN_SERVER_ERROR if answer is None else answer.error_code)
        else:
            await self._cut_at_epoch_end(following, EpochEnd(answer.leader_epoch, answer.end_offset))

    async def _cut_at_epoch_end(self, following: Following, leaders: EpochEnd) -> None:
        log = following.follower.log
        truncation = at_epoch_end(
            leaders,
            log.end_of_epoch(leaders.epoch),
            high_watermark=log.high_watermark,
            end_offset=log.end_offset,
            compares_epochs=self._rules.compares_epochs,
        )
        await self._cut(following, truncation)

    async def _cut(self, following: Following, truncation: Truncation) -> None:
        try:
            if not await following.follower.truncate(truncation.offset, following.leader_epoch):
                return
        except LogError as error:
            self._fail(following, str(error))
            return
        if truncation.complete and following.state is FetchState.TRUNCATING and self._is_current(following):
            following.change(FetchState.FETCHING)

    # -- fetch ------------------------------------------------------------------------------

    async def _fetch(self, them: Sequence[Following]) -> None:
        offsets = {each: each.follower.log.end_offset for each in them}
        response = await self._ask(self._fetch_request(offsets), them)
        if response is None:
            return
        if response.error_code:
            for each in them:
                self._delay(each)
            return
        found = {
            TopicPartition(topic.topic, each.partition_index): each
            for topic in response.responses
            for each in topic.partitions
        }
        for following, offset in offsets.items():
            data = found.get(following.follower.partition)
            if data is not None and self._is_current(following) and following.follower.log.end_offset == offset:
                await self._take(following, data, offset)

    def _fetch_request(self, offsets: dict[Following, int]) -> FetchRequest:
        config = self._config
        return FetchRequest(
            replica_id=self._broker_id,
            max_wait_ms=config.wait_max_ms,
            min_bytes=config.min_bytes,
            max_bytes=config.response_max_bytes,
            topics=tuple(
                FetchTopic(
                    topic=each.follower.partition.topic,
                    partitions=(
                        FetchPartition(
                            partition=each.follower.partition.partition,
                            current_leader_epoch=self._known_epoch(each),
                            fetch_offset=offset,
                            last_fetched_epoch=self._last_epoch(each),
                            log_start_offset=each.follower.log.start_offset,
                            partition_max_bytes=config.max_bytes,
                        ),
                    ),
                )
                for each, offset in offsets.items()
            ),
        )

    def _last_epoch(self, following: Following) -> int:
        return following.follower.log.leader_epoch if self._rules.truncates_on_fetch else UNDEFINED_EPOCH

    async def _take(self, following: Following, data: PartitionData, offset: int) -> None:
        """What came for one partition."""
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._find_offset(following)
        elif data.error_code:
            self._refused(following, data.error_code)
        elif data.diverging_epoch.end_offset != UNDEFINED_OFFSET:
            diverging = data.diverging_epoch
            await self._cut_at_epoch_end(following, EpochEnd(diverging.epoch, diverging.end_offset))
        else:
            await self._append(following, data, offset)

    async def _append(self, following: Following, data: PartitionData, offset: int) -> None:
        try:
            await following.follower.append_fetched(
                bytes(data.records or b""),
                following.leader_epoch,
                fetch_offset=offset,
                high_watermark=data.high_watermark,
                start_offset=data.log_start_offset,
            )
        except LogError as error:
            if following.follower.log.failure is not None:
                self._fail(following, str(error))
            else:  # damaged on the way, or the logs have parted; the next fetch may bring it whole
                self._warn(f"{following.follower.log}: what {self.source.address} sent is not taken: {error}")
                self._delay(following)

    # -- out of range -----------------------------------------------------------------------

    async def _find_offset(self, following: Following) -> None:
        """The leader has nothing at the end of this log: go where it has."""
        log = following.follower.log
        end = await self._leader_offset(following, LATEST)
        if end is None:
            return
        truncation = at_leader_end(end, log.end_offset)
        if truncation is not None:
            await self._cut(following, truncation)
            return
        start = await self._leader_offset(following, EARLIEST)
        if start is None or not self._is_current(following):
            return
        if must_restart(start, log.end_offset, restarts_out_of_range=self._rules.restarts_out_of_range):
            try:
                await following.follower.restart_at(start, following.leader_epoch)
            except LogError as error:
                self._fail(following, str(error))
        else:
            self._delay(following)  # the leader may have more by then

    async def _leader_offset(self, following: Following, time: int) -> int | None:
        topic, partition = following.follower.partition
        asked = ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=self._known_epoch(following), timestamp_ms=time
        )
        request = ListOffsetsRequest(
            replica_id=self._broker_id, topics=(ListOffsetsTopic(name=topic, partitions=(asked,)),)
        )
        answer = await self._ask(request, [following])
        if answer is None:
            return None
        (found,) = answer.topics[0].partitions
        if found.error_code:
            self._refused(following, found.error_code)
            return None
        return int(found.offset)


class ReplicaFetchers:
    """All fetchers of a broker, while `run` runs (`ReplicaFetcherManager`). `fetcher`: makes one for a
    source."""

    def __init__(self, tasks: Kernel, rules: ReplicationRules, fetcher: Callable[[Source], ReplicaFetcher]) -> None:
        self._tasks = tasks
        self._rules = rules
        self._fetcher = fetcher
        self._fetchers: dict[int, tuple[ReplicaFetcher, Task[None]]] = {}
        self._scope: Scope | None = None
        self._count = 0

    async def run(self) -> None:
        """Until it is cancelled."""
        async with self._tasks.scope("fetchers") as scope:
            self._scope = scope
            try:
                await self._tasks.flag("the fetchers end").wait()
            finally:
                self._scope = None
                self._fetchers.clear()

    def follow(
        self, follower: Follower, leader: int, address: Address, leader_epoch: int, *, followed: int | None
    ) -> None:
        """Fetch for a replica from broker `leader`. `followed`: see `first_state`."""
        has_epochs = follower.log.leader_epoch != UNDEFINED_EPOCH
        state = first_state(self._rules, leader=leader, followed=followed, has_epochs=has_epochs)
        self._add(Following(follower, leader_epoch, state), leader, address)

    def stop(self, partition: TopicPartition) -> None:
        """Fetch no more for a replica. What has been asked for is dropped when it comes."""
        for fetcher, _ in self._fetchers.values():
            fetcher.remove(partition)

    def stop_idle(self) -> None:
        """End the fetchers that have no replica left."""
        for leader in [each for each, (fetcher, _) in self._fetchers.items() if not fetcher.partitions]:
            self._fetchers.pop(leader)[1].cancel("it has nothing to fetch")

    def _add(self, following: Following, leader: int, address: Address) -> None:
        if self._scope is None:
            return  # the broker ends
        known = self._fetchers.get(leader)
        if known is not None and (known[0].source.address != address or known[1].done):
            moved = [each for each in known[0].let_go() if each.state is not FetchState.FAILED]
            known[1].cancel("its broker listens elsewhere now")
            known = self._started(leader, address)
            for each in moved:
                known[0].add(each)
        known = known or self._started(leader, address)
        known[0].add(following)

    def _started(self, leader: int, address: Address) -> tuple[ReplicaFetcher, Task[None]]:
        assert self._scope is not None
        self._count += 1
        fetcher = self._fetcher(Source(leader, address, self._count))
        self._fetchers[leader] = fetcher, self._scope.spawn(fetcher.run(), f"fetcher from broker {leader}")
        return self._fetchers[leader]
