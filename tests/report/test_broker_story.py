"""The story of a trial of brokers, told of histories written by hand: partition t/0, first led by b1."""

from __future__ import annotations

import msgspec
import pytest
from led_story import LedPartition

from rebalance_lab.analysis.trialwise.rows import intervals_of
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.report.narrator import narrator_of
from rebalance_lab.report.scene import build_scene


class Told(LedPartition):
    """Brokers 1 and 2 have the partition; broker 3 is the controller."""

    def __init__(self) -> None:
        super().__init__()
        self.leads(40, 1, 0, 1, 2)
        self.follows(40, 2, 1, 0)

    def link(self, ms: float, until_ms: float, kind: str, target: str, peer: str) -> None:
        detail = {"fault": kind, "target": target, "peer": peer}
        began = self.add(ms, "runner", Kind.FAULT_BEGAN, detail=detail)
        self.ended(until_ms, kind, target, began)

    def story(self, end_ms: float = 30_000) -> tuple[str, ...]:
        self.rest(end_ms)
        history = self.history()
        trial = msgspec.structs.replace(history.trial, subject="replication", rules="kip-320")
        told = History(trial, history.events)
        return narrator_of("replication").tell(build_scene(told, intervals_of(told)))

    def deeds(self) -> str:
        return self.story()[1]


class TestDeeds:
    def test_up_to_eight_are_told_in_the_order_of_time(self) -> None:
        told = Told()
        told.killed(4120, "b1")
        told.state(6000, 2, 1, 2)
        told.leads(6010, 2, 1, 2)
        told.restarted(6100, 1)
        told.link(7140, 9140, "link-cut", "b2", "b1")
        told.link(7140, 9140, "slow-link", "b3", "b2")
        told.killed(10_140, "b2")
        told.restarted(12_620, 2)
        assert told.deeds() == (
            "At 4.12 s b1, leader of t/0, is killed; at 6.10 s b1 is started again; "
            "at 7.14 s b2, leader of t/0, is cut off from b1 for 2.00 s; "
            "at 7.14 s b3, the controller, reaches b2 slowly for 2.00 s; "
            "at 10.14 s b2, leader of t/0, is killed; at 12.62 s b2 is started again."
        )

    @pytest.mark.parametrize("kills", [8, 9])
    def test_more_are_counted_by_kind(self, kills: int) -> None:
        told = Told()
        for nth in range(kills):
            told.killed(1000 * (nth + 1), "b3")
        counted = "Between 1.00 s and 9.00 s, b3 is killed 9 times."
        assert (told.deeds() == counted) is (kills == 9)

    def test_the_peer_of_one_link_is_named_in_the_count(self) -> None:
        told = Told()
        for nth in range(9):
            told.link(1000 * (nth + 1), 1000 * (nth + 1) + 500, "link-cut", "b2", "b1")
        assert told.deeds() == "Between 1.00 s and 9.00 s, b2 is cut off from b1 9 times."

    def test_the_peers_of_several_links_are_named_in_the_count(self) -> None:
        told = Told()
        for nth in range(9):
            told.link(1000 * (nth + 1), 1000 * (nth + 1) + 500, "link-cut", "b2", "b3" if nth == 4 else "b1")
        assert told.deeds() == "Between 1.00 s and 9.00 s, b2 is cut off from b1 and b3 9 times."

    def test_four_at_once_are_counted(self) -> None:
        told = Told()
        for nth in range(4):
            told.killed(1000 + nth, f"b{nth % 2 + 1}")
        assert told.deeds() == "At 1.00 s, all at once, b1 and b2 are killed."
