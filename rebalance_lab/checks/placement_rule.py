"""Replicas are placed round the brokers from a random start, with a random gap (claim P2).

The rule (`AdminUtils.assignReplicasToBrokersRackUnaware`, Kafka 0.8.2.2 to 3.9.1), for n brokers in the order of their
ids, with a start s and a gap g that are drawn for each topic: partition p is led by the broker at position (p + s) mod
n. Its follower j, from 0, stands (g + p div n + j) mod (n - 1) + 1 positions behind the leader. So the gap grows by one
each time the partitions have gone once round the brokers.

A topic keeps the rule if one start and one gap explain all its partitions. The starts of all topics must differ as
random ones do: no broker may be the start of so many topics that chance would explain it in one history of a million
(Hoeffding's bound). The same holds for the gaps of topics of which the gap is known. Only topics that a client left to
the brokers to place are looked at, and only on brokers without racks (`rack_spread`: those with racks).

Witness: the topic's znode; of the starts the first topic and the last one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log, sqrt

from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.placed_topics import Placed, placed_topics
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import once

#: How rarely honest topics may be called not random.
CHANCE = 1e-6


def judge(history: History) -> Finding:
    """Measures: `count`, topics that break the rule; `topics` that were looked at; `partitions` of them; `wrapped`,
    topics in which the gap had to grow; `most_starts`, topics that start at the same broker."""
    found = placed(history)
    explained = {each.topic: explanations(each) for each in found}
    wrong = [each for each in found if not explained[each.topic]]
    starts = Counter(min(start for start, _ in each) for each in explained.values() if each)
    measures = {
        "count": len(wrong),
        "topics": len(found),
        "partitions": sum(len(each.replicas) for each in found),
        "wrapped": sum(len(each.replicas) > len(each.brokers) for each in found),
        "most_starts": max(starts.values(), default=0),
    }
    if wrong:
        first = wrong[0]
        why = f"no start and gap explain the replicas of topic {first.topic}: {list(first.replicas)}"
        return violated(why, (first.created.id,), measures)
    known_gaps = Counter(gap for each in explained.values() for gap in {gap for _, gap in each} if len(each) == 1)
    for what, counted, choices in (
        ("start", starts, len(found[0].brokers)),
        ("gap", known_gaps, len(found[0].brokers) - 1),
    ):
        if counted and not is_random(counted, choices):
            most = max(counted.values())
            why = f"{most} of {sum(counted.values())} topics have the same {what}, of {choices} that are possible"
            return violated(why, (found[0].created.id, found[-1].created.id), measures)
    return not_violated(
        history, f"a start and a gap explain each of {len(found)} topics", measures, vacuous=_nothing(found, measures)
    )


def _nothing(found: Sequence[Placed], measures: dict[str, int]) -> str | None:
    """Why the topics decide nothing; None if they do."""
    choices = len(found[0].brokers)
    if not measures["wrapped"]:
        return "no topic has more partitions than there are brokers, so no gap had to grow"
    if is_random({0: len(found)}, choices):
        return f"{len(found)} topics are too few to tell a random start from a fixed one"
    return None


@once
def placed(history: History) -> list[Placed]:
    """Those on brokers without racks. Raises KafkaException for a malformed znode."""
    return [each for each in placed_topics(history) if not each.racks]


def explanations(topic: Placed) -> list[tuple[int, int]]:
    """Each start and gap that explain all partitions. Several gaps do if no partition has a follower."""
    count = len(topic.brokers)
    return [
        (start, gap)
        for start in range(count)
        for gap in range(count - 1)
        if all(
            replicas == _by_rule(topic.brokers, partition, len(replicas), start, gap)
            for partition, replicas in enumerate(topic.replicas)
        )
    ]


def _by_rule(brokers: Sequence[int], partition: int, replication: int, start: int, gap: int) -> tuple[int, ...]:
    count = len(brokers)
    leader = (partition + start) % count
    behind = [(gap + partition // count + each) % (count - 1) + 1 for each in range(replication - 1)]
    return (brokers[leader], *(brokers[(leader + each) % count] for each in behind))


def is_random(counted: dict[int, int], choices: int) -> bool:
    """Whether draws among so many equal choices may have come out like this: no share is further from 1/choices than
    Hoeffding's bound allows with a probability of CHANCE for all choices together."""
    total = sum(counted.values())
    allowed = sqrt(log(2 * choices / CHANCE) / (2 * total))
    return all(abs(counted.get(each, 0) / total - 1 / choices) <= allowed for each in range(choices))


CHECK = Check(
    name="placement_rule",
    compares=(Layer.REGISTRY,),
    meaning="No start and gap explain where a topic's replicas are, or the starts of topics are not random.",
    together="One start and one gap lead round the brokers to the places of all replicas, and these are elsewhere.",
    statement="Replicas are placed round the brokers from a random start with a random gap",
    plants=(Planted("keeps-shift", "placement", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=placed,
)
