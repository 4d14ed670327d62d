"""Histories of a reader that reads a log along, which a client writes, for checks of reads."""

from __future__ import annotations

from write_story import Writes

from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.reads import MOVED, POLLED
from rebalance_lab.history.replicas import LEADS

#: A record: (offset, leader epoch, number or what a value is that no client writes).
Record = tuple[int, int, int | str]


class Reading(Writes):
    """What reader c2 does, and what the replicas hold in the end."""

    def polled(self, ms: float, *records: Record, by: str = "c2") -> EventId:
        return self.add(ms, by, POLLED, topic="t", partition=0, detail={"records": [list(each) for each in records]})

    def moved(self, ms: float, before: int, offset: int, *, cause: str = "truncated", by: str = "c2") -> EventId:
        detail = {"before": before, "offset": offset, "cause": cause}
        return self.add(ms, by, MOVED, topic="t", partition=0, detail=detail)

    def leads(self, ms: float, leader_epoch: int, end: int, *, topic: str = "t") -> EventId:
        """b1 begins to lead, with a log that ends there."""
        detail = {"leader_epoch": leader_epoch, "end_offset": end}
        return self.add(ms, "b1", LEADS, topic=topic, partition=0, detail=detail)

    def replica(self, ms: float, broker: int, *records: Record) -> EventId:
        detail = {"op": "read-replica", "broker": broker, "records": [list(each) for each in records]}
        return self.add(ms, "r1", Kind.OK, detail=detail)
