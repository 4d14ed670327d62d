"""Deals: what members decided in an attempt, from which view, and which of them overlap."""

from __future__ import annotations

import pytest
from group_story import GroupStory, Wants, pairs

from rebalance_lab.checks.decisions import (
    Decision,
    DecisionPair,
    View,
    decisions_in,
    differing_pairs,
    rounds_of,
    view_doubts,
)
from rebalance_lab.checks.members import Partition
from rebalance_lab.checks.phases import judged_period
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.files import History


class DealStory(GroupStory):
    """m1 … m4 are registered and at rest at 1 s; `closing` at 20 s. Operations are only counted, so decisions'
    own words are taken; what members that record theirs had read: `test_reads`."""

    def __init__(self, **streams: dict[str, int]) -> None:
        super().__init__()
        for number in range(1, 5):
            self.joins(10 * number, f"m{number}", streams=streams.get(f"m{number}", {"t": 1}))
        self.rest(1000)
        self.phase(20_000, "closing")

    def dealt(
        self, began: float, decided: float, ended: float | None, actor: str, zxid: int = 10, wants: Wants = ()
    ) -> EventId:
        """One rebalance of one attempt; the list's zxid is the digest of the view too."""
        self.begins(began, actor)
        return self.decided(decided, ended, actor, zxid, wants)

    def decided(self, decided: float, ended: float | None, actor: str, zxid: int = 10, wants: Wants = ()) -> EventId:
        detail = {"members": 4, "members_zxid": zxid, "view": f"v{zxid}", "wants": pairs(wants)}
        self.counted(decided, actor, children=1)
        event = self.member(decided, actor, Kind.DECIDED, detail=detail)
        if ended is not None:
            self.ends(ended, actor)
        return event

    def deals(self) -> list[Decision]:
        history = self.history()
        period = judged_period(history)
        assert period is not None
        return decisions_in(history, period)

    def differing(self) -> list[tuple[EventId, EventId]]:
        """The two decisions of each pair from different views."""
        return [(each.former.decided.id, each.later.decided.id) for each in differing_pairs(self.deals())]

    def rounds(self) -> list[list[str]]:
        return [[decision.actor for decision in each.decisions] for each in rounds_of(self.deals())]


def conflicts_of(decision: Decision) -> list[tuple[Partition, ...]]:
    """What each of its failures was for."""
    return [each.lost for each in decision.conflicts]


# -- one deal -----------------------------------------------------------------------------------


def test_what_a_deal_tells() -> None:
    story = DealStory(m1={"u": 1, "t": 2})
    decided = story.dealt(2000, 2010, 2050, "m1", wants=[0, ("u", 3)])
    [decision] = story.deals()
    assert (decision.member, decision.group, decision.actor, decision.decided.id) == ("g_m1", "g", "m1", decided)
    assert decision.view == View("t u", 10, "v10")
    assert (decision.members, decision.wants) == (4, (("t", 0), ("u", 3)))
    assert (decision.end_us, decision.succeeded, decision.conflicts) == (2_050_000, True, ())


def test_deals_are_in_the_order_in_which_their_attempts_began() -> None:
    story = DealStory()
    story.dealt(2010, 2020, 2050, "m1")
    story.dealt(2000, 2030, 2050, "m2")
    assert [decision.actor for decision in story.deals()] == ["m2", "m1"]


def test_a_decision_that_names_no_list_is_counted_apart() -> None:
    """As of a real member whose log does not show it: to take it for an old list would convict it."""
    story = DealStory()
    story.begins(500, "m1")
    story.member(510, "m1", Kind.DECIDED, detail={"members": 1, "view": "aa", "wants": [["t", 0]]})
    for ms in (2000, 3000):
        story.begins(ms, "m1")
        story.member(ms + 10, "m1", Kind.DECIDED, detail={"members": 1, "view": "aa", "wants": [["t", 0]]})
        story.ends(ms + 20, "m1")
    story.dealt(4000, 4010, 4050, "m2")
    assert [decision.actor for decision in story.deals()] == ["m2"]
    history = story.history()
    period = judged_period(history)
    assert period is not None
    assert str(view_doubts(history, period)).startswith("2 decisions do not record")


def test_a_member_that_never_registered_has_no_subscription() -> None:
    story = DealStory()
    story.comes(1500, "m9")
    story.claims(1600, "m9", 0)  # an owner is no registration
    story.dealt(2000, 2010, 2050, "m9")
    assert [decision.view.subscription for decision in story.deals()] == [""]


def test_a_filter_is_never_the_name_of_a_topic() -> None:
    story = DealStory()
    for actor, pattern in (("m8", "white_list"), ("m9", "static")):
        story.comes(1500, actor)
        story.registers(1500, actor, streams={"t": 1}, pattern=pattern)
        story.dealt(2000, 2010, 2050, actor)
    assert len({decision.view.subscription for decision in story.deals()}) == 2


def test_an_attempt_that_failed_succeeded_in_nothing() -> None:
    story = DealStory()
    story.dealt(2000, 2010, None, "m1")
    story.fails(2050, "m1", "conflict", conflicts=[0])
    story.attempts(2060, "m1")
    story.decided(2070, None, "m1")
    story.fails(2080, "m1", "no-brokers")
    first, second = story.deals()
    assert (first.end_us, first.succeeded, conflicts_of(first)) == (2_050_000, False, [(("t", 0),)])
    assert (second.end_us, second.succeeded, conflicts_of(second)) == (2_080_000, False, [])


def test_one_that_is_under_way_at_the_end_lasts_until_then() -> None:
    story = DealStory()
    story.dealt(2000, 2010, None, "m1")
    [decision] = story.deals()
    assert (decision.ended, decision.end_us, decision.succeeded) == (None, 20_000_000, False)
    history = story.history()
    period = judged_period(history)
    assert period is not None
    [decision] = decisions_in(
        History(history.trial, history.events[:-1]), period
    )  # without TRIAL_ENDED, of the same moment
    assert decision.end_us == 20_000_000


def test_an_attempt_that_gave_up_its_claims_ends_where_it_failed() -> None:
    story = DealStory()
    story.dealt(2000, 2010, None, "m1")
    story.fails(2050, "m1", "conflict", conflicts=[0])
    story.attempts(2060, "m1")
    story.fails(2080, "m1", "no-brokers")
    assert [decision.end_us for decision in story.deals()] == [2_050_000]


def test_a_decision_may_not_say_how_many_members_it_saw() -> None:
    story = DealStory()
    story.begins(2000, "m1")
    story.counted(2000, "m1", children=1)
    story.member(2010, "m1", Kind.DECIDED, detail={"members_zxid": 10, "view": "v", "wants": []})
    assert [decision.members for decision in story.deals()] == [0]


def test_of_a_member_that_was_shutting_down_nothing_followed() -> None:
    story = DealStory()
    story.dealt(2000, 2010, None, "m1")
    story.fails(2050, "m1", "shutdown")
    assert story.deals() == []


def test_a_deal_whose_claims_are_kept_lasts_until_they_are_given_up() -> None:
    """keep.claims.on.conflict: the next attempt goes on without another decision."""
    story = DealStory()
    story.dealt(2000, 2010, None, "m1")
    told = {"reason": "conflict", "holds": [["t", 0]], "conflicts": [["t", 1]]}
    story.member(2020, "m1", Kind.ATTEMPT_FAILED, detail=told)
    story.attempts(2500, "m1")
    story.ends(2520, "m1")
    [decision] = story.deals()
    assert (decision.end_us, decision.succeeded, conflicts_of(decision)) == (2_520_000, True, [(("t", 1),)])


def test_claims_that_are_kept_over_two_attempts_last_until_the_third() -> None:
    story = DealStory()
    story.dealt(2000, 2010, None, "m1")
    for ms, lost in ((2020, 1), (2520, 2)):
        told = {"reason": "conflict", "holds": [["t", 0]], "conflicts": [["t", lost]]}
        story.member(ms, "m1", Kind.ATTEMPT_FAILED, detail=told)
        story.attempts(ms + 10, "m1")
    story.ends(2600, "m1")
    [decision] = story.deals()
    assert (decision.end_us, conflicts_of(decision)) == (2_600_000, [(("t", 1),), (("t", 2),)])


def test_kept_claims_end_where_the_next_decision_begins() -> None:
    story = DealStory()
    story.dealt(2000, 2010, None, "m1")
    story.member(2020, "m1", Kind.ATTEMPT_FAILED, detail={"reason": "conflict", "holds": [["t", 0]]})
    story.attempts(2500, "m1")
    story.decided(2510, 2520, "m1")
    assert [decision.end_us for decision in story.deals()] == [2_020_000, 2_520_000]


def test_claims_that_are_kept_in_the_last_attempt_end_with_it() -> None:
    story = DealStory()
    story.dealt(2000, 2010, None, "m1")
    story.member(2020, "m1", Kind.ATTEMPT_FAILED, detail={"reason": "conflict", "holds": [["t", 0]]})
    assert [decision.end_us for decision in story.deals()] == [2_020_000]


def test_what_began_before_the_first_rest_is_not_looked_at() -> None:
    story = DealStory()
    story.dealt(500, 2010, 2050, "m1")
    assert story.deals() == []


# -- deals from different views -----------------------------------------------------------------


def test_a_deal_is_apart_from_one_that_is_under_way() -> None:
    story = DealStory()
    first = story.dealt(2000, 2010, 2050, "m1", zxid=10)
    second = story.dealt(2000, 2040, 2060, "m2", zxid=11)
    assert story.differing() == [(first, second)]


def test_a_newer_list_after_the_end_of_the_other_deal_is_not_apart() -> None:
    story = DealStory()
    story.dealt(2000, 2010, 2040, "m1", zxid=10)
    story.dealt(2000, 2040, 2060, "m2", zxid=11)
    assert story.differing() == []


def test_an_older_list_is_apart_from_a_newer_one_at_any_time() -> None:
    story = DealStory()
    first = story.dealt(2000, 2010, 2040, "m1", zxid=11)
    second = story.dealt(3000, 3010, 3060, "m2", zxid=10)
    assert story.differing() == [(first, second)]


def test_an_older_list_is_apart_from_all_that_dealt_from_a_newer_one() -> None:
    story = DealStory()
    first = story.dealt(2000, 2010, 2020, "m1", zxid=11)
    second = story.dealt(2100, 2110, 2120, "m2", zxid=11)
    under_way = story.dealt(2900, 2910, 3900, "m3", zxid=9)
    late = story.dealt(3000, 3010, 3060, "m4", zxid=10)
    assert story.differing() == [
        (first, under_way),
        (second, under_way),
        (first, late),
        (second, late),
        (under_way, late),
    ]


def test_a_newer_list_is_apart_from_all_that_are_under_way() -> None:
    story = DealStory()
    long = story.dealt(2000, 2010, 2090, "m1", zxid=10)
    story.dealt(2000, 2020, 2080, "m2", zxid=10)
    later = story.dealt(2000, 2080, 2100, "m3", zxid=11)
    assert story.differing() == [(long, later)]


def test_what_a_member_has_dealt_anew_is_out_of_force() -> None:
    story = DealStory()
    story.dealt(2000, 2010, 2020, "m1", zxid=11)
    again = story.dealt(2100, 2110, 2120, "m1", zxid=12)
    older = story.dealt(2200, 2210, 2220, "m2", zxid=10)
    assert story.differing() == [(again, older)]


def test_a_member_is_not_apart_from_itself() -> None:
    story = DealStory()
    story.dealt(2000, 2010, 2090, "m1", zxid=11)
    story.dealt(2100, 2110, 2120, "m1", zxid=10)
    assert story.differing() == []


def test_members_of_different_topics_are_apart_by_their_lists_only() -> None:
    assert not View("t", 10, "aa").differs(View("u", 10, "bb"))
    assert View("t", 10, "aa").differs(View("u", 11, "aa"))
    assert View("t", 10, "aa").differs(View("t", 10, "bb"))
    assert not View("t", 10, "aa").differs(View("t", 11, "aa"))


def test_the_stale_one_dealt_from_the_older_list() -> None:
    story = DealStory()
    story.dealt(2000, 2010, 2090, "m1", zxid=11)
    story.dealt(2000, 2020, 2090, "m2", zxid=10)
    newer, older = story.deals()
    assert DecisionPair(newer, older).stale is older
    assert DecisionPair(older, newer).stale is older
    assert DecisionPair(newer, newer).stale is None


# -- rounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("began", "rounds"),
    [(2049.999, [["m1", "m2", "m3"]]), (2050, [["m1", "m2"], ["m3"]]), (2060, [["m1", "m2"], ["m3"]])],
)
def test_a_round_goes_on_while_any_of_its_deals_does(began: float, rounds: list[list[str]]) -> None:
    story = DealStory()
    story.dealt(2000, 2010, 2050, "m1")
    story.dealt(2010, 2015, 2020, "m2")
    story.dealt(began, began + 5, began + 20, "m3")
    assert story.rounds() == rounds


def test_a_round_ends_with_the_last_of_its_deals() -> None:
    story = DealStory()
    story.dealt(2000, 2010, 2050, "m1")
    story.dealt(2010, 2015, 2020, "m2")
    assert [each.end_us for each in rounds_of(story.deals())] == [2_050_000]


def test_each_group_has_rounds_of_its_own() -> None:
    story = DealStory()
    story.dealt(2000, 2010, 2050, "m1")
    story.joins(1500, "m7", group="h")
    story.begins(2005, "m7", group="h")
    story.counted(2005, "m7", children=1)
    detail = {"members": 1, "members_zxid": 5, "view": "h", "wants": []}
    story.add(2010, "m7", Kind.DECIDED, member="h_m7", group="h", detail=detail)
    story.ends(2090, "m7", group="h")
    story.dealt(2060, 2070, 2080, "m2")
    assert story.rounds() == [["m1"], ["m7"], ["m2"]]
    assert story.differing() == []
