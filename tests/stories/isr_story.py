"""Histories of a leader that drops its follower, broker 2, from the ISR."""

from __future__ import annotations

import json

from history_story import Story

from rebalance_lab.checks import CHECKS, Finding
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.replicas import APPENDED, COMMITTED, ISR_ASSUMED, LEADS


class Leader(Story):
    """What broker 1 does in leader epoch 0 of t-0, and the state znode. Followers may lag for 2 s or, if `lag_messages`
    is not 0, by so many records."""

    def __init__(
        self,
        lag_messages: int = 5,
        *,
        end: int = 0,
        high_watermark: int = 0,
        leads_ms: float = 20,
        flush_messages: int = 0,
    ) -> None:
        super().__init__(lag_ms=2000, lag_messages=lag_messages, flush_messages=flush_messages)
        self._count = 0
        self.state(10, 1, 2)
        self._of_leader(leads_ms, LEADS, end_offset=end, high_watermark=high_watermark)

    def _of_leader(self, ms: float, kind: Kind, **detail: object) -> EventId:
        return self.add(ms, "b1", kind, detail={"leader_epoch": 0, **detail}, topic="t", partition=0)

    def state(self, ms: float, *isr: int) -> EventId:
        data = {"controller_epoch": 1, "leader": 1, "version": 1, "leader_epoch": 0, "isr": isr}
        self._count += 1
        detail = {"path": "/brokers/topics/t/partitions/0/state", "data": json.dumps(data)}
        return self.add(ms, "zookeeper", Kind.CHANGED, detail=detail, zxid=self._count)

    def appended(self, ms: float, first: int, last: int) -> EventId:
        return self._of_leader(ms, APPENDED, first=first, last=last)

    def committed(self, ms: float, offset: int) -> EventId:
        return self._of_leader(ms, COMMITTED, offset=offset)

    def assumed(self, ms: float, isr: tuple[int, ...], proposed: tuple[int, ...] | None = None) -> EventId:
        return self._of_leader(ms, ISR_ASSUMED, isr=isr, proposed=proposed)

    def dropped(self, ms: float) -> EventId:
        """Follower 2, 2 ms after the leader has decided that."""
        self.assumed(ms - 2, (1, 2), (1,))
        return self.state(ms, 1)

    def joined(self, ms: float) -> EventId:
        """It again. Returns the leader's view."""
        asked = self.assumed(ms, (1,), (1, 2))
        self.state(ms + 2, 1, 2)
        return asked

    def found(self) -> Finding:
        self.rest(9000)
        return CHECKS["early_shrink"].judge(self.history())
