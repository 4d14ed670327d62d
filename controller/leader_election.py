"""Who leads a partition: the rules of a controller, as functions of what it knows.

As the selectors of Kafka 0.8.0 and 0.8.2.2 (`kafka.controller.PartitionLeaderSelector`) and of 3.9.1 (`Election.scala`,
`PartitionLeaderElectionAlgorithms`); they differ where `Selection` says so. A rule writes nothing: its caller writes
the result, with the version of the state znode that it was computed from.

*Live* brokers are those that are registered and not shutting down.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from rebalance_lab.wire.cluster import NO_LEADER

K = TypeVar("K")


class LeaderAndIsr(msgspec.Struct, frozen=True, gc=False):
    """Leader, leader epoch and in-sync replicas of a partition, as its state znode holds them.

    `leader`: a broker, or NO_LEADER. `recovering`: the leader was elected from outside the ISR and has not confirmed
    yet what it has (from 3.2 on). A msgspec struct, because a controller that takes over makes one for each partition.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    recovering: bool = False


class Election(msgspec.Struct, frozen=True, gc=False):
    """`receivers`: the brokers that are sent the result. `unclean`: the leader comes from outside the ISR, so committed
    records may be lost."""

    leader_and_isr: LeaderAndIsr
    receivers: tuple[int, ...]
    unclean: bool = False


class NoLeader(Exception):
    """No broker may lead the partition now. The partition stays as it is; the message says why."""


class Selection(StrEnum):
    """The release whose selectors choose a leader: whose order they follow, after a failure and for a controlled
    shutdown, whether the broker that shuts down hears of the outcome (claim E5b), and whether an ISR may be empty. The
    setting decides in all of them whether unclean elections are allowed, though Kafka 0.8.0 always allows them."""

    V0_8_0 = "0.8.0"  # the first of the ISR, also after a failure
    V0_8_2 = "0.8.2"  # after a failure the first of the assignment; for a shutdown the first of the ISR, live or not
    V1_0 = "1.0"  # the first of the assignment (from 0.10.0 on, KAFKA-3670); the broker that shuts down hears of it
    V1_1 = "1.1"  # the first of the assignment; the broker that shuts down does not hear of it (KAFKA-7482)
    V2_1 = "2.1"  # the first of the assignment; the broker that shuts down hears of it

    @property
    def empties_isrs(self) -> bool:
        """Whether the last replica that dies leaves the ISR, too, if the topic allows unclean elections
        (`KafkaController.removeReplicaFromIsr`, 0.8.0 to 1.0.2)."""
        return self in _OF_0_8 or self is Selection.V1_0


#: Their controlled shutdown takes the head of the ISR, and does not ask whether it is live.
_OF_0_8 = frozenset({Selection.V0_8_0, Selection.V0_8_2})


def first_leader(assignment: Sequence[int], live: Collection[int]) -> Election:
    """The first leader of a new partition: the first live replica; all live ones are in sync. Raises NoLeader."""
    alive = _live(assignment, live)
    if not alive:
        raise NoLeader(f"none of the replicas {_listed(assignment)} is live; start one of these brokers")
    return Election(LeaderAndIsr(alive[0], 0, alive), alive)


def offline(
    assignment: Sequence[int],
    current: LeaderAndIsr,
    live: Collection[int],
    *,
    unclean_allowed: bool,
    selection: Selection = Selection.V2_1,
) -> Election:
    """The leader of a partition that has lost its own: the first of the assignment that is live and in sync; in 0.8.0
    the first of the ISR that is live.

    If none is, and `unclean_allowed`, the first live one; the ISR is then that broker alone. Raises NoLeader.
    """
    alive = _live(assignment, live)
    isr = tuple(each for each in current.isr if each in live)
    in_sync = isr if selection is Selection.V0_8_0 else [each for each in alive if each in isr]
    if in_sync:
        return Election(_next(current, in_sync[0], isr), alive)
    if not unclean_allowed:
        raise NoLeader(
            f"no in-sync replica is live (ISR {_listed(current.isr)}, live {_listed(alive)}), and unclean leader "
            "election is not allowed; start one of the ISR"
        )
    if not alive:
        raise NoLeader(f"none of the replicas {_listed(assignment)} is live; start one of these brokers")
    return Election(replace(_next(current, alive[0], alive[:1]), recovering=True), alive, unclean=True)


def preferred(assignment: Sequence[int], current: LeaderAndIsr, live: Collection[int]) -> Election:
    """The first of the assignment, if it is live and in sync; also if it leads already: after a write whose reply was
    lost the brokers have not heard of it. Raises NoLeader."""
    first = assignment[0]
    if first not in live or first not in current.isr:
        raise NoLeader(f"the preferred replica {first} is not {'live' if first not in live else 'in sync'}")
    return Election(_next(current, first, current.isr), tuple(assignment))


def imbalanced(leaders: Mapping[K, tuple[int, int]], percentage: int) -> list[K]:
    """The partitions that their preferred leaders do not lead, of those brokers that lead too little of what they
    should: more than `percentage` of it is led by others. `leaders`: partition -> its preferred leader, its leader."""
    preferred_by: dict[int, list[K]] = {}
    for each, (first, _) in leaders.items():
        preferred_by.setdefault(first, []).append(each)
    found = []
    for broker, partitions in sorted(preferred_by.items()):
        led_by_others = [each for each in partitions if leaders[each][1] != broker]
        if 100 * len(led_by_others) > percentage * len(partitions):
            found += led_by_others
    return found


def reassigned(target: Sequence[int], current: LeaderAndIsr, live: Collection[int]) -> Election:
    """The leader of a partition that moves to the brokers `target`: the first of them that is live and in sync. Raises
    NoLeader."""
    chosen = next((each for each in target if each in live and each in current.isr), None)
    if chosen is None:
        raise NoLeader(f"none of the target replicas {_listed(target)} is live and in sync; wait until one is")
    return Election(_next(current, chosen, current.isr), tuple(target))


def controlled_shutdown(
    assignment: Sequence[int],
    current: LeaderAndIsr,
    live: Collection[int],
    shutting_down: Collection[int],
    *,
    selection: Selection = Selection.V2_1,
) -> Election:
    """The leader after brokers have asked to shut down: one that is in sync and stays. From 0.10.0 on it is live as
    well; before, nobody asks. The ISR is what stays of it. `live` does not contain those that shut down. Raises
    NoLeader."""
    isr = tuple(each for each in current.isr if each not in shutting_down)
    if selection in _OF_0_8:
        chosen = next(iter(isr), None)
    else:
        chosen = next((each for each in assignment if each in live and each in isr), None)
    if chosen is None:
        raise NoLeader(f"no other in-sync replica is live (ISR {_listed(current.isr)}); start another one first")
    hears = live if selection is Selection.V1_1 else {*live, *shutting_down}
    return Election(_next(current, chosen, isr), _live(assignment, hears))


def without_replicas(
    current: LeaderAndIsr, gone: Collection[int], *, empty_isr_allowed: bool = False
) -> LeaderAndIsr | None:
    """The leadership after replicas went offline; None if nothing changes.

    If the leader is among them, there is none. The last in-sync replicas that go stay in the ISR, so that the partition
    remembers who has all its records, unless `empty_isr_allowed` (0.8.0 to 1.0, where unclean elections are allowed).

    If all of the ISR go at once, its last one stays. The original removes one replica after another, each with a leader
    epoch of its own, in the order of a hash map (`ZkReplicaStateMachine.handleStateChanges`), and the last to go stays.
    """
    isr = tuple(each for each in current.isr if each not in gone)
    if not isr and not empty_isr_allowed:
        isr = current.isr[-1:]
    leader = NO_LEADER if current.leader in gone else current.leader
    if (leader, isr) == (current.leader, current.isr):
        return None
    return _next(current, leader, isr)


def _next(current: LeaderAndIsr, leader: int, isr: Sequence[int]) -> LeaderAndIsr:
    """Every change of leader or ISR by a controller has a leader epoch of its own."""
    return replace(current, leader=leader, leader_epoch=current.leader_epoch + 1, isr=tuple(isr))


def _live(brokers: Sequence[int], live: Collection[int]) -> tuple[int, ...]:
    return tuple(each for each in brokers if each in live)


def _listed(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers)) or "none"
