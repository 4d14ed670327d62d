"""Histories of topics that a client asks brokers to create, written by hand. The client is a1."""

from __future__ import annotations

import json
from collections.abc import Sequence

from history_story import Story

from rebalance_lab.checks import CHECKS, Finding
from rebalance_lab.history.creations import CREATE_TOPIC
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.wire.cluster import registration_payload


class Topics(Story):
    """`brokers`: how many are registered from the beginning. `racks`: of them; a broker beyond has none."""

    def __init__(self, brokers: int = 3, racks: Sequence[str] = ()) -> None:
        super().__init__()
        self._zxid = 0
        for broker in range(1, brokers + 1):
            self.registered(broker, broker, racks[broker - 1] if broker <= len(racks) else None)

    def registered(self, ms: int, broker: int, rack: str | None = None) -> EventId:
        """A broker registers: it creates its znode empty, and fills it in the same transaction."""
        path = f"/brokers/ids/{broker}"
        data = registration_payload(f"h{broker}", 9092, timestamp_ms=1, rack=rack).decode()
        self._zxid += 1
        self.add(ms, "zookeeper", Kind.CREATED, detail={"path": path, "data": ""}, zxid=self._zxid)
        return self.add(ms, "zookeeper", Kind.CHANGED, detail={"path": path, "data": data}, zxid=self._zxid)

    def znode(self, ms: int, path: str, data: object = None, kind: Kind = Kind.CREATED) -> EventId:
        self._zxid += 1
        return self.add(ms, "zookeeper", kind, detail={"path": path, "data": json.dumps(data)}, zxid=self._zxid)

    def assignment(self, ms: int, topic: str, *replicas: list[int]) -> EventId:
        partitions = {str(number): brokers for number, brokers in enumerate(replicas)}
        return self.znode(ms, f"/brokers/topics/{topic}", {"version": 1, "partitions": partitions})

    def asked(self, ms: int, topic: str, replication: int, partitions: int = 2) -> EventId:
        detail = {"op": CREATE_TOPIC, "partitions": partitions, "replication": replication}
        return self.add(ms, "a1", Kind.INVOKED, topic=topic, detail=detail)

    def answered(self, ms: int, topic: str, asked: EventId, error: str | None = None) -> EventId:
        detail = {"op": CREATE_TOPIC, "of": asked[1], **({} if error is None else {"error": error})}
        return self.add(ms, "a1", Kind.OK if error is None else Kind.FAILED_OP, topic=topic, detail=detail)

    def possible(self) -> None:
        """Topic `p`, which is created as it should be."""
        asked = self.asked(100, "p", 2)
        self.assignment(110, "p", [1, 2], [2, 3])
        self.answered(120, "p", asked)

    def found(self, check: str = "replication_limit") -> Finding:
        self.rest(9000)
        return CHECKS[check].judge(self.history())
