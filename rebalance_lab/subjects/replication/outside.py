"""What a script of replicated partitions does to the cluster from outside, as operators and their tools do, and what it
sees of it there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rebalance_lab.broker.halting import HALT, Order, halt_payload
from rebalance_lab.history.duties import FOLDERS_READ
from rebalance_lab.history.events import LAYER_OF, Event
from rebalance_lab.history.rest import NodeState
from rebalance_lab.kernel import Future
from rebalance_lab.roles.inspector import InspectorSpec
from rebalance_lab.subjects.broker_log.subject import LogLab
from rebalance_lab.subjects.replication.tracker import ReplicationTracker
from rebalance_lab.trials.lab import START_LIMIT_MS, NodeHandle
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.stage import NodeOptions
from rebalance_lab.wire.cluster import LeaderIsrAndControllerEpoch, read_assignment
from rebalance_lab.wire.paths import DELETE_TOPICS, partition_state_path, topic_path
from rebalance_lab.world.errors import NoNode
from rebalance_lab.world.ports import WatchEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectorOptions(NodeOptions):
    """The inspector of the trial. `pause_ms`: between two looks."""

    pause_ms: int = 200

    def spec(self, plan: Plan, actor: str, *, connect: str, events: str) -> InspectorSpec:
        return InspectorSpec(
            actor=actor,
            host=actor,
            seed=plan.seed,
            events=events,
            connect=connect,
            session_timeout_ms=plan.number("session_timeout_ms"),
            pause_ms=self.pause_ms,
        )


class OutsideLab(LogLab):
    """The part of a lab that needs no broker to tell it anything."""

    async def create_znode(self, path: str, data: bytes = b"") -> None:
        """Raises NodeExists and NoNode."""
        await self._stage.zookeeper.create(path, data)

    async def write_znode(self, path: str, data: bytes) -> None:
        """Replace what a znode holds, whatever that is. Raises NoNode."""
        await self._stage.zookeeper.set(path, data)

    async def delete_znode(self, path: str) -> None:
        """Raises NoNode."""
        await self._stage.zookeeper.delete(path)

    async def gone(self, path: str) -> None:
        """Wait until a znode is not there."""
        async with self._bounded(f"the end of {path}", START_LIMIT_MS):
            there = await self._stage.zookeeper.exists(path, watch=True)
            while there.value is not None:
                assert there.watch is not None
                await there.watch
                there = await self._stage.zookeeper.exists(path, watch=True)

    async def children_change(self, path: str) -> Future[WatchEvent]:
        """A future of the next change of a znode's children. Raises NoNode."""
        there = await self._stage.zookeeper.children(path, watch=True)
        assert there.watch is not None
        return there.watch

    async def count_children(self, path: str) -> int:
        """How many children a znode has; none if it is not there."""
        with suppress(NoNode):
            return len((await self._stage.zookeeper.children(path)).value.names)
        return 0

    async def assigned(self, topic: str, replicas: Mapping[int, tuple[int, ...]]) -> None:
        """Wait until the topic's znode has these replicas of each partition."""
        await self._reads(topic, lambda there: there == replicas, f"with the replicas {replicas}")

    async def grown(self, topic: str, count: int) -> None:
        """Wait until the topic's znode has so many partitions."""
        await self._reads(topic, lambda there: len(there) == count, f"with {count} partitions")

    async def _reads(self, topic: str, wanted: Callable[[Mapping[int, tuple[int, ...]]], bool], what: str) -> None:
        """Wait until the replicas of each partition in the topic's znode are what is wanted."""
        path = topic_path(topic)
        async with self._bounded(f"{path} {what}", START_LIMIT_MS):
            there = await self._stage.zookeeper.get(path, watch=True)
            while not wanted(read_assignment(topic, there.value.data).replicas):
                assert there.watch is not None
                await there.watch
                there = await self._stage.zookeeper.get(path, watch=True)

    # -- another topic than the trial's --------------------------------------------------------

    async def created_in_sync(self, topic: str, replicas: Sequence[int], count: int = 1) -> None:
        """Create a topic with so many partitions on these brokers, and wait until all its replicas are in sync. Each
        time it has the same leader, so that the checks, which know a topic by its name, see one partition."""
        await self.create(topic, dict.fromkeys(range(count), replicas))
        await self.all_in_sync(topic, replicas, count)

    async def all_in_sync(self, topic: str, replicas: Sequence[int], count: int = 1) -> None:
        """Wait until these replicas of each partition are in sync, one of them leads, and they know."""

        def in_sync() -> bool:
            states = [self.state_of(topic, each) for each in range(count)]
            known = all(each is not None and set(each.isr) == set(replicas) and each.leader >= 0 for each in states)
            return known and all(self.in_roles(topic, each) for each in range(count))

        await self.until(in_sync, f"the replicas of {topic} in sync")

    async def deleted(self, topic: str, count: int = 1) -> None:
        """Wait until a topic with so many partitions is gone, and this lab has heard so: it would take the old state
        for that of the topic's next life."""
        await self.gone(f"{DELETE_TOPICS}/{topic}")
        partitions = range(count)
        await self.until(lambda: all(self.state_of(topic, each) is None for each in partitions), f"the end of {topic}")

    def in_roles(self, topic: str, partition: int) -> bool:
        """Whether each replica in the ISR of a partition believes that it leads or follows in its leader epoch."""
        state, roles = self.state_of(topic, partition), self._seen.roles
        if state is None:
            return False
        return all(roles.get((f"b{each}", topic, partition)) == state.leader_epoch for each in state.isr)

    # -- a controller that halts --------------------------------------------------------------

    async def halt(self, order: Order) -> None:
        """Have a broker count the operations of its controller from now on, and halt before one of them."""
        await self.create_znode(HALT, halt_payload(order))
        await self.until(lambda: self._seen.counting is not None, f"broker {order.broker} to count operations")

    async def halts(self) -> None:
        """Wait until the broker has halted."""
        await self.until(lambda: self.halted, "a controller to halt")

    async def forget_halt(self) -> None:
        """A broker that starts again counts nothing, and one that holds its operations back goes on."""
        await self.delete_znode(HALT)

    @property
    def halted(self) -> bool:
        return self._seen.halted is not None

    @property
    def operations(self) -> int:
        """That were carried out while a broker counts them."""
        return self._seen.operations

    # -- a client with keys --------------------------------------------------------------------

    async def resized(self, count: int) -> None:
        """Wait until brokers have answered so many requests for another number of partitions."""
        await self.until(
            lambda: self._seen.resizes_answered >= count, f"the answers to {count} requests for partitions"
        )

    async def keyed_read(self) -> None:
        """Wait until the client has read the topic with keys."""
        await self.until(lambda: self._seen.keyed_read, "the read of the topic with keys")

    # -- looks --------------------------------------------------------------------------------

    async def look(self) -> Event:
        """Wait for a look of the inspector that begins from now on. Returns its OK."""
        seen, began = self._seen, self.tasks.now_us()
        before = seen.look

        def is_new(look: Event | None) -> bool:
            return look is not before and look is not None and seen.look_began_us >= began

        await self.until(lambda: is_new(seen.look), "a look at the cluster")
        assert seen.look is not None
        return seen.look

    def list_folders(self, node: NodeHandle[Any, NodeState]) -> Event:
        """List the folders on a node's disk, and record them."""
        detail: dict[str, object] = {"folders": self._stage.folders(node.actor)}
        at_us, layer = self.tasks.now_us(), LAYER_OF[FOLDERS_READ]
        actor, n = self.recorder.emit(layer, FOLDERS_READ, member=node.actor, detail=detail)
        return Event(actor, n, at_us, layer, FOLDERS_READ, member=node.actor, detail=detail)

    def state_of(self, topic: str, partition: int) -> LeaderIsrAndControllerEpoch | None:
        """What the state znode of a partition holds; None if there is none."""
        return self._seen.states.get(partition_state_path(topic, partition))

    @property
    def _seen(self) -> ReplicationTracker:
        tracker = self._stage.tracker
        assert isinstance(tracker, ReplicationTracker)
        return tracker
