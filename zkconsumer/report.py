"""What a member records in the history: its belief, its work, and the steps of its rebalances."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.events import EventId, Kind, Layer
from rebalance_lab.world.ports import RecorderPort


class Report:
    """The member's own recorder: every event carries its consumer id and group."""

    def __init__(self, recorder: RecorderPort, *, member: str, group: str) -> None:
        self._emit: Callable[..., EventId] = partial(recorder.emit, member=member, group=group)

    def owned(self, each: TopicPartition, *, thread: str, offset: int) -> None:
        """From now on the member believes it owns the partition."""
        detail = {"thread": thread, "offset": offset}
        self._emit(Layer.BELIEF, Kind.OWNED, topic=each.topic, partition=each.partition, detail=detail)

    def disowned(self, each: TopicPartition) -> None:
        """From now on it no longer believes so."""
        self._emit(Layer.BELIEF, Kind.DISOWNED, topic=each.topic, partition=each.partition)

    def worked(self, each: TopicPartition, *, last: bool) -> None:
        """It works on the partition at this moment. `last`: and stops now."""
        detail: dict[str, object] | None = {"last": True} if last else None
        self._emit(Layer.EFFECT, Kind.WORKED, topic=each.topic, partition=each.partition, detail=detail)

    def warned(self, message: str) -> None:
        """What Kafka would have logged."""
        self._emit(Layer.OP, Kind.WARNED, detail={"message": message})

    def step(self, kind: Kind, **detail: object) -> None:
        """A step of the member's life or of a rebalance."""
        self._emit(Layer.OP, kind, detail=detail or None)
