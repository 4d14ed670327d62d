"""Histories of a client that writes numbered records and reads the log, for checks of writes."""

from __future__ import annotations

from history_story import Story

from rebalance_lab.checks import CHECKS, Finding
from rebalance_lab.history.events import EventId, Kind


class Writes(Story):
    """What client c1 does, one call for each operation. `sequence`: producer id, epoch and sequence of an idempotent
    producer."""

    def wrote(
        self, ms: float, number: int, offset: int | None, *, sequence: tuple[int, int, int] | None = None
    ) -> EventId:
        """A write that was acknowledged, or, without an offset, one of unknown outcome. Returns how it ended."""
        result: dict[str, object] = {"error": "reset"} if offset is None else {"offset": offset}
        kind = Kind.INFO if offset is None else Kind.OK
        return self._end_of(ms, number, self.asked(ms, number, sequence=sequence), kind, result)

    def refused(self, ms: float, number: int, *, sequence: tuple[int, int, int] | None = None) -> EventId:
        """A write that was refused. Returns how it began."""
        began = self.asked(ms, number, sequence=sequence)
        self._end_of(ms, number, began, Kind.FAILED_OP, {"error": "NOT_ENOUGH_REPLICAS"})
        return began

    def asked(self, ms: float, number: int, *, sequence: tuple[int, int, int] | None = None) -> EventId:
        """The beginning of a write."""
        more = {} if sequence is None else {"sequence": list(sequence)}
        return self.add(ms, "c1", Kind.INVOKED, detail={"op": "produce", "number": number, **more})

    def _end_of(self, ms: float, number: int, began: EventId, kind: Kind, result: dict[str, object]) -> EventId:
        return self.add(ms + 1, "c1", kind, detail={"op": "produce", "of": began[1], "number": number, **result})

    def read(self, ms: float, *records: tuple[int, int | str]) -> EventId:
        """The read of the whole log: (offset, number or, for a value of no number, what it is) of each record."""
        _, began = self.add(ms, "c1", Kind.INVOKED, detail={"op": "consume"})
        return self.add(ms + 1, "c1", Kind.OK, detail={"op": "consume", "of": began, "records": list(records)})

    def found(self, check: str) -> Finding:
        self.add(900, "runner", Kind.REST_REACHED, detail={"phase": "recovered"})
        return CHECKS[check].judge(self.history())
