"""Which brokers believe that they lead, and with which ISR."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rebalance_lab.checks.partition_states import Place, place_of
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.intervals import KILL
from rebalance_lab.history.replicas import FOLLOWS, ISR_ASSUMED, LEADS, REPLICA_ENDED


class Belief(NamedTuple):
    """A broker leads with the ISR of `event`, a LEADS or ISR_ASSUMED (`largest_isr`)."""

    actor: str
    place: Place
    event: Event


class LeaderBeliefs:
    """Those that stand after the events that `take` has been given, in the history's order. A belief ends with the
    broker's next one about the partition, or with its process. A leader that was deposed, and has not heard of
    it, still believes that it leads."""

    #: The events that begin or end one.
    KINDS = (LEADS, ISR_ASSUMED, FOLLOWS, REPLICA_ENDED, Kind.FAULT_BEGAN)

    def __init__(self) -> None:
        self._standing: dict[tuple[str, Place], Belief] = {}

    def take(self, event: Event) -> list[Belief]:
        """Take note of an event of KINDS; others say nothing. Returns the beliefs that it ends."""
        if event.kind is Kind.FAULT_BEGAN:
            killed = event.of("target") if event.of("fault") == KILL else None
            return self._end(each for each in self._standing if each[0] == killed)
        if event.kind not in self.KINDS:
            return []
        its = event.actor, place_of(event)
        ended = self._end([its])
        if event.kind in {LEADS, ISR_ASSUMED}:
            self._standing[its] = Belief(*its, event)
        return ended

    def _end(self, whose: Iterable[tuple[str, Place]]) -> list[Belief]:
        return [self._standing.pop(each) for each in list(whose) if each in self._standing]

    @property
    def all(self) -> list[Belief]:
        """Of all partitions."""
        return list(self._standing.values())

    def of(self, place: Place) -> list[Belief]:
        """Of a partition: more than one if a leader does not know that it was deposed."""
        return [each for each in self._standing.values() if each.place == place]
