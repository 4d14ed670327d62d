"""What a controller's machine is told (stimuli), and what it has done for it (instructions)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from controller.cluster import Assignment, LiveBroker, Stored, Topic
from controller.leader_election import LeaderAndIsr
from controller.refusals import NotElected, Rejected
from controller.request_batch import Send
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.kafka.error_codes import ErrorCode

# -- stimuli --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Loaded:
    """The cluster as a controller finds it after its election. `deletions`: topics that are to be deleted. `wanted`:
    the replicas that `/admin/reassign_partitions` asks for."""

    brokers: Sequence[LiveBroker]
    topics: Mapping[str, Topic]
    stored: Mapping[TopicPartition, Stored]
    deletions: Collection[str] = ()
    wanted: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BrokersRead:
    """All brokers that are registered now."""

    brokers: Sequence[LiveBroker]


@dataclass(frozen=True, slots=True)
class TopicsRead:
    """All topics that exist now, with their assignments."""

    topics: Mapping[str, Topic]


@dataclass(frozen=True, slots=True)
class DeletionsRead:
    """All topics that are to be deleted."""

    topics: Collection[str]


class Purpose(Enum):
    """Why the leadership of partitions is written.

    - ELECTION: a leader was elected.
    - OFFLINE: replicas on dead brokers and failed disks, and on brokers that shut down, leave the ISR.
    - ISR: the leader has asked for another ISR.
    - REASSIGNMENT: the replicas have changed, so that they get a new leader epoch.
    - REMOVAL: replicas that are removed from the assignment leave the ISR.
    """

    ELECTION = "election"
    OFFLINE = "offline"
    ISR = "isr"
    REASSIGNMENT = "reassignment"
    REMOVAL = "removal"


@dataclass(frozen=True, slots=True)
class StatesWritten:
    """What came of WriteStates. `of`: its purpose. `conflicts`: what was found instead, where another had written; None
    if there is no state znode any more, or it could not be written."""

    written: Mapping[TopicPartition, Stored]
    conflicts: Mapping[TopicPartition, Stored | None] = field(default_factory=dict)
    of: Purpose = Purpose.ELECTION


@dataclass(frozen=True, slots=True)
class ReplicasDeleted:
    """A broker's answer to a StopReplica request that deletes. `failed`: replicas that are still there."""

    broker_id: int
    partitions: Collection[TopicPartition]
    failed: Collection[TopicPartition] = ()


@dataclass(frozen=True, slots=True)
class TopicRemoved:
    """The znodes of a deleted topic are gone."""

    topic: str


@dataclass(frozen=True, slots=True)
class LeadershipAnswered:
    """A broker's answer to a LeaderAndIsr request. `taken`: partitions that it leads or follows as it was told.
    `errors`: those that it does not, and why."""

    broker_id: int
    taken: Collection[TopicPartition]
    errors: Mapping[TopicPartition, ErrorCode] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplicasOffline:
    """Replicas on dead brokers and failed disks leave the ISRs. The machine hands it back to itself, because leaders
    are elected first. `came`: brokers that registered at the same look; they are handled after it."""

    came: Sequence[LiveBroker] = ()


@dataclass(frozen=True, slots=True)
class BrokersCame:
    """These brokers have registered. The machine hands it back to itself after it has handled the dead."""

    brokers: Sequence[LiveBroker]


@dataclass(frozen=True, slots=True)
class IsrWanted:
    """A leader wants another ISR. `partition_epoch`: the version of the state znode that it knows."""

    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int


@dataclass(frozen=True, slots=True)
class IsrAsked:
    """An AlterPartition request. `answer` takes what came of it, once: an error of the request, or of each partition
    its state or an error."""

    broker_id: int
    broker_epoch: int
    wanted: Mapping[TopicPartition, IsrWanted]
    answer: Callable[[ErrorCode, Mapping[TopicPartition, Stored | ErrorCode]], None]


@dataclass(frozen=True, slots=True)
class IsrsReported:
    """Leaders have written these states themselves, as up to Kafka 2.6. `reports`: the znodes that say so."""

    states: Mapping[TopicPartition, Stored]
    reports: Sequence[str]


@dataclass(frozen=True, slots=True)
class LogDirsFailed:
    """These brokers report that a log folder has failed (KIP-112). `reports`: the znodes that say so."""

    brokers: Collection[int]
    reports: Sequence[str]


@dataclass(frozen=True, slots=True)
class ShutdownAsked:
    """A ControlledShutdown request. `broker_epoch`: -1 if the broker does not know it. `answer` takes what came of it,
    once: an error, or the partitions that the broker still leads."""

    broker_id: int
    broker_epoch: int
    answer: Callable[[ErrorCode, Sequence[TopicPartition]], None]


@dataclass(frozen=True, slots=True)
class ReplicasStopped:
    """A broker that shuts down has been told to stop its replicas. The machine hands it back to itself, because other
    leaders are written first. `followed`: those that it did not lead; None once the ISRs without it are being
    written."""

    asked: ShutdownAsked
    followed: tuple[TopicPartition, ...] | None


@dataclass(frozen=True, slots=True)
class ElectionAsked:
    """An ElectLeaders request: for preferred leaders, or `unclean` for any live replica where no leader is left.
    `answer` takes what came of each partition, once: its leader, or why it is not elected."""

    partitions: Collection[TopicPartition]
    unclean: bool
    answer: Callable[[Mapping[TopicPartition, int | NotElected]], None]


@dataclass(frozen=True, slots=True)
class PreferredRead:
    """`/admin/preferred_replica_election` is there, and asks for preferred leaders of these partitions."""

    partitions: Collection[TopicPartition]


@dataclass(frozen=True, slots=True)
class ImbalanceDue:
    """It is time to look whether brokers lead what they should lead."""


@dataclass(frozen=True, slots=True)
class ElectionsEnded:
    """The leaders that were wanted are written. The machine hands it back to itself. `partitions`: for which leaders
    were elected; `refused`: the others."""

    wanted: ElectionAsked | PreferredRead
    partitions: tuple[TopicPartition, ...]
    refused: Mapping[TopicPartition, NotElected]


@dataclass(frozen=True, slots=True)
class ReassignmentAsked:
    """An AlterPartitionReassignments request. `targets`: the replicas that partitions are to have; None: those that
    they had before the reassignment that is under way. `answer` takes what came of each partition, once: None if its
    reassignment has begun."""

    targets: Mapping[TopicPartition, tuple[int, ...] | None]
    answer: Callable[[Mapping[TopicPartition, Rejected | None]], None]


@dataclass(frozen=True, slots=True)
class ReassignmentRead:
    """`/admin/reassign_partitions` has been created. `targets`: the replicas that it asks for."""

    targets: Mapping[TopicPartition, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class ReassignmentsListed:
    """A ListPartitionReassignments request. `partitions`: None for all. `answer` takes the assignments of those that
    are being reassigned, once."""

    partitions: Collection[TopicPartition] | None
    answer: Callable[[Mapping[TopicPartition, Assignment]], None]


@dataclass(frozen=True, slots=True)
class AssignmentsWritten:
    """What came of WriteAssignments. `written`: False if the topic is gone."""

    topic: str
    changed: Mapping[int, Assignment]
    written: bool = True


@dataclass(frozen=True, slots=True)
class StatesRead:
    """What came of ReadStates, or a change of one that is watched. Partitions without a state are left out."""

    partitions: Sequence[TopicPartition]
    states: Mapping[TopicPartition, Stored]


@dataclass(frozen=True, slots=True)
class ReassignmentsBegun:
    """The assignments that were asked for are written. The machine hands it back to itself. `rejected`: the others."""

    asked: ReassignmentAsked | ReassignmentRead
    rejected: Mapping[TopicPartition, Rejected]


@dataclass(frozen=True, slots=True)
class ReassignmentsGoOn:
    """The states of these partitions are being written for a step of their reassignment. The machine hands it back to
    itself until they are."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class MetadataDue:
    """A new controller has begun, and tells the brokers only now who is live (`ControllerSettings`). The machine hands
    it back to itself."""


@dataclass(frozen=True, slots=True)
class ReassignmentsResumed:
    """Go on with what was being reassigned when this controller was elected. The machine hands it back to itself."""


@dataclass(frozen=True, slots=True)
class UncleanRead:
    """What came of ReadUnclean. `allowed`: topics whose settings allow unclean elections."""

    partitions: Sequence[TopicPartition]
    allowed: Collection[str]
    of: Purpose = Purpose.ELECTION


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """The settings of these topics have changed."""

    topics: Collection[str]


Stimulus = (
    Loaded
    | MetadataDue
    | BrokersRead
    | TopicsRead
    | DeletionsRead
    | StatesWritten
    | ReplicasDeleted
    | TopicRemoved
    | LeadershipAnswered
    | ReplicasOffline
    | BrokersCame
    | IsrAsked
    | IsrsReported
    | LogDirsFailed
    | ShutdownAsked
    | ReplicasStopped
    | ElectionAsked
    | PreferredRead
    | ImbalanceDue
    | ElectionsEnded
    | ReassignmentAsked
    | ReassignmentRead
    | ReassignmentsListed
    | AssignmentsWritten
    | StatesRead
    | ReassignmentsBegun
    | ReassignmentsGoOn
    | ReassignmentsResumed
    | UncleanRead
    | SettingsChanged
)

# -- instructions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WriteStates:
    """Write the leadership of partitions. The version: that of the state znode to replace, None to create it."""

    states: Mapping[TopicPartition, tuple[LeaderAndIsr, int | None]]
    of: Purpose = Purpose.ELECTION


@dataclass(frozen=True, slots=True)
class WriteAssignments:
    """Write a topic's znode, whatever it holds: `after`, in which these assignments have changed. Then report
    AssignmentsWritten. None has changed if partitions that others have added are taken out again."""

    topic: str
    after: Topic
    changed: Mapping[int, Assignment]


@dataclass(frozen=True, slots=True)
class ReadStates:
    """Read the states of partitions. Then report StatesRead; and again when one changes, if leaders write them."""

    partitions: Sequence[TopicPartition]


@dataclass(frozen=True, slots=True)
class TrimReassignment:
    """Drop partitions from `/admin/reassign_partitions`, and delete it if none is left. `dropped`: only those that it
    asks for with these replicas; None: with any."""

    dropped: Mapping[TopicPartition, tuple[int, ...] | None]


@dataclass(frozen=True, slots=True)
class RemoveTopic:
    """Delete the topic's znodes, its configuration and the request to delete it. Then report TopicRemoved."""

    topic: str


@dataclass(frozen=True, slots=True)
class DropDeletion:
    """Delete the request to delete a topic that does not exist, or that must not be deleted."""

    topic: str


@dataclass(frozen=True, slots=True)
class DropReports:
    """Delete these reports of brokers: znodes, by their paths."""

    reports: Sequence[str]


@dataclass(frozen=True, slots=True)
class ReadUnclean:
    """Read whether the topics of these partitions allow unclean elections. Then report UncleanRead. `of`: what their
    leadership is to be written for, ELECTION or OFFLINE."""

    partitions: Sequence[TopicPartition]
    of: Purpose = Purpose.ELECTION


@dataclass(frozen=True, slots=True)
class HandBack:
    """Hand this stimulus to the machine after what comes of the instructions before."""

    stimulus: Stimulus


@dataclass(frozen=True, slots=True)
class AnswerIsr:
    """Answer an AlterPartition request."""

    asked: IsrAsked
    error: ErrorCode
    results: Mapping[TopicPartition, Stored | ErrorCode] = field(default_factory=dict)

    def give(self) -> None:
        self.asked.answer(self.error, self.results)


@dataclass(frozen=True, slots=True)
class AnswerShutdown:
    """Answer a ControlledShutdown request. `remaining`: partitions that the broker still leads."""

    asked: ShutdownAsked
    error: ErrorCode
    remaining: Sequence[TopicPartition] = ()

    def give(self) -> None:
        self.asked.answer(self.error, self.remaining)


@dataclass(frozen=True, slots=True)
class AnswerElection:
    """Answer an ElectLeaders request."""

    asked: ElectionAsked
    results: Mapping[TopicPartition, int | NotElected]

    def give(self) -> None:
        self.asked.answer(self.results)


@dataclass(frozen=True, slots=True)
class AnswerReassignment:
    """Answer an AlterPartitionReassignments request."""

    asked: ReassignmentAsked
    results: Mapping[TopicPartition, Rejected | None]

    def give(self) -> None:
        self.asked.answer(self.results)


@dataclass(frozen=True, slots=True)
class AnswerListing:
    """Answer a ListPartitionReassignments request."""

    asked: ReassignmentsListed
    found: Mapping[TopicPartition, Assignment]

    def give(self) -> None:
        self.asked.answer(self.found)


@dataclass(frozen=True, slots=True)
class DropPreferred:
    """Delete `/admin/preferred_replica_election`."""


@dataclass(frozen=True, slots=True)
class Log:
    """What a person should know."""

    message: str


Instruction = (
    Send
    | WriteStates
    | WriteAssignments
    | ReadStates
    | TrimReassignment
    | RemoveTopic
    | DropDeletion
    | DropReports
    | ReadUnclean
    | HandBack
    | AnswerIsr
    | AnswerShutdown
    | AnswerElection
    | AnswerReassignment
    | AnswerListing
    | DropPreferred
    | Log
)
