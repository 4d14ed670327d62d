"""The order in a rebalance (Z5a): tiny histories, findings in full."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import Kind

CHECK = CHECKS["order_in_rebalance"]


def owner_of_two(*, lab: Sequence[str] = (), **told: object) -> GroupStory:
    """m1 owns t/0 and t/1 from its first rebalance (until 100 ms), and begins another at 1000 ms: m1/5, m1/6.
    `lab`: the settings of the lab that its MEMBER_STARTED names."""
    story = GroupStory(**told)  # type: ignore[arg-type]
    story.comes(0, "m1", lab=list(lab))
    story.registers(0, "m1")
    story.begins(10, "m1")
    story.claims(50, "m1", 0, 1)
    story.ends(100, "m1")
    story.begins(1000, "m1")
    return story


def judge(story: GroupStory) -> Finding:
    story.rest(2000)
    return CHECK.judge(story.history())


def test_all_is_given_up_before_anything_is_taken() -> None:
    story = owner_of_two()
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 1, 2)
    story.ends(1100, "m1")
    numbers = {"count": 0, "attempts": 2, "both": 1, "claims": 4, "releases": 2}
    why = "in every attempt all that the member owned was gone before the first claim"
    assert judge(story) == Finding(Outcome.CLEAN, why, (), numbers)


def test_what_is_given_up_is_counted_in_the_attempt_that_did_it() -> None:
    story = owner_of_two()
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 1, 2)
    story.ends(1100, "m1")
    story.rebalances(1200, 1300, "m1", "failed")
    assert judge(story).measures == {"count": 0, "attempts": 2, "both": 1, "claims": 4, "releases": 2}


def test_something_is_taken_before_all_is_given_up() -> None:
    story = owner_of_two()
    story.releases(1010, "m1", 0)
    [claim] = story.claims(1020, "m1", 2)
    story.releases(1030, "m1", 1)
    story.ends(1100, "m1")
    numbers = {"count": 1, "attempts": 2, "both": 1, "claims": 3, "releases": 2}
    why = "g_m1 claimed t/2 while it held t/1"
    assert judge(story) == Finding(Outcome.VIOLATED, why, (("m1", 6), ("zookeeper", 2), claim), numbers)


def test_something_is_never_given_up() -> None:
    story = owner_of_two()
    story.releases(1010, "m1", 0)
    [claim] = story.claims(1020, "m1", 2)
    story.ends(1100, "m1")
    finding = judge(story)
    assert (finding.outcome, finding.why) == (Outcome.VIOLATED, "g_m1 claimed t/2 while it held t/1")
    assert finding.witness == (("m1", 6), ("zookeeper", 2), claim)


def test_who_claims_nothing_may_not_keep_its_share_either() -> None:
    story = owner_of_two()
    story.releases(1010, "m1", 1)
    story.decides(1020, "m1", [0])
    ended = story.ends(1100, "m1")
    finding = judge(story)
    assert (finding.outcome, finding.why) == (
        Outcome.VIOLATED,
        "g_m1 ended a rebalance and had not given t/0 up",
    )
    assert finding.witness == (("m1", 6), ("zookeeper", 1), ended)


def test_who_keeps_nothing_and_takes_nothing_breaks_no_order() -> None:
    story = owner_of_two()
    story.releases(1010, "m1", 0, 1)
    story.decides(1020, "m1", [])
    story.ends(1100, "m1")
    story.rebalances(1200, 1300, "m1")
    assert judge(story).outcome is Outcome.CLEAN


def test_a_release_as_the_rebalance_ends_leaves_it_open() -> None:
    story = owner_of_two()
    story.decides(1020, "m1", [])
    story.ends(1100, "m1")
    story.releases(1102, "m1", 0, 1)
    assert judge(story).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("outcome", ["failed", "shutdown"])
def test_who_gets_no_share_may_keep_what_it_had(outcome: str) -> None:
    """An attempt that fails in its first steps has released nothing (F6)."""
    story = owner_of_two()
    story.decides(1020, "m1", [0])
    story.ends(1100, "m1", outcome)
    assert judge(story).outcome is Outcome.CLEAN


def test_a_rebalance_that_found_no_broker_gives_nothing_up() -> None:
    story = owner_of_two()
    message = "no brokers found when trying to rebalance."
    story.member(1050, "m1", Kind.WARNED, detail={"message": message})
    story.ends(1100, "m1")
    assert judge(story).outcome is Outcome.CLEAN


def test_a_rebalance_that_ends_before_it_decides_has_kept_its_share() -> None:
    story = owner_of_two()
    story.member(1050, "m1", Kind.WARNED, detail={"message": "No broker partitions consumed"})
    ended = story.ends(1100, "m1")
    finding = judge(story)
    assert (finding.outcome, finding.why) == (Outcome.VIOLATED, "g_m1 ended a rebalance and had not given t/0 up")
    assert finding.witness == (("m1", 6), ("zookeeper", 1), ended)


def test_a_claim_in_a_session_that_nobody_had_is_its_member_s() -> None:
    story = owner_of_two()
    place = {"member": "g_m1", "group": "g", "topic": "t", "partition": 2}
    story.registry(900, Kind.CREATED, "/consumers/g/owners/t/2", "0xfe", **place)
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 0)
    story.ends(1100, "m1")
    assert judge(story).why == "g_m1 claimed t/0 while it held t/2"


def test_another_member_s_claim_in_a_session_that_nobody_had_is_not_its_own() -> None:
    story = owner_of_two()
    place = {"member": "g_m9", "group": "g", "topic": "t", "partition": 2}
    story.registry(900, Kind.CREATED, "/consumers/g/owners/t/2", "0xfe", **place)
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 0)
    story.ends(1100, "m1")
    assert judge(story).outcome is Outcome.CLEAN


def test_what_it_has_of_a_former_session_is_not_its_own_any_more() -> None:
    story = owner_of_two()
    story.add(1010, "m1", Kind.CONNECTED, group=None, session="0x9")
    story.created(1020, "m1", 2, "0x9")
    story.ends(1100, "m1")
    assert judge(story).outcome is Outcome.CLEAN


def conflict(story: GroupStory) -> GroupStory:
    """The first attempt of m1's second rebalance claims t/3, fails, and keeps it; the next claims t/4."""
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 3)
    story.fails(1030, "m1", conflicts=[4])
    story.attempts(1500, "m1")
    story.claims(1520, "m1", 4)
    story.ends(1600, "m1")
    return story


def test_what_a_failed_attempt_left_behind_is_not_given_up() -> None:
    """Leftover claims, F7."""
    finding = judge(conflict(owner_of_two()))
    assert (finding.outcome, finding.why) == (Outcome.VIOLATED, "g_m1 claimed t/4 while it held t/3")


def test_who_is_told_to_keep_its_claims_keeps_those_of_the_same_rebalance() -> None:
    story = conflict(owner_of_two(lab=["keep.claims.on.conflict"]))
    assert judge(story).outcome is Outcome.CLEAN
    story = conflict(owner_of_two(lab=["keep.claims.on.conflict"]))
    story.begins(1700, "m1")
    story.releases(1710, "m1", 3)
    story.claims(1720, "m1", 5)
    story.ends(1750, "m1")
    finding = judge(story)
    assert (finding.outcome, finding.why) == (Outcome.VIOLATED, "g_m1 claimed t/5 while it held t/4")


def test_the_registry_s_order_counts_not_its_times() -> None:
    story = owner_of_two()
    story.claims(1020, "m1", 2)
    story.releases(1020, "m1", 0)
    story.ends(1100, "m1")
    assert judge(story).outcome is Outcome.VIOLATED


def test_what_a_rebalance_made_it_may_take_back() -> None:
    """A conflict: what was claimed goes again, and the next attempt claims once more."""
    story = owner_of_two()
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 0)
    story.releases(1030, "m1", 0)
    story.attempts(1500, "m1")
    story.claims(1600, "m1", 0, 1)
    story.ends(1700, "m1")
    assert judge(story).outcome is Outcome.CLEAN


def test_what_goes_with_a_session_is_no_release() -> None:
    story = owner_of_two()
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 2)
    story.deleted(1030, "m1", 0, "0x1", detail={"with_session": True})
    story.ends(1100, "m1")
    assert judge(story).outcome is Outcome.CLEAN


def test_a_blind_release_of_what_is_another_s_by_now_is_a_release() -> None:
    story = owner_of_two()
    story.joins(1001, "m2")
    story.claims(1005, "m2", 5)
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 2)
    story.deleted(1030, "m2", 5, "0x1")  # m2's znode, deleted by m1's session
    story.ends(1100, "m1")
    finding = judge(story)
    assert (finding.outcome, finding.why) == (Outcome.VIOLATED, "g_m1 claimed t/2, then gave t/5 up")


def test_so_is_one_in_the_first_attempt_of_all() -> None:
    story = GroupStory()
    story.joins(0, "m2")
    story.claims(5, "m2", 5)
    story.joins(0, "m1")
    story.begins(10, "m1")
    story.claims(50, "m1", 0)
    story.deleted(60, "m2", 5, "0x1")
    story.ends(100, "m1")
    assert judge(story).why == "g_m1 claimed t/0, then gave t/5 up"


def test_who_had_nothing_breaks_no_order() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.begins(10, "m1")
    story.claims(50, "m1", 0)
    story.ends(100, "m1")
    finding = judge(story)
    assert (finding.outcome, finding.measures["both"]) == (Outcome.CLEAN, 0)


def test_without_a_claim_there_is_nothing_to_look_at() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    assert not CHECK.applies(story.history())
    story.rebalances(10, 20, "m1")
    assert CHECK.applies(story.history())
    finding = judge(story)
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "no rebalance claimed a partition")


def test_what_is_written_elsewhere_is_no_claim() -> None:
    story = owner_of_two()
    place = {"member": "g_m1", "group": "g", "topic": "t", "partition": 2}
    story.registry(1005, Kind.CREATED, "/consumers/g/offsets/t/2", "0x1", **place)
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 0)
    story.ends(1100, "m1")
    finding = judge(story)
    assert (finding.outcome, finding.measures["claims"]) == (Outcome.CLEAN, 3)


def test_each_attempt_that_breaks_the_order_counts() -> None:
    story = owner_of_two()
    story.claims(1020, "m1", 2)
    story.releases(1030, "m1", 0, 1)
    story.ends(1100, "m1")
    story.begins(1200, "m1")
    story.claims(1210, "m1", 3)
    story.ends(1300, "m1")
    assert judge(story).measures["count"] == 2


def test_only_what_its_session_has_must_be_given_up_at_the_end() -> None:
    """t/0 and t/1 are of its former session, and t/2 of this one."""
    story = owner_of_two()
    story.add(1005, "m1", Kind.CONNECTED, group=None, session="0x9")
    story.decides(1020, "m1", [])
    story.ends(1100, "m1")
    assert judge(story).outcome is Outcome.CLEAN
    story.begins(2100, "m1")
    story.created(2110, "m1", 2, "0x9")
    story.ends(2200, "m1")
    story.begins(2300, "m1")
    story.decides(2310, "m1", [])
    story.ends(2400, "m1")
    assert judge(story).why == "g_m1 ended a rebalance and had not given t/2 up"


def test_who_was_never_connected_holds_nothing() -> None:
    story = GroupStory()
    story.elsewhere(0, up_to=1)
    story.started(0, "m1")
    story.begins(10, "m1")
    story.decides(20, "m1", [])
    story.ends(30, "m1")
    assert judge(story).why == "no rebalance claimed a partition"
