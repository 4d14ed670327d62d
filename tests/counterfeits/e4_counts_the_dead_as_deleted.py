"""E4: a successor that does not wait for a dead broker when it deletes a topic."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.deletions import Deletions
from controller.states import ReplicaState
from controller.stimuli import Instruction
from rebalance_lab.history.files import History

#: The controller dies before it has asked anybody to delete a replica, its own one included.
DELETION = {"duty": "delete-topic", "kill_at": "5"}

_go_on = Deletions._go_on


def without_the_dead(self: Deletions, topic: str) -> list[Instruction]:
    cluster = self._cluster
    for partition, broker in cluster.replicas_in(cluster.partitions(topic), ReplicaState.DELETION_INELIGIBLE):
        if broker not in cluster.brokers:
            states = cluster.replica_states[partition]
            cluster.replica_states[partition] = {**states, broker: ReplicaState.DELETION_SUCCESSFUL}
    return _go_on(self, topic)


def honest(seed: int) -> History:
    return trial("duties", seed, settings=DELETION)


def false(seed: int) -> History:
    with patch.object(Deletions, "_go_on", without_the_dead):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E4",
    check="duty_target",
    world="The topic is gone from ZooKeeper and from all metadata, but nobody has waited for the broker that was dead: "
    "it comes back with its log of the topic, which nothing will ever delete.",
    false=false,
    honest=honest,
)
