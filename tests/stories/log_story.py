"""Histories of the logs of replicas, for checks of what a leader commits."""

from __future__ import annotations

from broker_story import Brokers

from rebalance_lab.history.events import EventId
from rebalance_lab.history.replicas import APPENDED, COMMITTED, ISR_ASSUMED, REPLICATED, TRUNCATED


class Logs(Brokers):
    """Partition t-0, led by b1 in leader epoch 1."""

    def appended(self, ms: float, number: int, last: int) -> EventId:
        return self.broker(ms, number, APPENDED, leader_epoch=1, first=last, last=last)

    def replicated(self, ms: float, number: int, end: int) -> EventId:
        return self.broker(ms, number, REPLICATED, end_offset=end, leader_epoch=1)

    def committed(self, ms: float, number: int, offset: int, *, leader_epoch: int = 1) -> EventId:
        return self.broker(ms, number, COMMITTED, offset=offset, leader_epoch=leader_epoch)

    def cut(self, ms: float, number: int, end: int, new_end: int) -> EventId:
        return self.broker(ms, number, TRUNCATED, from_offset=end, to_offset=new_end, high_watermark=0, leader_epoch=1)

    def assumes(self, ms: float, number: int, *isr: int, proposed: tuple[int, ...] | None = None) -> EventId:
        return self.broker(ms, number, ISR_ASSUMED, leader_epoch=1, isr=isr, proposed=proposed)


def replicating(*isr: int) -> Logs:
    """b1 has written the records 0 to 4, b2 has replicated all of them, and b3 has none (b3/2)."""
    story = Logs()
    for number in (1, 2, 3):
        story.registered(10, number)  # zookeeper/0 to zookeeper/2
    story.state(20, 1, 1, *(isr or (1, 2, 3)))
    story.leads(30, 1, 1, 1, 2, 3)
    for number in (2, 3):
        story.follows(30, number, 1, 1)
    story.appended(40, 1, 4)
    story.replicated(50, 2, 5)
    return story
