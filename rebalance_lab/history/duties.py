"""What a controller is asked to do, and what the cluster looks like afterwards, from outside.

The runner records the duty and its target. An inspector reads the znodes in a session of its own and asks each broker
for its metadata (`roles.inspector`); the runner lists the folders of each broker's disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rebalance_lab.history.events import Event, Kind, Layer, new_kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of

#: The fault that asks for a duty. Its FAULT_BEGAN has `duty`, and `wanted`, the fields of Target.
DUTY = "duty"

#: The runner has listed the folders of a node. `member`: the node. detail: folders.
FOLDERS_READ = new_kind("folders-read", Layer.EFFECT)

#: The operation in which an inspector looks at the cluster. Its OK has `children` and `data` (path -> what is there; a
#: path without a znode is left out), and `metadata`: broker -> its `brokers`, and its `topics`: topic -> partition ->
#: [leader, replicas, isr].
LOOK = "look"

Replicas = Mapping[str, Mapping[int, tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class Target:
    """How the cluster is to be once a duty is done. `brokers`: those that are registered. `topics`: all that exist,
    with the replicas of their partitions; of those in `preferred` the first replica leads. `settings`: of topics, those
    that are looked at. `topic`: the one that the duty is about, if it is about one."""

    brokers: tuple[int, ...]
    topics: Replicas
    topic: str | None = None
    preferred: tuple[str, ...] = ()
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def detail(self) -> dict[str, object]:
        """Of the event that asks for the duty."""
        topics = {
            topic: {str(number): list(its) for number, its in partitions.items()}
            for topic, partitions in self.topics.items()
        }
        return {
            "brokers": list(self.brokers),
            "topics": topics,
            "topic": self.topic,
            "preferred": list(self.preferred),
            "settings": {topic: dict(its) for topic, its in self.settings.items()},
        }


def duties_asked(history: History) -> list[Event]:
    """The FAULT_BEGAN of each."""
    return [each for each in events_of(history, Kind.FAULT_BEGAN) if each.of("fault") == DUTY]


def target_of(asked: Event) -> Target:
    """The target that the event names which asks for a duty."""
    wanted = asked.of("wanted")
    assert isinstance(wanted, dict)
    return Target(
        brokers=numbers_in(wanted["brokers"]),
        topics={
            topic: {int(number): numbers_in(its) for number, its in partitions.items()}
            for topic, partitions in wanted["topics"].items()
        },
        topic=wanted["topic"],
        preferred=texts_in(wanted["preferred"]),
        settings=wanted.get("settings", {}),
    )


def numbers_in(found: object) -> tuple[int, ...]:
    """A list of numbers, as events hold it."""
    return tuple(map(int, texts_in(found)))


def texts_in(found: object) -> tuple[str, ...]:
    """A list, as events hold it."""
    assert isinstance(found, list | tuple)
    return tuple(map(str, found))
