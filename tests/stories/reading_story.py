"""Histories of a reader that reads a log along, which a client writes, for checks of reads."""

from __future__ import annotations

from write_story import Writes

from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.reads import MOVED, POLLED

#: A record: (offset, leader epoch, number or what a value is that no client writes).
Record = tuple[int, int, int | str]


class Reading(Writes):
    """What reader c2 does, and what the replicas hold in the end."""

    def polled(self, ms: float, *records: Record, by: str = "c2") -> EventId:
        return self.add(ms, by, POLLED, detail={"records": [list(each) for each in records]})

    def moved(self, ms: float, before: int, offset: int, *, cause: str = "truncated", by: str = "c2") -> EventId:
        return self.add(ms, by, MOVED, detail={"before": before, "offset": offset, "cause": cause})

    def replica(self, ms: float, broker: int, *records: Record) -> EventId:
        detail = {"op": "read-replica", "broker": broker, "records": [list(each) for each in records]}
        return self.add(ms, "r1", Kind.OK, detail=detail)
