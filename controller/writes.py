"""What a reign writes to ZooKeeper: states and assignments, and the end of what was asked for.

From the form of 2.1 on every write here is fenced by the controller epoch (claim E3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from controller.cluster import Stored
from controller.election import ControllerMoved, Elected
from controller.leader_election import LeaderAndIsr
from controller.stimuli import AssignmentsWritten, WriteAssignments
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.cluster import (
    LeaderIsrAndControllerEpoch,
    assignment_payload,
    read_assignment,
    reassignment_payload,
    state_payload,
)
from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.paths import (
    CONTROLLER_EPOCH,
    DELETE_TOPICS,
    REASSIGNMENT,
    partition_state_path,
    topic_config_path,
    topic_path,
)
from rebalance_lab.world.errors import BadVersion, NodeExists, NoNode
from rebalance_lab.world.ports import Create, Delete, Set, Stat, WriteOperation, WriteResult
from rebalance_lab.zkclient.pipelined import Answer, PipelinedClient

#: The replicas that a request to reassign partitions asks for.
Targets = Mapping[TopicPartition, tuple[int, ...]]

#: States in one multi. Kafka writes one state in a multi: 10,000 of them take several times as long.
WRITTEN_TOGETHER = 500


class Writes:
    """The writes of one reign. Each raises ControllerMoved if another controller has been elected since, unless the
    reign has no fence. `keeps_additions`: a topic keeps partitions that others have added since the controller has read
    it."""

    def __init__(self, client: PipelinedClient, elected: Elected, *, keeps_additions: bool = False) -> None:
        self._keeps_additions = keeps_additions
        self._client = client
        self._elected = elected

    async def write(
        self, states: Mapping[TopicPartition, tuple[LeaderAndIsr, int | None]]
    ) -> tuple[dict[TopicPartition, Stored], list[TopicPartition]]:
        """Write states. Returns those that are written, and the partitions where another had written, or whose topic is
        gone."""
        await self._create_parents([each for each, (_, version) in states.items() if version is None])
        operations = [self._operation(each, *state) for each, state in states.items()]
        answers = await self._fenced(operations, together=WRITTEN_TOGETHER)
        written: dict[TopicPartition, Stored] = {}
        refused: list[TopicPartition] = []
        for (partition, (state, _)), answer in zip(states.items(), answers, strict=True):
            if answer.error is None:
                result = answer.reply.value
                version = result.version if isinstance(result, Stat) else 0
                written[partition] = Stored(state, self._elected.epoch, version)
            elif isinstance(answer.error, NodeExists | BadVersion | NoNode):
                refused.append(partition)
            else:
                raise answer.error
        return written, refused

    def _operation(self, partition: TopicPartition, state: LeaderAndIsr, version: int | None) -> WriteOperation:
        path = partition_state_path(*partition)
        payload = state_payload(
            LeaderIsrAndControllerEpoch(
                controller_epoch=self._elected.epoch - self._elected.epochs_late,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=state.isr,
                leader_recovery_state=int(state.recovering),
            )
        )
        return Create(path, payload) if version is None else Set(path, payload, version)

    async def _create_parents(self, partitions: Sequence[TopicPartition]) -> None:
        """`…/partitions` and `…/partitions/<partition>`. What is there stays; if the topic is gone, so be it: the state
        cannot be written then."""
        folders = dict.fromkeys(f"{topic_path(topic)}/partitions" for topic, _ in partitions)
        below = [Create(f"{topic_path(topic)}/partitions/{each}", b"") for topic, each in partitions]
        await self._fenced([Create(each, b"") for each in folders], together=WRITTEN_TOGETHER)
        await self._fenced(below, together=WRITTEN_TOGETHER)

    async def write_assignments(self, wanted: WriteAssignments) -> AssignmentsWritten:
        """As in the original without a condition: partitions that were added since the topic was read are lost, unless
        `keeps_additions` is set."""
        topic, path = wanted.after, topic_path(wanted.topic)
        while True:
            keeps = self._keeps_additions and wanted.changed
            added, version = await self._added(wanted) if keeps else ({}, -1)
            payload = assignment_payload(
                {**added, **topic.replicas},
                topic.topic_id if any(topic.topic_id) else None,
                adding=topic.adding,
                removing=topic.removing,
            )
            (answer,) = await self._fenced([Set(path, payload, version)])
            if not isinstance(answer.error, BadVersion):
                break
        if answer.error is not None and not isinstance(answer.error, NoNode):
            raise answer.error
        return AssignmentsWritten(wanted.topic, wanted.changed, written=answer.error is None)

    async def _added(self, wanted: WriteAssignments) -> tuple[dict[int, tuple[int, ...]], int]:
        """The partitions in the topic's znode that the controller does not know, and the version of the znode. There
        are none if it is gone or cannot be read."""
        try:
            node = (await self._client.ask(lambda session: session.get(topic_path(wanted.topic)))).value
        except NoNode:
            return {}, -1
        try:
            there = read_assignment(wanted.topic, node.data).replicas
        except KafkaException:
            return {}, node.stat.version
        return {each: its for each, its in there.items() if each not in wanted.after.replicas}, node.stat.version

    async def trim(self, left: Targets, version: int = -1) -> bool:
        """Write what is left of a request to reassign partitions, and delete it if nothing is. Returns False if the
        znode has another version than this; with -1 what was written over it since it was read is overwritten, as in
        the original."""
        if not left:
            return await self.delete(REASSIGNMENT, version)
        (answer,) = await self._fenced([Set(REASSIGNMENT, reassignment_payload(left.items()), version)])
        if answer.error is not None and not isinstance(answer.error, BadVersion | NoNode):
            raise answer.error
        return not isinstance(answer.error, BadVersion)

    async def drop_reports(self, reports: Sequence[str]) -> None:
        """Delete these reports of brokers, by their paths."""
        await self._fenced([Delete(each) for each in reports])

    async def remove(self, topic: str) -> None:
        """The topic's znodes, its configuration, then the request to delete it, so that a successor finds it until all
        is done."""
        await self.delete(topic_path(topic))
        await self.delete(topic_config_path(topic))
        await self.delete(f"{DELETE_TOPICS}/{topic}")

    async def delete(self, path: str, version: int = -1) -> bool:
        """A znode and all below it. What is gone already is fine. Returns False if it has another version than this."""
        try:
            children = (await self._client.ask(lambda session: session.children(path))).value.names
        except NoNode:
            return True
        for each in children:
            await self.delete(f"{path}/{each}")
        (answer,) = await self._fenced([Delete(path, version)])
        if answer.error is not None and not isinstance(answer.error, BadVersion | NoNode):
            raise answer.error
        return not isinstance(answer.error, BadVersion)

    async def _fenced(self, operations: Sequence[WriteOperation], *, together: int = 1) -> list[Answer[WriteResult]]:
        """Raises ControllerMoved if another controller has been elected since, unless the reign has no fence."""
        fence = self._elected.fence
        if fence is None:
            return await self._client.unfenced(operations)
        try:
            return await self._client.fenced(fence, operations, together=together)
        except (BadVersion, NoNode) as error:
            if error.path != CONTROLLER_EPOCH:
                raise
            raise ControllerMoved(f"another controller was elected after epoch {self._elected.epoch}") from None
