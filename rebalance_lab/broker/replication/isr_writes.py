"""Leaders that write changes of their ISR themselves, as up to Kafka 2.6.

A leader writes the state znode with the version that it knows (`ReplicationUtils.updateLeaderAndIsr`). If another has
written since, nothing changes: the leader keeps its ISR and tries again at its next chance, always with the same
version, until it is sent another leadership. Until then the high watermark waits for replicas that may be dead
(KAFKA-2729). From 0.9 on the controller learns of changes from `/isr_change_notification`, some seconds later
(`ReplicaManager.maybePropagateIsrChanges`); before, only when it next reads the state to change it.

If the session expires under the write, the leader keeps its ISR too, though the write may have been carried out: a
follower may then be in the ISR of the state znode for which the leader's high watermark does not wait
(`KafkaZkClient.conditionalUpdatePath`, 2.6.3, raises the error, and `Partition.expandIsr` changes nothing).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.replication.isr_changes import Change, IsrNotWritten, IsrOutcome, IsrWritten
from rebalance_lab.kernel import Flag, Kernel
from rebalance_lab.wire.cluster import (
    LeaderIsrAndControllerEpoch,
    isr_change_payload,
    read_state,
    state_payload,
)
from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.paths import ISR_CHANGES, partition_state_path
from rebalance_lab.world.errors import BadVersion, NoNode, SessionClosed, SessionExpired
from rebalance_lab.zkclient.pipelined import PipelinedClient

#: How often changes are looked for, how long there must have been none, and how long the controller waits at most.
CHECK_MS = 2_500
QUIET_MS = 5_000
LONGEST_MS = 60_000


class WriteIsr:
    """`client()`: that of the broker's current session. `warn`: takes what a person should know."""

    def __init__(
        self, tasks: Kernel, broker_id: int, *, client: Callable[[], PipelinedClient], warn: Callable[[str], None]
    ) -> None:
        self._tasks = tasks
        self._broker_id = broker_id
        self._client = client
        self._warn = warn
        self._waiting: dict[TopicPartition, Change] = {}
        self._has_some = Flag("changes of the ISR to write")
        self._unreported: set[TopicPartition] = set()
        self._changed_us = self._reported_us = tasks.now_us()

    def submit(self, change: Change) -> None:
        self._waiting[change.replica.partition] = change
        self._has_some.raise_()

    async def run(self) -> None:
        async with self._tasks.scope("changes of the ISR") as scope:
            scope.spawn(self._report_changes(), "reports of them to the controller")
            while True:
                await self._has_some.wait()
                if not self._waiting:
                    self._has_some.clear()
                    continue
                change = self._waiting.pop(next(iter(self._waiting)))
                if change.is_wanted:
                    await change.replica.isr_answered(change.leadership, await self._written(change))

    async def _written(self, change: Change) -> IsrOutcome:
        topic, partition = change.replica.partition
        try:
            version = await self._write(change)
        except (SessionExpired, SessionClosed) as error:
            return IsrNotWritten(str(error), may_be_written=False)
        if version is None:
            why = f"cached zkVersion {change.leadership.partition_epoch} not equal to that in ZooKeeper"
            self._warn(f"the ISR of {topic}-{partition} is not updated to {list(change.isr)}: {why}")
            return IsrNotWritten(why, may_be_written=False)
        self._unreported.add(change.replica.partition)
        self._changed_us = self._tasks.now_us()
        return IsrWritten(change.isr, version)

    async def _write(self, change: Change) -> int | None:
        """The version of the state that was written; None if another has written since the leader read it. Raises
        SessionExpired and SessionClosed."""
        path = partition_state_path(*change.replica.partition)
        state = LeaderIsrAndControllerEpoch(
            controller_epoch=change.controller_epoch,
            leader=self._broker_id,
            leader_epoch=change.leadership.leader_epoch,
            isr=change.isr,
        )
        known, payload = change.leadership.partition_epoch, state_payload(state)
        try:
            reply = await self._client().ask(lambda session: session.set(path, payload, version=known))
            return reply.value.version
        except BadVersion:
            return await self._version_of(change, state)
        except NoNode:
            return None

    async def _version_of(self, change: Change, state: LeaderIsrAndControllerEpoch) -> int | None:
        """The version of this state if it is there: the reply to its write was lost (`checkLeaderAndIsrZkData`)."""
        path = partition_state_path(*change.replica.partition)
        try:
            node = (await self._client().ask(lambda session: session.get(path))).value
            return node.stat.version if read_state(*change.replica.partition, node.data) == state else None
        except (NoNode, KafkaException):
            return None

    async def _report_changes(self) -> None:
        while True:
            await self._tasks.sleep(CHECK_MS * 1000)
            now_us = self._tasks.now_us()
            quiet, late = now_us - self._changed_us > QUIET_MS * 1000, now_us - self._reported_us > LONGEST_MS * 1000
            if self._unreported and (quiet or late) and await self._report(sorted(self._unreported)):
                self._reported_us = now_us

    async def _report(self, partitions: Sequence[TopicPartition]) -> bool:
        """False: the session has ended; the next one is to do it."""
        payload, path = isr_change_payload(partitions), f"{ISR_CHANGES}/isr_change_"
        try:
            await self._client().ask(lambda session: session.create(path, payload, sequence=True))
        except (SessionExpired, SessionClosed):
            return False
        self._unreported.difference_update(partitions)
        return True
