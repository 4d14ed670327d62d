"""Events that are read from the log of a program that is not ours."""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lab.history.events import LAYER_OF, Event, EventId, Kind, session_text
from rebalance_lab.history.recorder import Sink

#: The log's times are whole milliseconds: an event happened up to this much later.
CUT_US = 999


class EventWriter:
    """Writes and counts the events of one actor, and never lets their time go back.

    `wall_offset_us`: wall clock minus the history's clock. The reader of the log sets `at_ms` to the epoch ms of the
    current line.
    """

    def __init__(self, actor: str, sink: Sink, wall_offset_us: int) -> None:
        self.actor = actor
        self.member: str | None = None
        self.group: str | None = None
        self.session: int | None = None
        self.at_ms = 0
        self._written: list[Event] = []
        self._sink = sink
        self._offset_us = wall_offset_us
        self._n = 0
        self._last_us = 0

    @property
    def now_us(self) -> int:
        """The time of the line on the history's clock, in the log's whole milliseconds."""
        return self.at_ms * 1000 - self._offset_us

    def emit(
        self,
        kind: Kind,
        detail: Mapping[str, object] | None = None,
        *,
        cause: EventId | None = None,
        place: tuple[str, int] | None = None,
        zxid: int | None = None,
        late: bool = False,
    ) -> EventId:
        """Write an event. `place`: (topic, partition). `late`: use the end of the millisecond, for beliefs that begin,
        so that no recorded belief is too long."""
        at_us = max(self._last_us, self.now_us + (CUT_US if late else 0))
        self._last_us = at_us
        event = Event(
            actor=self.actor,
            n=self._n,
            at_us=at_us,
            layer=LAYER_OF[kind],
            kind=kind,
            member=self.member,
            session=None if self.session is None else session_text(self.session),
            group=self.group,
            topic=None if place is None else place[0],
            partition=None if place is None else place[1],
            zxid=zxid,
            cause=cause,
            detail=dict(detail) if detail else None,
        )
        self._n += 1
        self._sink.write(event)
        self._written.append(event)
        return event.id

    def take(self) -> list[Event]:
        """The events written since the last call."""
        written, self._written = self._written, []
        return written
