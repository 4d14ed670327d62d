"""What members had read when they decided (`checks.decisions`), and decisions that name another list."""

from __future__ import annotations

import pytest
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.checks.decisions import Decision, decisions_in, differing_pairs, view_doubts
from rebalance_lab.checks.phases import judged_period
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.wire.view_digest import view_digest

IDS = "/consumers/g/ids"


class ReadStory(GroupStory):
    """m1 and m2 rest at 1 s; m3 joins at 2 s. `lists`: the zxids of these three changes of the list of members."""

    def __init__(self) -> None:
        super().__init__()
        self.topic(0, "t", 2)
        joined = [self.joins(10, "m1"), self.joins(20, "m2")]
        self.rest(1000)
        joined.append(self.joins(2000, "m3"))
        zxids = {event.id: event.zxid or 0 for event in self.events}
        self.lists = [zxids[each] for each in joined]

    def decided(
        self,
        ms: float,
        actor: str,
        read: int | None,
        named: int,
        *,
        view: str = "v",
        topic: int = 99,
    ) -> EventId:
        """An attempt that reads the list at zxid `read`, and topic t at `topic` before that, and names list `named`."""
        self.begins(ms, actor)
        self.asks(ms + 1, actor, "get", "/brokers/topics/t", zxid=topic)
        if read is not None:
            self.asks(ms + 2, actor, "children", IDS, zxid=read)
        detail = {"members": 7, "members_zxid": named, "view": view, "wants": []}
        event = self.member(ms + 3, actor, Kind.DECIDED, detail=detail)
        self.ends(ms + 50, actor)
        return event

    def deals(self) -> list[Decision]:
        history = self.history()
        period = judged_period(history)
        assert period is not None
        return decisions_in(history, period)

    def doubt(self) -> str | None:
        history = self.history()
        period = judged_period(history)
        assert period is not None
        return view_doubts(history, period)

    def disagreement(self) -> Finding:
        self.rest(9000)
        return CHECKS["disagreement"].judge(self.history())


def test_the_list_is_what_the_registry_held_when_the_server_answered() -> None:
    story = ReadStory()
    _, second, third = story.lists
    story.decided(2500, "m1", second, second)
    story.decided(3500, "m2", third, third)
    story.decided(4500, "m3", third + 5, third)  # other changes followed
    one, other, last = story.deals()
    assert (one.members, other.members, last.members) == (2, 3, 3)
    assert one.view.digest != other.view.digest
    assert other.view == last.view
    assert story.doubt() is None


def test_the_digest_that_a_decision_reports_plays_no_part() -> None:
    story = ReadStory()
    _, second, third = story.lists
    story.decided(2500, "m1", third, third, view="a")
    story.decided(3500, "m2", third, third, view="b")
    story.decided(4500, "m3", second, second, view="b")
    one, other, last = story.deals()
    assert not one.view.differs(other.view)
    assert other.view.differs(last.view)


@pytest.mark.parametrize("named", [0, 999])
def test_who_names_a_list_that_it_never_read_saw_the_one_that_it_read(named: int) -> None:
    story = ReadStory()
    story.decided(2500, "m1", story.lists[2], named)
    assert [(decision.view.zxid, decision.members, decision.named) for decision in story.deals()] == [
        (story.lists[2], 3, False)
    ]
    assert story.doubt() == (f"g_m1 decided from the members at zxid {named:#x}, which it had not read in that attempt")
    assert story.disagreement().outcome is Outcome.UNKNOWN


def test_attempts_of_which_nothing_is_said_hide_no_later_one() -> None:
    """One comes to no decision, and one names no list."""
    story = ReadStory()
    third = story.lists[2]
    story.begins(2100, "m1")
    story.fails(2150, "m1", "error")
    story.begins(2200, "m1")
    story.member(2210, "m1", Kind.DECIDED, detail={"members": 1, "view": "aa", "wants": []})
    story.ends(2250, "m1")
    story.decided(2500, "m1", third, 999)
    assert story.doubt() == (
        "1 decisions do not record which list of members they were made from; "
        "g_m1 decided from the members at zxid 0x3e7, which it had not read in that attempt"
    )


def test_a_member_that_recorded_no_list_read_none() -> None:
    story = ReadStory()
    story.decided(2500, "m1", None, story.lists[2])
    assert story.deals() == []
    assert story.doubt() == "g_m1 decided, but what it had read in that attempt does not show from which view"
    assert story.disagreement().outcome is Outcome.UNKNOWN


def test_a_list_that_is_read_later_is_not_the_one() -> None:
    story = ReadStory()
    story.decided(2500, "m1", story.lists[1], story.lists[2])
    story.asks(2600, "m1", "children", IDS, zxid=story.lists[2])
    assert [decision.view.zxid for decision in story.deals()] == [story.lists[1]]


def test_a_list_of_an_attempt_before_was_not_seen_in_this() -> None:
    """A member may deal from an old list (plant deal-from-before), and it may report that it did."""
    story = ReadStory()
    _, second, third = story.lists
    story.decided(1500, "m1", second, second)
    story.decided(2500, "m1", third, second)
    assert [(decision.view.zxid, decision.members) for decision in story.deals()] == [(second, 2), (third, 3)]
    assert str(story.doubt()).startswith(f"g_m1 decided from the members at zxid {second:#x}")


def test_partitions_are_those_that_were_read_in_the_attempt() -> None:
    story = ReadStory()
    third = story.lists[2]
    story.topic(2100, "t", 3, Kind.CHANGED)
    grown = story.events[-1].zxid or 0
    story.decided(2500, "m1", third, third, topic=grown - 1)
    story.decided(3500, "m2", third, third, topic=grown)
    one, other = story.deals()
    assert one.view.zxid == other.view.zxid
    assert one.view.differs(other.view)
    assert (one.partitions, other.partitions) == ((("t", 0), ("t", 1)), (("t", 0), ("t", 1), ("t", 2)))
    assert differing_pairs([one, other]) == []  # neither list is older, and the one had ended


def test_a_topic_of_an_attempt_before_is_not_read_in_this() -> None:
    story = ReadStory()
    third = story.lists[2]
    story.begins(2200, "m1")
    story.asks(2201, "m1", "get", "/brokers/topics/u", zxid=99)
    story.fails(2250, "m1", "error")
    story.decided(2500, "m1", third, third)
    story.decided(3500, "m2", third, third)
    one, other = story.deals()
    assert one.view == other.view


def test_what_is_read_of_another_group_is_not_this_group_s_list() -> None:
    story = ReadStory()
    third = story.lists[2]
    story.begins(2500, "m1")
    story.asks(2501, "m1", "children", "/consumers/h/ids", zxid=third)
    detail = {"members": 3, "members_zxid": third, "view": "v", "wants": []}
    story.member(2502, "m1", Kind.DECIDED, detail=detail)
    assert story.deals() == []


def test_where_operations_are_counted_the_decision_s_words_are_taken() -> None:
    story = ReadStory()
    story.decided(2500, "m1", None, 999, view="aa")
    story.counted(2600, "m1", children=3)
    (decision,) = story.deals()
    assert (decision.view.zxid, decision.view.digest, decision.members) == (999, "aa", 7)
    assert story.doubt() is None


def test_a_counted_member_compares_with_one_whose_reads_are_recorded() -> None:
    """What the one reports and what the other had read give the same digest where they saw the same."""
    story = ReadStory()
    _, second, third = story.lists
    two, three = ("g_m1", "g_m2"), ("g_m1", "g_m2", "g_m3")
    story.decided(2500, "m1", third, third)
    story.decided(3500, "m2", None, third, view=view_digest(three, {"t": (0, 1)}))
    story.decided(4500, "m2", None, second, view=view_digest(two, {"t": (0, 1)}))
    story.decided(5500, "m2", None, third, view=view_digest(three, {"t": (0, 1, 2)}))
    story.counted(5600, "m2", children=3)
    recorded, same, older, grown = story.deals()
    assert not recorded.view.differs(same.view)
    assert recorded.view.differs(older.view)
    assert recorded.view.differs(grown.view)
    assert story.doubt() is None
