"""Elections under way: a rule chooses a leader, the state is written, and the replicas are told
(`PartitionStateMachine.doElectLeaderForPartitions`, Kafka 3.9.1)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from controller.cluster import Cluster, Stored
from controller.leader_election import (
    Election,
    LeaderAndIsr,
    NoLeader,
    Selection,
    controlled_shutdown,
    first_leader,
    offline,
    preferred,
    reassigned,
)
from controller.request_batch import RequestBatch
from controller.states import PartitionState
from controller.stimuli import Instruction, Log, ReadUnclean, StatesWritten, WriteStates
from rebalance_lab.assignors import TopicPartition


class Strategy(Enum):
    """Why a leader is elected.

    - OFFLINE: the partition has none.
    - SHUTDOWN: its leader has asked to shut down.
    - PREFERRED: the first of its assignment is to lead.
    - UNCLEAN: the partition has none, and a person allows one from outside the ISR.
    - REASSIGNMENT: its leader is not among its new replicas, or is gone.
    """

    OFFLINE = "offline"
    SHUTDOWN = "controlled shutdown"
    PREFERRED = "preferred"
    UNCLEAN = "unclean"
    REASSIGNMENT = "reassignment"


@dataclass(frozen=True, slots=True)
class _UnderWay:
    election: Election
    strategy: Strategy


class Elections:
    """`epoch`: the controller's. `batch()`: an empty batch of requests. `selection`: the release whose rules choose
    leaders. `batch_again`: if one state of several was refused, because another had written it, leaders are elected
    again for all of them, as in 1.1 to 2.3; otherwise only where it was refused."""

    def __init__(
        self,
        cluster: Cluster,
        epoch: int,
        batch: Callable[[], RequestBatch],
        selection: Selection = Selection.V2_1,
        *,
        batch_again: bool = False,
    ) -> None:
        self._cluster = cluster
        self._batch_again = batch_again
        self._selection = selection
        self._epoch = epoch
        self._batch = batch
        self._under_way: dict[TopicPartition, _UnderWay] = {}

    def __contains__(self, partition: object) -> bool:
        """Whether its leadership is being written."""
        return partition in self._under_way

    @property
    def change_known_states(self) -> bool:
        """Whether states that exist already are being written."""
        return any(each in self._cluster.stored for each in self._under_way)

    def forget(self, topic: str) -> None:
        self._under_way = {each: found for each, found in self._under_way.items() if each.topic != topic}

    def waiting(self) -> list[TopicPartition]:
        """Partitions without a leader that nobody is elected for now."""
        waiting = self._cluster.in_state(PartitionState.NEW, PartitionState.OFFLINE)
        return [each for each in waiting if each not in self._under_way]

    def elect(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        strategy: Strategy = Strategy.OFFLINE,
        *,
        unclean: Collection[str] | None = None,
    ) -> list[Instruction]:
        """Elect leaders for partitions; by default for all that have none and are not being deleted.

        `unclean`: topics whose settings allow unclean elections; None if they have not been read. They are read only if
        nothing else helps.
        """
        states: dict[TopicPartition, tuple[LeaderAndIsr, int | None]] = {}
        out: list[Instruction] = []
        unread: list[TopicPartition] = []
        for each in sorted(self.waiting() if partitions is None else partitions):
            if each in self._under_way or self._cluster.is_dying(each):
                continue
            try:
                election = self._election(each, strategy, unclean_allowed=each.topic in (unclean or ()))
            except NoLeader as why:
                if strategy is Strategy.OFFLINE and unclean is None and self._could_be_unclean(each):
                    unread.append(each)
                else:
                    out.append(Log(self._not_elected(each, strategy, why)))
                continue
            self._under_way[each] = _UnderWay(election, strategy)
            stored = self._cluster.stored.get(each)
            states[each] = (election.leader_and_isr, None if stored is None else stored.version)
        if states:
            out.append(WriteStates(states))
        return [*out, ReadUnclean(unread)] if unread else out

    def _could_be_unclean(self, partition: TopicPartition) -> bool:
        return partition in self._cluster.stored and bool(self._cluster.may_lead(partition))

    def obstacle(self, partition: TopicPartition, strategy: Strategy) -> str | None:
        """Why nobody can be elected; None if somebody can."""
        try:
            self._election(partition, strategy)
        except NoLeader as why:
            return self._not_elected(partition, strategy, why)
        return None

    def _election(self, partition: TopicPartition, strategy: Strategy, *, unclean_allowed: bool = False) -> Election:
        """Raises NoLeader."""
        cluster = self._cluster
        replicas, stored, live = cluster.replicas(partition), cluster.stored.get(partition), cluster.may_lead(partition)
        if stored is None:
            return first_leader(replicas, live)
        current = stored.leader_and_isr
        match strategy:
            case Strategy.OFFLINE:
                return offline(replicas, current, live, unclean_allowed=unclean_allowed, selection=self._selection)
            case Strategy.SHUTDOWN:
                return controlled_shutdown(replicas, current, live, cluster.shutting_down, selection=self._selection)
            case Strategy.PREFERRED:
                return preferred(replicas, current, live)
            case Strategy.UNCLEAN:
                return offline(replicas, current, live, unclean_allowed=True, selection=self._selection)
            case Strategy.REASSIGNMENT:
                return reassigned(replicas, current, live)

    def _not_elected(self, partition: TopicPartition, strategy: Strategy, why: NoLeader) -> str:
        name = f"partition {partition.topic}-{partition.partition}"
        stored = self._cluster.stored.get(partition)
        if strategy in (Strategy.OFFLINE, Strategy.UNCLEAN) or stored is None:
            return f"{name} has no leader: {why}"
        return f"{name} keeps its leader {stored.leader_and_isr.leader}: {why}"

    def written(self, result: StatesWritten) -> list[Instruction]:
        """Tell the replicas what was written, and elect anew where another had written in between.

        A state of this controller's epoch that was to be created is our own: the reply to its creation was lost.
        """
        written = {each: stored for each, stored in result.written.items() if each in self._under_way}
        again: dict[Strategy, list[TopicPartition]] = {}
        out: list[Instruction] = []
        for partition, found in result.conflicts.items():
            if partition not in self._under_way:
                continue  # its topic has gone meanwhile
            is_new = self._cluster.states[partition] is PartitionState.NEW
            if found is not None and is_new and found.controller_epoch == self._epoch:
                written[partition] = found
            elif found is None or is_new or found.controller_epoch > self._epoch:
                del self._under_way[partition]
                out.append(Log(_not_written(partition, found)))
            else:
                self._cluster.store(partition, found)
                again.setdefault(self._under_way.pop(partition).strategy, []).append(partition)
        if again and self._batch_again:
            written = self._elect_anew(written, again)
        out = self._elected(written) + out
        for strategy, partitions in again.items():
            out += self.elect(partitions, strategy)
        return out

    def _elect_anew(
        self, written: Mapping[TopicPartition, Stored], again: dict[Strategy, list[TopicPartition]]
    ) -> dict[TopicPartition, Stored]:
        """Elect those again that were written, too. No broker is told of their first election. Returns the others:
        first leaders of new partitions, which Kafka writes apart."""
        new = {}
        for partition, stored in written.items():
            if self._cluster.states[partition] is PartitionState.NEW:
                new[partition] = stored
                continue
            self._cluster.store(partition, stored)
            self._cluster.change([partition], PartitionState.ONLINE)
            again.setdefault(self._under_way.pop(partition).strategy, []).append(partition)
        return new

    def _elected(self, written: Mapping[TopicPartition, Stored]) -> list[Instruction]:
        batch = self._batch()
        for partition, stored in written.items():
            election = self._under_way.pop(partition).election
            is_new = self._cluster.states[partition] is PartitionState.NEW
            self._cluster.store(partition, stored)
            self._cluster.change([partition], PartitionState.ONLINE)
            batch.lead_or_follow(self._receivers(partition, election), partition, is_new=is_new)
        return list(batch.requests())

    def _receivers(self, partition: TopicPartition, election: Election) -> list[int]:
        """Those that the rule names, and all that may lead by now."""
        named = {*election.receivers, *self._cluster.may_lead(partition)}
        return [each for each in self._cluster.replicas(partition) if each in named]


def _not_written(partition: TopicPartition, found: Stored | None) -> str:
    name = f"partition {partition.topic}-{partition.partition}"
    if found is None:
        return f"{name} has no leader: its state could not be written"
    return f"{name} has no leader from us: a controller of epoch {found.controller_epoch} has written its state"
