"""Histories of brokers and their controllers, for checks of brokers. The node of broker 1 is b1, and its first session
0x1."""

from __future__ import annotations

import json

from history_story import Story

from rebalance_lab.checks import CHECKS, Finding
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.replicas import CONTROLS, CONTROLS_NO_MORE, FOLLOWS, LEADS, OBEYS
from rebalance_lab.history.writes import REPORTED


class Brokers(Story):
    """The partition is t-0."""

    # -- ZooKeeper ------------------------------------------------------------------------------

    def connected(self, ms: float, number: int, session: str = "") -> EventId:
        return self.add(ms, f"b{number}", Kind.CONNECTED, session=session or f"0x{number}", group=None)

    def registered(self, ms: float, number: int, session: str = "") -> EventId:
        """A broker connects, registers, and hears of it at once. Returns the registration."""
        self.connected(ms, number, session)
        path = f"/brokers/ids/{number}"
        created = self.registry(ms, Kind.CREATED, path, session or f"0x{number}", group=None)
        self.reported(ms, number, broker_epoch=self._zxid)
        return created

    def unregistered(self, ms: float, number: int, session: str = "") -> EventId:
        return self.registry(ms, Kind.DELETED, f"/brokers/ids/{number}", session or f"0x{number}", group=None)

    def reported(self, ms: float, number: int, *, broker_epoch: int) -> EventId:
        detail = {"event": "registered", "broker_epoch": broker_epoch}
        return self.add(ms, f"b{number}", REPORTED, member=f"b{number}", group=None, detail=detail)

    def elected(self, ms: float, number: int, epoch: int, session: str = "") -> EventId:
        """A broker creates `/controller`, and raises the epoch with it. Returns the election."""
        session = session or f"0x{number}"
        data = json.dumps({"version": 1, "brokerid": number, "timestamp": "1"})
        created = self.registry(ms, Kind.CREATED, "/controller", session, detail={"data": data}, group=None)
        raised = {"data": str(epoch)}
        self.registry(ms, Kind.CHANGED, "/controller_epoch", session, detail=raised, group=None, zxid=self._zxid)
        return created

    def deposed(self, ms: float, number: int, session: str = "") -> EventId:
        return self.registry(ms, Kind.DELETED, "/controller", session or f"0x{number}", group=None)

    def assigned(self, ms: float, *replicas: int) -> EventId:
        data = json.dumps({"version": 1, "partitions": {"0": replicas}})
        return self.registry(ms, Kind.CREATED, "/brokers/topics/t", "0x9", detail={"data": data}, group=None)

    def state(self, ms: float, leader: int, leader_epoch: int, *isr: int, session: str = "0x9") -> EventId:
        data = {
            "controller_epoch": 1,
            "leader": leader,
            "version": 1,
            "leader_epoch": leader_epoch,
            "isr": isr,
        }
        path = "/brokers/topics/t/partitions/0/state"
        return self.registry(ms, Kind.CHANGED, path, session, detail={"data": json.dumps(data)}, group=None)

    def configured(self, ms: float, kind: Kind = Kind.CHANGED, **settings: str) -> EventId:
        """The topic's own settings are written, or deleted; a name has underscores for points."""
        config = {name.replace("_", "."): value for name, value in settings.items()}
        detail = {} if kind is Kind.DELETED else {"data": json.dumps({"version": 1, "config": config})}
        return self.registry(ms, kind, "/config/topics/t", "0x9", detail=detail, group=None)

    # -- brokers --------------------------------------------------------------------------------

    def broker(self, ms: float, number: int, kind: Kind, *, partition: int | None = 0, **detail: object) -> EventId:
        """An event of a broker about the partition, or about none."""
        place = {} if partition is None else {"topic": "t", "partition": partition}
        return self.add(ms, f"b{number}", kind, member=f"b{number}", group=None, detail=detail, **place)

    def obeys(
        self, ms: float, number: int, controller: int, epoch: int, broker_epoch: int = -1, order: str = "stop-replica"
    ) -> EventId:
        return self.broker(
            ms,
            number,
            OBEYS,
            partition=None,
            order=order,
            controller=controller,
            controller_epoch=epoch,
            broker_epoch=broker_epoch,
        )

    def leads(
        self, ms: float, number: int, leader_epoch: int, *isr: int, end: int = 0, high_watermark: int = 0
    ) -> EventId:
        return self.broker(
            ms,
            number,
            LEADS,
            leader_epoch=leader_epoch,
            controller_epoch=1,
            isr=isr,
            end_offset=end,
            high_watermark=high_watermark,
        )

    def follows(self, ms: float, number: int, leader: int, leader_epoch: int, *, end: int = 0) -> EventId:
        return self.broker(ms, number, FOLLOWS, leader=leader, leader_epoch=leader_epoch, end_offset=end)

    def controls(self, ms: float, number: int, epoch: int) -> EventId:
        return self.broker(ms, number, CONTROLS, partition=None, epoch=epoch)

    def controls_no_more(self, ms: float, number: int) -> EventId:
        return self.broker(ms, number, CONTROLS_NO_MORE, partition=None, why="it resigns")

    def restarted(self, ms: float, number: int) -> None:
        """A killed broker is started again."""
        began = self.fault(ms, "restart", f"b{number}")
        self.bit(ms, "restart", f"b{number}", began)
        self.ended(ms, "restart", f"b{number}", began)

    # -- the check ------------------------------------------------------------------------------

    def taken_down(self, check: str, at_ms: float) -> Finding:
        """The trial is taken down at that time."""
        self.phase(at_ms, "closing")
        return self.found(check, at_ms - 1)

    def found(self, check: str, at_ms: float = 9000) -> Finding:
        self.rest(at_ms)
        return CHECKS[check].judge(self.history())
