"""Z1: znodes that a member's session deleted after the member was killed."""

from __future__ import annotations

import pytest
from group_story import GroupStory
from test_deletions import CHECK, PATH, sends

from rebalance_lab.checks import Outcome


@pytest.mark.parametrize("closes", [False, True])
def test_where_operations_are_counted_a_deletion_after_the_kill_is_a_doubt(closes: bool) -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.counted(20, "m1", create=1)
    if closes:  # an older session of the process
        story.asks(30, "m1", "close", "")
    story.claims(50, "m1", 0)
    story.begins(390, "m1")
    story.killed(400, "m1")
    story.releases(500, "m1", 0)
    story.session_closed(900, "0x1")  # zxid 4
    story.deleted_id(900, "m1", "0x1", zxid=4)
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert finding.outcome is Outcome.UNKNOWN
    assert f"{PATH} was deleted after g_m1 was killed, and its operations were not recorded" in finding.why


@pytest.mark.parametrize(("released_ms", "outcome"), [(402, Outcome.CLEAN), (402.001, Outcome.UNKNOWN)])
def test_a_request_without_an_answer_leaves_a_deletion_after_the_kill_in_doubt(
    released_ms: float, outcome: Outcome
) -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.claims(50, "m1", 0, 1)
    story.observed(300, "m1")
    story.observed_owners(300, {0: "m1", 1: "m1"})
    sends(399)(story)
    story.killed(400, "m1")
    story.releases(released_ms, "m1", 0)
    story.session_closed(900, "0x1")  # zxid 5
    story.deleted_id(900, "m1", "0x1", zxid=5)
    story.deleted(900, "m1", 1, "0x1", zxid=5)
    story.observed(1000)
    story.observed_owners(1000, {})
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert finding.outcome is outcome
    doubt = f"{PATH} was deleted after g_m1 was killed, and its delete request had no answer"
    assert (finding.why == doubt) is (outcome is Outcome.UNKNOWN)


def test_an_answer_explains_a_deletion_after_the_kill() -> None:
    """The registry's clock is 2.5 ms ahead."""
    story = GroupStory()
    story.joins(0, "m1")
    story.claims(50, "m1", 0)
    story.observed(300, "m1")
    story.observed_owners(300, {0: "m1"})
    story.asks(399, "m1", "delete", PATH, zxid=3)
    story.killed(400, "m1")
    story.releases(402.5, "m1", 0)
    story.session_closed(900, "0x1")  # zxid 4
    story.deleted_id(900, "m1", "0x1", zxid=4)
    story.observed(1000)
    story.observed_owners(1000, {})
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.measures["count"]) == (Outcome.CLEAN, 0)


def test_a_deletion_before_the_kill_hides_no_later_one() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.claims(50, "m1", 0, 1)
    sends(399)(story)
    sends(399, "/consumers/g/owners/t/1")(story)
    story.killed(400, "m1")
    story.releases(401, "m1", 0)
    story.releases(500, "m1", 1)
    story.session_closed(900, "0x1")  # zxid 6
    story.deleted_id(900, "m1", "0x1", zxid=6)
    story.rest(2000)
    doubt = (
        "/consumers/g/owners/t/1 was deleted after g_m1 was killed, and its delete request had no answer; "
        "the id of g_m1 was not observed before its kill; the ids were not observed after g_m1 was gone; "
        "the owner znodes of g_m1 were not observed before its kill; "
        "the owner znodes of g_m1 were not observed after it was gone"
    )
    assert doubt in CHECK.judge(story.history()).why
