"""Brokers that ask to shut down (`KafkaController.doControlledShutdown`, Kafka 3.9.1).

What they lead moves to others, and their other replicas stop and leave the ISR, before they go. Who shuts down is not
stored anywhere: a controller that is elected meanwhile does not know of it, and is asked again.
"""

from __future__ import annotations

from collections.abc import Callable

from controller.cluster import Cluster, Replica
from controller.elections import Elections, Strategy
from controller.isr_removals import IsrRemovals
from controller.request_batch import RequestBatch
from controller.states import ReplicaState
from controller.stimuli import AnswerShutdown, HandBack, Instruction, ReplicasStopped, ShutdownAsked
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.sentinels import NO_BROKER_EPOCH


class Shutdowns:
    """`batch()`: an empty batch of requests."""

    def __init__(
        self, cluster: Cluster, elections: Elections, removals: IsrRemovals, batch: Callable[[], RequestBatch]
    ) -> None:
        self._cluster = cluster
        self._elections = elections
        self._removals = removals
        self._batch = batch

    def begin(self, asked: ShutdownAsked) -> list[Instruction]:
        """Elect other leaders, and stop the replicas that follow. The rest is done when the leaders are written."""
        broker = self._cluster.brokers.get(asked.broker_id)
        if broker is None:
            return [AnswerShutdown(asked, ErrorCode.BROKER_NOT_AVAILABLE)]
        if NO_BROKER_EPOCH < asked.broker_epoch < broker.epoch:
            return [AnswerShutdown(asked, ErrorCode.STALE_BROKER_EPOCH)]
        self._cluster.shutting_down.add(asked.broker_id)
        concerned = self._replicated_on(asked.broker_id)
        led = [each for each in concerned if self._leader(each) == asked.broker_id]
        batch = self._batch()
        for each in concerned:
            if each not in led:
                batch.stop([asked.broker_id], each, delete=False)
        return [
            *self._elections.elect(led, Strategy.SHUTDOWN),
            *batch.requests(),
            HandBack(ReplicasStopped(asked, tuple(each for each in concerned if each not in led))),
        ]

    def stopped(self, done: ReplicasStopped) -> list[Instruction]:
        """Take the replicas that followed out of the ISRs, then answer which partitions the broker still leads."""
        asked = done.asked
        if self._elections.change_known_states or not self._removals.idle:
            return [HandBack(done)]  # these change the same states
        concerned = self._replicated_on(asked.broker_id)
        if done.followed is not None:
            stopped = [Replica(each, asked.broker_id) for each in done.followed if each in concerned]
            self._cluster.change_replicas(stopped, ReplicaState.OFFLINE)
            return [*self._removals.begin(concerned), HandBack(ReplicasStopped(asked, None))]
        remaining = tuple(each for each in concerned if self._leader(each) == asked.broker_id)
        return [AnswerShutdown(asked, ErrorCode.NONE, remaining)]

    def _replicated_on(self, broker_id: int) -> list[TopicPartition]:
        """Partitions with a leadership that have a replica there and another one elsewhere."""
        cluster = self._cluster
        return [
            each
            for each in sorted(cluster.stored)
            if not cluster.is_dying(each) and broker_id in cluster.replicas(each) and len(cluster.replicas(each)) > 1
        ]

    def _leader(self, partition: TopicPartition) -> int:
        return self._cluster.stored[partition].leader_and_isr.leader
