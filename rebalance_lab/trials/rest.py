"""The runner's view of rest while a trial runs."""

from __future__ import annotations

from typing import Any

from rebalance_lab.history.events import Event
from rebalance_lab.history.recorder import Sink
from rebalance_lab.history.rest import StateTracker
from rebalance_lab.kernel import Flag


class TrackedSink:
    """A sink that shows every event to a tracker as it is written, so that a runner never judges rest without its own
    faults."""

    def __init__(self, sink: Sink, tracker: StateTracker[Any], changed: Flag) -> None:
        self._sink = sink
        self._tracker = tracker
        self._changed = changed

    def write(self, event: Event) -> None:
        self._sink.write(event)
        if self._tracker.feed(event):
            self._changed.raise_()
