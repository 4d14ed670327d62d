"""The forms of the controller, by the release that brought each.

| | `0.8.2` | `1.1` | `2.1` |
| --- | --- | --- | --- |
| requests to ZooKeeper at once | one | ten | ten |
| election | creates `/controller`, then raises the epoch | the same | both in one transaction |
| epoch raised by another | keeps the old one (up to 1.0) | deletes `/controller`, whose it may be | not elected |
| its writes | without a condition on the epoch | the same | each but `/feature` with a check of `/controller_epoch` |
| finds that it has a successor | goes on all the same | resigns | resigns |
| its session expires | the event under way ends in the next session | the event ends at its next request | the same |
| gives up | deletes `/controller`, whose it may be | the same | only if it is still the controller |
| reads of state znodes | one request each | the same | multi-reads (the lab's own; Kafka: one request each) |
| failed log folders, reported in ZooKeeper | nothing | asks which replicas are lost | the same |
| `/feature` | is not there | the same | is read, and written if need be (from 2.7 on) |
| topic of which a state has been deleted | is never deleted | the same | is deleted (from 2.0 on) |
| topic of which only settings are left, at failover | they stay, and the request | its deletion is ended | the same |
| topic that grows while it is deleted | its znode stays so | the same | is written back (from 2.0 on) |
| replicas in one StopReplica request | one | one; the first request names none | all (from 2.3 on) |
| request to reassign, written over another | is taken up | is not seen | the same |
| what stays of it if a part is done | the rest of what was read | the rest of what is known | as 0.8.2 (from 2.4 on) |

Read in `kafka.controller.KafkaController` and `kafka.server.ZookeeperLeaderElector` (0.8.2.2), in `KafkaController` and
`kafka.zk.KafkaZkClient` (1.1.1, 3.9.1), in `ReplicaStateMachine` (0.8.2.2, 1.1.1, 2.0.0), in `ControllerChannelManager`
(0.8.2.2, 1.1.1, 2.2.2, 2.3.1) and in `org.I0Itec.zkclient.ZkClient` (0.3). What they decide is otherwise the same here:
`controller.machine`, as in 3.9.1.
"""

from __future__ import annotations

from enum import StrEnum


class ControllerForm(StrEnum):
    """How a controller is elected and writes, by the release that brought the form."""

    V0_8_2 = "0.8.2"
    V1_1 = "1.1"
    V2_1 = "2.1"

    @property
    def in_flight(self) -> int:
        """How many requests to ZooKeeper are under way at once."""
        return 1 if self is ControllerForm.V0_8_2 else 10

    @property
    def resigns_to_a_successor(self) -> bool:
        """Whether a controller resigns that finds another one's `/controller`. One of 0.8.2 only takes note of it
        (`ZookeeperLeaderElector.LeaderChangeListener`); cured in 0.9.0."""
        return self is not ControllerForm.V0_8_2

    @property
    def outlives_sessions(self) -> bool:
        """Whether what is under way goes on in the next session when its own expires, as through ZkClient."""
        return self is ControllerForm.V0_8_2

    @property
    def in_one_transaction(self) -> bool:
        """Whether `/controller` and the epoch are written in one transaction, and other writes check the epoch."""
        return self is ControllerForm.V2_1

    @property
    def looks_before_loading(self) -> bool:
        """Whether a controller asks if it still is one before it loads the cluster. Up to 2.0 it handles the loss of
        `/controller` after that."""
        return self is ControllerForm.V2_1

    @property
    def reads_together(self) -> bool:
        """Whether state znodes are read by multi-reads, which no release of Kafka does."""
        return self is ControllerForm.V2_1

    @property
    def hears_of_failed_disks(self) -> bool:
        """Whether brokers report failed log folders, as from 1.0 on (KIP-112)."""
        return self is not ControllerForm.V0_8_2

    @property
    def has_features(self) -> bool:
        """Whether there is `/feature`, as from 2.7 on (KIP-584)."""
        return self is ControllerForm.V2_1

    @property
    def deletes_stateless(self) -> bool:
        """Whether the replicas of a partition without a state can be deleted, as from 2.0 on (KAFKA-6650)."""
        return self is ControllerForm.V2_1

    @property
    def ends_deletions_without_topic(self) -> bool:
        """Whether a new controller ends a deletion whose topic has no znode any more. One of 0.8.2 looks for a listener
        that it has never set (`PartitionStateMachine.deregisterPartitionChangeListener`), and its thread for deletions
        ends; here it only lets the request be."""
        return self is not ControllerForm.V0_8_2

    @property
    def undoes_growth_in_deletion(self) -> bool:
        """Whether partitions that are added to a topic that is being deleted are taken out of its znode, as from 2.0 on
        (KAFKA-6612). Otherwise the next controller finds them, without a state."""
        return self is ControllerForm.V2_1

    @property
    def groups_stops(self) -> bool:
        """Whether one StopReplica request names all replicas that a broker stops, as from 2.3 on (KAFKA-8294)."""
        return self is ControllerForm.V2_1

    @property
    def stops_nothing_first(self) -> bool:
        """Whether a StopReplica request goes first that names no replica. From 1.1 to 2.2 it is meant for all that need
        no answer, but all ask for one (`ControllerBrokerRequestBatch.sendRequestsToBrokers`)."""
        return self is ControllerForm.V1_1

    @property
    def sees_rewritten_requests(self) -> bool:
        """Whether a controller is told of a request to reassign that is written over another, as up to 1.0
        (`PartitionsReassignedListener`). It leaves alone what is being reassigned already."""
        return self is ControllerForm.V0_8_2

    @property
    def trims_what_it_knows(self) -> bool:
        """Whether a controller writes what it knows of a request to reassign when a part is done, as from 1.1 to 2.3,
        and not what it has read just before."""
        return self is ControllerForm.V1_1
