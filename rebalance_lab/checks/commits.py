"""Writes of offsets: whose are commits, and how many 0.8.2.2 makes at most in a spaced change.

Kafka's consumer commits the offset of each partition that it owns when it stops its fetchers (auto.commit.enable,
on by default): one set, and none in a later attempt, as the offset is the same. Where the znode is not there yet the
set fails, and two creates follow: of the topic's directory, which may be there, and of the znode. Where
/consumers/G/offsets is not there either, two more: of this, and of the directory once more. (An offset that moved
may also be committed by a timer, each minute by default: the lab's real members read topics without messages.)

Members of the lab commit nothing: what they write there is a write like any other.

Source: `ZookeeperConsumerConnector.commitOffsets`, `ZkUtils.updatePersistentPath` (Kafka 0.8.2.2) and
`ZkClient.createPersistent` (ZkClient 0.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.lives import lives
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once

#: Writes of a partition's commit: of one, of the first, and beside these where no offsets are kept yet.
_COMMIT, _FIRST, _WITH_PARENT = 1, 3, 2


@once
def committing(history: History) -> Mapping[str, str]:
    """The groups of the actors whose members commit offsets: only Kafka's own consumer does."""
    return {life.actor: life.group for life in lives(history) if life.started.of("rules") == "real"}


def is_commit(event: Event, groups: Mapping[str, str]) -> bool:
    """Whether the writes of an INVOKED are a commit: of the offsets of its member's group, or of their parents.
    `groups`: of the actors that commit (`committing`)."""
    group, path = groups.get(event.actor), str(event.of("path"))
    return group is not None and (path == _root(group) or path.startswith(f"{_root(group)}/"))


def most_commits(history: History, phase: Event, rest: Event, partitions: Mapping[str, Sequence[int]]) -> int:
    """How many writes of offsets members make at most between a phase and the rest that ends it, in a group
    that reads these partitions (by topic). A commit was the first if the registry has its znode's CREATED."""
    group = str(phase.group)
    made = {
        str(event.of("path"))
        for event in events_of(history, Kind.CREATED)
        if phase.at_us - TOLERANCE_US <= event.at_us <= rest.at_us + TOLERANCE_US
    }
    first = _FIRST + _WITH_PARENT * (_root(group) in made)
    places = [f"{_root(group)}/{topic}/{number}" for topic, numbers in partitions.items() for number in numbers]
    return sum(first if place in made else _COMMIT for place in places)


def _root(group: str) -> str:
    return f"/consumers/{group}/offsets"
