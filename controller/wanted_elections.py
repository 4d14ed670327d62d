"""Elections of partitions that may have a leader already: of preferred leaders, and unclean ones that a person asks for
(`KafkaController.processReplicaLeaderElection`, `checkAndTriggerAutoLeaderRebalance`, Kafka 3.9.1).

The *preferred* leader is the first of the assignment. It is elected if it is live and in sync, and nothing else is:
where it is not, the leader stays. Three want it: a tool, by the znode `/admin/preferred_replica_election`, which is
deleted after the attempt whatever came of it; a client, by an ElectLeaders request (KIP-183; KIP-460 for unclean ones);
and the controller, where too many of the partitions that a broker should lead are led by others.
"""

from __future__ import annotations

from collections.abc import Collection

from controller.cluster import Cluster
from controller.elections import Elections, Strategy
from controller.leader_election import imbalanced
from controller.refusals import NotElected
from controller.stimuli import (
    AnswerElection,
    DropPreferred,
    ElectionAsked,
    ElectionsEnded,
    HandBack,
    ImbalanceDue,
    Instruction,
    Log,
    PreferredRead,
)
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.kafka.error_codes import ErrorCode

#: strategy -> why nobody was elected by it.
_UNAVAILABLE = {
    Strategy.PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    Strategy.UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}


class WantedElections:
    """`percentage`: of the partitions that a broker should lead, so many may be led by others
    (leader.imbalance.per.broker.percentage)."""

    def __init__(self, cluster: Cluster, elections: Elections, *, percentage: int) -> None:
        self._cluster = cluster
        self._elections = elections
        self._percentage = percentage

    def begin(self, wanted: ElectionAsked | PreferredRead) -> list[Instruction]:
        """Elect where it is possible. The rest is done when the leaders are written."""
        strategy = _strategy(wanted)
        refused, electable = {}, []
        for each in sorted(set(wanted.partitions)):
            why = self._refusal(each, strategy)
            if why is None:
                electable.append(each)
            else:
                refused[each] = why
        return [
            *self._elections.elect(electable, strategy),
            HandBack(ElectionsEnded(wanted, tuple(electable), refused)),
        ]

    def _refusal(self, partition: TopicPartition, strategy: Strategy) -> NotElected | None:
        cluster = self._cluster
        name = f"partition {partition.topic}-{partition.partition}"
        if partition not in cluster.states:
            return NotElected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} does not exist")
        if partition.topic in cluster.deleting:
            return NotElected(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is being deleted")
        if self._leader(partition, strategy) is not None:
            return NotElected(ErrorCode.ELECTION_NOT_NEEDED, None)
        why = self._elections.obstacle(partition, strategy)
        return None if why is None else NotElected(_UNAVAILABLE[strategy], why)

    def _leader(self, partition: TopicPartition, strategy: Strategy) -> int | None:
        """The leader, if it is one that the strategy would leave in its place; None otherwise."""
        stored = self._cluster.stored.get(partition)
        if stored is None:
            return None
        leader = stored.leader_and_isr.leader
        if strategy is Strategy.PREFERRED:
            return leader if leader == self._cluster.replicas(partition)[0] else None
        return leader if leader in self._cluster.live else None

    def ended(self, done: ElectionsEnded) -> list[Instruction]:
        """Answer the client; or say what has failed, and delete the znode."""
        if any(each in self._elections for each in done.partitions):
            return [HandBack(done)]
        strategy = _strategy(done.wanted)
        results: dict[TopicPartition, int | NotElected] = dict(done.refused)
        for each in done.partitions:
            leader = self._leader(each, strategy)
            name = f"partition {each.topic}-{each.partition}"
            why = f"{name} keeps its leadership: another controller or a deletion of its topic was faster"
            results[each] = NotElected(_UNAVAILABLE[strategy], why) if leader is None else leader
        if isinstance(done.wanted, ElectionAsked):
            return [AnswerElection(done.wanted, results)]
        failed = [each for _, each in sorted(results.items()) if isinstance(each, NotElected)]
        return [*(Log(each.message) for each in failed if each.message is not None), DropPreferred()]

    def balance(self, due: ImbalanceDue) -> list[Instruction]:
        """Elect preferred leaders where a broker leads too little of what it should lead."""
        cluster = self._cluster
        led = {each: stored.leader_and_isr.leader for each, stored in cluster.stored.items()}
        kept = sorted(each for each in led if each.topic not in cluster.deleting)
        found = imbalanced({each: (cluster.replicas(each)[0], led[each]) for each in kept}, self._percentage)
        return self._elections.elect(self._electable(found), Strategy.PREFERRED)

    def _electable(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        return [each for each in partitions if self._elections.obstacle(each, Strategy.PREFERRED) is None]


def _strategy(wanted: ElectionAsked | PreferredRead) -> Strategy:
    return Strategy.UNCLEAN if isinstance(wanted, ElectionAsked) and wanted.unclean else Strategy.PREFERRED
