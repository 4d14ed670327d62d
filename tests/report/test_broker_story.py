"""The story of a trial of brokers, told of histories written by hand: partition t/0, first led by b1."""

from __future__ import annotations

import re

import msgspec
import pytest
from led_story import LedPartition
from log_story import Logs
from write_story import Writes

from rebalance_lab.analysis.trialwise.rows import intervals_of
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.report.glossary import words_of
from rebalance_lab.report.narrator import narrator_of
from rebalance_lab.report.scene import build_scene


class Told(LedPartition, Logs, Writes):
    """Brokers 1 and 2 have the partition; broker 3 is the controller."""

    def __init__(self) -> None:
        super().__init__()
        self.controls(15, 3, 1)
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

    def phase_closing(self, ms: float) -> None:
        """The runner takes the brokers down: b1 first, and what it led and controlled goes to others."""
        self.phase(ms, "closing")
        self.deposed(ms + 30, 3)
        self.elected(ms + 40, 2, 2)
        self.state(ms + 50, 2, 1, 2)
        self.leads(ms + 60, 2, 1, 2)
        self.cut(ms + 60, 1, 5, 3)

    def fails_over(self, elected_ms: float, leader: int, leader_epoch: int) -> None:
        """The registry names a leader, which hears of it 10 ms later."""
        self.state(elected_ms, leader, leader_epoch, 1, 2)
        self.leads(elected_ms + 10, leader, leader_epoch, 1, 2)

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

    def test_eight_kills_are_told_one_by_one(self) -> None:
        told = Told()
        for nth in range(8):
            told.killed(1000 * (nth + 1), "b3")
        assert re.findall(r"t (\d)\.00 s b3", told.deeds()) == list("12345678")

    def test_nine_are_counted_by_kind(self) -> None:
        told = Told()
        for nth in range(9):
            told.killed(1000 * (nth + 1), "b3")
        assert told.deeds() == "Between 1.00 s and 9.00 s, b3 is killed 9 times."

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

    def test_the_peer_of_a_link_is_named_on_its_event(self) -> None:
        told = Told()
        told.link(1000, 2000, "slow-link", "b2", "b1")
        (began,) = [each for each in told.history().events if each.kind is Kind.FAULT_BEGAN]
        assert words_of("replication").deed(began, "b2") == "b2 reaches b1 slowly"

    def test_four_at_once_are_counted(self) -> None:
        told = Told()
        for nth in range(4):
            told.killed(1000 + nth, f"b{nth % 2 + 1}")
        assert told.deeds() == "At 1.00 s, all at once, b1 and b2 are killed."


class TestLeaders:
    def test_of_one_that_dies_before_it_leads(self) -> None:
        told = Told()
        told.killed(4120, "b1")
        told.state(6100, 2, 1, 1, 2)
        told.killed(6101, "b2")
        told.restarted(7000, 1)
        told.state(8100, 1, 2, 1)
        told.leads(8110, 1, 2, 1)
        before, after = told.story()[1:3]
        assert "at 6.10 s b2, leader of t/0 according to ZooKeeper, is killed" in before
        assert after == (
            "For 3.99 s no broker leads t/0; b2 is elected at 6.10 s and dies before it leads; b1 leads from 8.11 s."
        )

    def test_of_one_that_is_dead_when_it_is_elected(self) -> None:
        told = Told()
        told.killed(5000, "b2")
        told.state(6100, 2, 1, 1, 2)
        told.restarted(7000, 2)
        told.fails_over(8100, 1, 2)
        assert told.story()[2] == "b2 is elected at 6.10 s, when it is dead already."

    def test_of_one_that_does_not_hear_of_it(self) -> None:
        told = Told()
        told.state(6100, 2, 1, 1, 2)
        told.fails_over(8100, 1, 2)
        assert told.story()[2] == "b2 is elected at 6.10 s and does not lead."

    def test_of_one_that_hears_of_a_later_epoch_of_its_own(self) -> None:
        """The state changes again before the order arrives, with the same leader."""
        told = Told()
        told.state(6100, 2, 1, 1, 2)
        told.state(6105, 2, 2, 2)
        told.leads(6110, 2, 2, 2)
        assert told.story()[2] == "The next leader is b2 from 6.11 s."

    def test_no_leader_is_none_that_does_not_lead(self) -> None:
        told = Told()
        told.killed(5000, "b1")
        told.state(6000, -1, 1, 1)
        told.restarted(7000, 1)
        told.fails_over(7100, 1, 2)
        assert told.story()[2].endswith("; b1 leads again from 7.11 s.")

    def test_of_many_those_that_do_not_lead_are_counted(self) -> None:
        told = Told()
        for nth in range(4):
            told.fails_over(1000 * (nth + 1), 2 - nth % 2, nth + 1)
        told.state(5000, 2, 5, 1, 2)
        told.state(6000, 1, 6, 1, 2)
        told.state(7000, 2, 7, 1, 2)
        assert told.story()[2] == (
            "The leader changes 4 times; 3 times a broker is elected that does not lead; the last is b1, from 4.01 s."
        )


class TestClosing:
    def test_what_changes_while_the_brokers_are_taken_down_is_not_told(self) -> None:
        told = Told()
        told.phase_closing(4200)
        assert told.story() == (
            "Brokers b1 and b2 have replicas of t/0, and b1 leads first; nothing is written.",
            "Nothing is done to them.",
            "Nothing is read in the end, so nobody knows what is left.",
        )

    def test_what_changed_before_is_told(self) -> None:
        told = Told()
        told.deposed(1000, 3)
        told.elected(1010, 2, 2)
        told.state(1020, 2, 1, 2)
        told.leads(1030, 2, 1, 2)
        told.phase(4200, "closing")
        assert told.story()[1:3] == (
            "Nothing is done to them; after b3, the controller is b2 from 1.01 s.",
            "The next leader is b2 from 1.03 s.",
        )

    def test_a_read_of_the_instant_in_which_closing_begins_is_told(self) -> None:
        """Virtual time stands still between them."""
        told = Told()
        told.wrote(1000, 1, 0)
        told.read(4199, (0, 1))
        told.phase(4200, "closing")
        assert told.story()[-1] == "In the end a reader finds 1 record; all 1 that were acknowledged are there."


class TestCounts:
    @pytest.mark.parametrize(
        ("values", "said"),
        [
            ([1, 2], ""),
            ([1, 1, 2], "; 1 record is in the log twice"),
            ([1, 1, 2, 2], "; 2 records are in the log twice"),
            ([1, 1, 1, 2], "; 1 record is in the log 3 times"),
            ([1, 1, 1, 2, 2], "; 1 record is in the log twice and 1 record is in the log 3 times"),
        ],
    )
    def test_records_that_are_in_the_log_several_times(self, values: list[int], said: str) -> None:
        told = Told()
        told.wrote(1000, 1, 0)
        told.wrote(1010, 2, values.index(2))
        told.read(2000, *enumerate(values))
        found = f"In the end a reader finds {len(values)} records; all 2 that were acknowledged are there"
        assert told.story()[-1] == f"{found}{said}."

    def test_what_the_client_sent_twice_may_be_there_twice(self) -> None:
        told = Told()
        told.wrote(1000, 1, 0)
        told.wrote(1010, 1, 1)
        told.read(2000, (0, 1), (1, 1))
        assert told.story()[-1].endswith("; 1 record is in the log twice (no more often than it was sent).")

    def test_of_one_truncation_the_records_are_counted(self) -> None:
        told = Told()
        told.cut(1000, 2, 5, 3)
        assert told.story()[2] == ("To follow a leader, b2 cuts off 2 records, which the leader lacks or sends again.")

    @pytest.mark.parametrize(("number", "who"), [(2, "b2 cuts"), (1, "b1 and b2 cut")])
    def test_a_record_that_is_cut_off_twice_counts_twice(self, number: int, who: str) -> None:
        told = Told()
        told.cut(1000, 2, 5, 3)
        told.cut(2000, number, 5, 4)
        assert told.story()[2] == (
            f"To follow a leader, {who} off what the leader lacks or sends again: "
            "3 records in 2 truncations, each counted as often as it is cut off."
        )
