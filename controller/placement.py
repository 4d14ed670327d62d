"""Placement: which brokers hold the replicas of a new topic's partitions (claims P1 and P2).

As `AdminUtils.assignReplicasToBrokers` of Kafka 0.8.2.2 (brokers only) and 3.9.1 (brokers and racks):

- The first replica, the preferred leader, of partition p is broker (p + start_index) mod n.
- The other replicas follow it round the brokers, after a gap. The gap, `next_replica_shift`, grows by one each time
  the partitions have gone once round the brokers. So one broker's followers are spread over all others.
- With racks, the brokers stand in an order that alternates between the racks, and a broker is skipped while its rack
  has a replica of the partition and another rack has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count, zip_longest

from rebalance_lab.assignors import java_order

#: partition -> the ids of the brokers that hold it; the first is the preferred leader.
Assignment = dict[int, tuple[int, ...]]


class PlacementError(ValueError):
    """The topic cannot be placed on these brokers. The message is that of Kafka 3.9.1."""


class InvalidPartitions(PlacementError):
    """The number of partitions is not positive (error code 37)."""


class InvalidReplicationFactor(PlacementError):
    """The replication factor is not positive, or larger than the number of brokers (error code 38; claim P1)."""


class RacksMissing(PlacementError):
    """Some brokers have a rack and others have none (in Kafka an AdminOperationException)."""


class PlacementBug(StrEnum):
    """A mistake of a broker that places replicas, which can be planted.

    - KEEPS_SHIFT: the gap does not grow when the partitions have gone once round the brokers.
    - FEWER_REPLICAS: a topic gets as many replicas as there are brokers if more are asked for.
    - IGNORES_RACKS: replicas are placed as if no broker had a rack.
    """

    KEEPS_SHIFT = "keeps-shift"
    FEWER_REPLICAS = "fewer-replicas"
    IGNORES_RACKS = "ignores-racks"


def place_wrongly(
    bug: PlacementBug, brokers: Sequence[int], partitions: int, replication: int, start: Start
) -> Assignment:
    """As `place` without racks, with a planted bug."""
    if bug is PlacementBug.IGNORES_RACKS:
        return place(brokers, partitions, replication, start)
    if bug is PlacementBug.FEWER_REPLICAS:
        return place(brokers, partitions, min(replication, len(brokers)), start)
    count = len(brokers)
    return {
        each: place(brokers, 1, replication, Start((start.index + each) % count, start.shift))[0]
        for each in range(partitions)
    }


@dataclass(frozen=True, slots=True)
class Start:
    """Where the first new partition is placed. Kafka draws `index` and `shift` at random for a new topic.

    - `index`: position of the preferred leader of partition 0 among the brokers.
    - `shift`: gap between the preferred leader of partition 0 and its first follower.
    - `partition`: id of the first partition to place; above 0 if a topic grows, -1 (as in Kafka) is taken as 0.
    """

    index: int
    shift: int
    partition: int = 0

    @classmethod
    def fixed(cls, index: int, partition: int = 0) -> Start:
        """Kafka's `fixedStartIndex`, which is the index and the shift."""
        return cls(index, index, partition)


def place(
    brokers: Sequence[int], partitions: int, replication: int, start: Start, racks: Mapping[int, str] | None = None
) -> Assignment:
    """The replicas of `partitions` new partitions on `brokers`, in the order given.

    `racks`: broker -> its rack. Without racks only the order of the brokers counts.

    Raises InvalidPartitions, InvalidReplicationFactor, and RacksMissing if `racks` names some of the brokers only.
    """
    if partitions <= 0:
        raise InvalidPartitions("Number of partitions must be larger than 0.")
    if replication <= 0:
        raise InvalidReplicationFactor("Replication factor must be larger than 0.")
    if replication > len(brokers):
        raise InvalidReplicationFactor(
            f"Replication factor: {replication} larger than available brokers: {len(brokers)}."
        )
    racks = {each: racks[each] for each in brokers if each in racks} if racks else {}
    if racks and len(racks) < len(brokers):
        raise RacksMissing("Not all brokers have rack information for replica rack aware assignment.")
    order = rack_alternated(racks) if racks else tuple(brokers)
    assignment: Assignment = {}
    shift = start.shift
    first = max(0, start.partition)
    for partition in range(first, first + partitions):
        if partition > 0 and partition % len(order) == 0:
            shift += 1
        leader = (partition + start.index) % len(order)
        if racks:
            assignment[partition] = _over_racks(order, racks, leader, shift, replication)
        else:
            followers = (order[_follower(leader, shift, each, len(order))] for each in range(replication - 1))
            assignment[partition] = (order[leader], *followers)
    return assignment


def rack_alternated(racks: Mapping[int, str]) -> tuple[int, ...]:
    """The brokers, one of each rack in turn: racks in Java's string order, each rack's brokers by id
    (`AdminUtils.getRackAlternatedBrokerList`)."""
    by_rack: dict[str, list[int]] = {rack: [] for rack in sorted(set(racks.values()), key=java_order)}
    for broker in sorted(racks):
        by_rack[racks[broker]].append(broker)
    return tuple(each for turn in zip_longest(*by_rack.values()) for each in turn if each is not None)


def _follower(leader: int, shift: int, number: int, brokers: int) -> int:
    """Position of the follower `number` (from 0) of a leader at position `leader` (`AdminUtils.replicaIndex`)."""
    return (leader + 1 + (shift + number) % (brokers - 1)) % brokers


def _over_racks(
    order: Sequence[int], racks: Mapping[int, str], leader: int, shift: int, replication: int
) -> tuple[int, ...]:
    """One partition's replicas. The gap counts in rounds of racks, so that it leads to another rack's broker."""
    chosen = [order[leader]]
    used = {racks[order[leader]]}
    all_racks = len(set(racks.values()))
    numbers = count()
    while len(chosen) < replication:
        broker = order[_follower(leader, shift * all_racks, next(numbers), len(order))]
        if broker not in chosen and (racks[broker] not in used or len(used) == all_racks):
            chosen.append(broker)
            used.add(racks[broker])
    return tuple(chosen)
