"""The replicas of a partition are spread over the racks, and the leaders of a topic over the brokers (claim P2).

What `AdminUtils` of Kafka 0.10 to 3.9.1 promises in its class comment, and what its test asserts, for topics that
brokers place while each of them has a rack:

- The replicas of a partition stand in as many racks as possible: each in another one if there are enough racks, and
  none is left out otherwise.
- All replicas are on brokers that are registered.
- No broker leads more than one partition more than another one, as the preferred leader of a topic's partitions.

The check looks at these results, not at the steps that lead to them. Racks are those of the registrations.

Witness: the topic's znode.
"""

from __future__ import annotations

from collections import Counter

from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.placed_topics import Placed, placed_topics
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import once


def judge(history: History) -> Finding:
    """Measures: `count`, topics that are not spread; `topics` that were looked at; `partitions` of them with several
    replicas; `racks`, the most of a topic."""
    found = placed(history)
    wrong = [(each, why) for each in found for why in [mistake(each)] if why is not None]
    measures = {
        "count": len(wrong),
        "topics": len(found),
        "partitions": sum(len(replicas) > 1 for each in found for replicas in each.replicas),
        "racks": max((len(set(each.racks.values())) for each in found), default=0),
    }
    if wrong:
        topic, why = wrong[0]
        return violated(f"topic {topic.topic}: {why}", (topic.created.id,), measures)
    return not_violated(
        history,
        f"the replicas of {measures['partitions']} partitions are spread over the racks",
        measures,
        vacuous=_nothing(measures),
    )


def _nothing(measures: dict[str, int]) -> str | None:
    """Why the topics decide nothing; None if they do."""
    if not measures["partitions"]:
        return "no partition has several replicas"
    return "all brokers stand in one rack" if measures["racks"] < 2 else None


@once
def placed(history: History) -> list[Placed]:
    """Those on brokers with racks. Raises KafkaException for a malformed znode."""
    return [each for each in placed_topics(history) if each.racks]


def mistake(topic: Placed) -> str | None:
    """How a topic is not spread; None if it is."""
    racks = set(topic.racks.values())
    for partition, replicas in enumerate(topic.replicas):
        unknown = [each for each in replicas if each not in topic.brokers]
        if unknown:
            return f"partition {partition} has a replica on broker {unknown[0]}, which is not registered"
        used = {topic.racks[each] for each in replicas}
        possible = min(len(replicas), len(racks))
        if len(used) < possible:
            return (
                f"partition {partition} has its replicas {list(replicas)} on {len(used)} of {possible} possible racks"
            )
    led = Counter(dict.fromkeys(topic.brokers, 0))
    led.update(replicas[0] for replicas in topic.replicas)
    most, least = max(led, key=lambda each: led[each]), min(led, key=lambda each: led[each])
    if led[most] - led[least] > 1:
        return f"broker {most} is the preferred leader of {led[most]} partitions, and broker {least} of {led[least]}"
    return None


CHECK = Check(
    name="rack_spread",
    compares=(Layer.REGISTRY,),
    meaning="A partition has its replicas in fewer racks than it could, or leaders are uneven over the brokers.",
    together="The topic's replicas stand in the racks of these brokers, and another placement would use more racks.",
    plants=(Planted("ignores-racks", "placement", settings={"racks": "3", "brokers": "6"}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=placed,
)
