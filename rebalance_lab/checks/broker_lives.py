"""What brokers did, life by life: what a process has heard and begun is gone with it."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import KILL, RESTART
from rebalance_lab.history.views import events_of


def in_lives(history: History, *kinds: Kind) -> Iterator[tuple[Event, str | None]]:
    """The events of these kinds in the history's order. With the kill of a node, and with its next start, comes the
    node's name: what is known of its process is over. What a node has written between the event of its kill and the
    signal is left out."""
    killed: set[str] = set()
    for event in events_of(history, *kinds, Kind.FAULT_BEGAN):
        if event.kind is not Kind.FAULT_BEGAN:
            if event.actor not in killed:
                yield event, None
            continue
        fault, target = event.of("fault"), str(event.of("target"))
        if fault in (KILL, RESTART):
            (killed.add if fault == KILL else killed.discard)(target)
            yield event, target
