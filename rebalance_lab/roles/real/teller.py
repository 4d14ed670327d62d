"""Events of one real member, written from its log's point of view."""

from __future__ import annotations

from rebalance_lab.history.events import LAYER_OF, Event, EventId, Kind, session_text
from rebalance_lab.history.recorder import Sink

#: A log's time is cut to the millisecond: what a line tells happened less than this later.
CUT_US = 999


class Teller:
    """Writes the events of one actor; counts them, and never lets time go back.

    `wall_offset_us`: wall clock minus the history's clock. `at_ms` is set by whoever reads the log,
    to the epoch ms of the line that is being told.
    """

    def __init__(self, actor: str, sink: Sink, wall_offset_us: int) -> None:
        self.actor = actor
        self.member: str | None = None
        self.group: str | None = None
        self.session: int | None = None
        self.at_ms = 0
        self.told: list[Event] = []
        self._sink = sink
        self._offset_us = wall_offset_us
        self._n = 0
        self._last_us = 0

    @property
    def now_us(self) -> int:
        """The line's time on the history's clock, as the log cut it."""
        return self.at_ms * 1000 - self._offset_us

    def tell(
        self,
        kind: Kind,
        detail: dict[str, object] | None = None,
        *,
        cause: EventId | None = None,
        place: tuple[str, int] | None = None,
        zxid: int | None = None,
        late: bool = False,
    ) -> EventId:
        """Write an event. `place`: (topic, partition). `late`: at the end of the millisecond, for
        what begins: belief is then never told longer than it was."""
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
            detail=detail or None,
        )
        self._n += 1
        self._sink.write(event)
        self.told.append(event)
        return event.id

    def take(self) -> list[Event]:
        """The events told since the last call."""
        told, self.told = self.told, []
        return told
