"""The order in a rebalance (Z5a): tiny histories, findings in full."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from group_story import GroupStory, session_of

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


def in_order(story: GroupStory) -> bool:
    """Whether nothing broke the order."""
    return judge(story).outcome is Outcome.CLEAN


def test_all_is_given_up_before_anything_is_taken() -> None:
    story = owner_of_two()
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 1, 2)
    story.ends(1100, "m1")
    numbers = {"count": 0, "attempts": 2, "both": 1, "claims": 4, "releases": 2}
    why = "in every attempt the member gave up all that it owned before its first claim"
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
        "g_m1 ended a rebalance without giving up t/0",
    )
    assert finding.witness == (("m1", 6), ("zookeeper", 1), ended)


def test_who_keeps_nothing_and_takes_nothing_breaks_no_order() -> None:
    story = owner_of_two()
    story.releases(1010, "m1", 0, 1)
    story.decides(1020, "m1", [])
    story.ends(1100, "m1")
    story.rebalances(1200, 1300, "m1")
    assert in_order(story)


def test_a_release_as_the_rebalance_ends_leaves_it_open() -> None:
    story = owner_of_two()
    story.decides(1020, "m1", [])
    story.ends(1100, "m1")
    story.releases(1102, "m1", 0, 1)
    assert judge(story).outcome is Outcome.UNKNOWN


def test_a_rebalance_that_found_no_broker_gives_nothing_up() -> None:
    assert in_order(brokerless(came_ms=1102, went_ms=None))


def brokerless(*, came_ms: float, went_ms: float | None) -> GroupStory:
    """A broker comes, and goes. From 1000 to 1100 ms m1 rebalances, says that it finds none, and keeps what it has."""
    story = owner_of_two()
    story.broker(came_ms, 0)
    if went_ms is not None:
        story.broker(went_ms, 0, Kind.DELETED)
    message = "no brokers found when trying to rebalance."
    story.member(1050, "m1", Kind.WARNED, detail={"message": message})
    story.ends(1100, "m1")
    return story


@pytest.mark.parametrize(
    ("came_ms", "went_ms", "excused"),
    [(998, None, True), (997.999, None, False), (900, 1102, True), (900, 1102.001, False), (900, 950, True)],
)
def test_a_member_that_says_it_found_no_broker_is_held_against_the_registry(
    came_ms: float, went_ms: float | None, *, excused: bool
) -> None:
    story = brokerless(came_ms=came_ms, went_ms=went_ms)
    if excused:
        assert in_order(story)
    else:
        assert judge(story).why == "g_m1 ended a rebalance without giving up t/0"


@pytest.mark.parametrize("attempts", [0, 1])
@pytest.mark.parametrize("outcome", ["ok", "skipped"])
def test_a_rebalance_that_does_nothing_has_kept_its_share(attempts: int, outcome: str) -> None:
    story = owner_of_two()
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 0, 1)
    story.ends(1100, "m1")
    began = story.member(1200, "m1", Kind.REBALANCE_BEGAN)
    if attempts:
        began = story.attempts(1200, "m1")
    ended = story.ends(1300, "m1", outcome)
    finding = judge(story)
    assert (finding.outcome, finding.why) == (Outcome.VIOLATED, "g_m1 ended a rebalance without giving up t/0")
    assert finding.witness == (began, ("zookeeper", 5), ended)


@pytest.mark.parametrize(("ms", "outside"), [(1102, False), (1102.001, True), (1197.999, True), (1198, False)])
def test_a_claim_between_two_attempts_is_of_none(ms: float, *, outside: bool) -> None:
    story = owner_of_two()
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 0)
    ended = story.ends(1100, "m1")
    [claim] = story.claims(ms, "m1", 2)
    story.begins(1200, "m1")
    story.releases(1210, "m1", 0, 2)
    story.claims(1220, "m1", 0, 2)
    story.ends(1300, "m1")
    finding = judge(story)
    if not outside:
        assert finding.measures["count"] == 0
        return
    assert finding.why == "g_m1 claimed t/2 outside of its attempts to rebalance"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (ended, claim))


@pytest.mark.parametrize(("replied_ms", "outside"), [(1099, False), (1101, True)])
def test_the_reply_to_a_claim_says_whether_its_attempt_had_ended(replied_ms: float, *, outside: bool) -> None:
    story = owner_of_two()
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 0)
    story.claims(1100, "m1", 2)  # zxid 7
    if not outside:
        story.asks(replied_ms, "m1", "create", "/consumers/g/owners/t/2", zxid=7)
    story.ends(1100, "m1")
    if outside:
        story.asks(replied_ms, "m1", "create", "/consumers/g/owners/t/2", zxid=7)
    assert (judge(story).outcome is Outcome.VIOLATED) is outside


def test_a_claim_before_the_first_attempt_is_of_none() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    [claim] = story.claims(7.999, "m1", 0)
    story.begins(10, "m1")
    story.ends(100, "m1")
    finding = judge(story)
    assert finding.why == "g_m1 claimed t/0 outside of its attempts to rebalance"
    assert (finding.witness, finding.measures["count"]) == ((claim,), 2)  # and it kept t/0 to the end


def test_a_rebalance_that_ends_before_it_decides_has_kept_its_share() -> None:
    story = owner_of_two()
    story.member(1050, "m1", Kind.WARNED, detail={"message": "No broker partitions consumed"})
    ended = story.ends(1100, "m1")
    finding = judge(story)
    assert (finding.outcome, finding.why) == (Outcome.VIOLATED, "g_m1 ended a rebalance without giving up t/0")
    assert finding.witness == (("m1", 6), ("zookeeper", 1), ended)


def test_a_claim_in_a_session_that_nobody_had_is_its_member_s() -> None:
    story = owner_of_two()
    place = {"member": "g_m1", "group": "g", "topic": "t", "partition": 2}
    story.registry(90, Kind.CREATED, "/consumers/g/owners/t/2", "0xfe", **place)
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 0)
    story.ends(1100, "m1")
    assert judge(story).why == "g_m1 claimed t/0 while it held t/2"


def test_another_member_s_claim_in_a_session_that_nobody_had_is_not_its_own() -> None:
    story = owner_of_two(recorded=False)
    place = {"member": "g_m9", "group": "g", "topic": "t", "partition": 2}
    story.registry(900, Kind.CREATED, "/consumers/g/owners/t/2", "0xfe", **place)
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 0)
    story.ends(1100, "m1")
    assert judge(story).measures["count"] == 0


def test_what_it_has_of_a_former_session_is_not_its_own_any_more() -> None:
    story = owner_of_two()
    story.registry(1005, Kind.SESSION_CLOSED, None, session_of("m1"), group=None)
    story.add(1010, "m1", Kind.CONNECTED, group=None, session="0x9")
    story.created(1020, "m1", 2, "0x9")
    story.ends(1100, "m1")
    assert in_order(story)


def test_what_it_has_of_another_session_that_is_not_closed_is_its_own() -> None:
    story = owner_of_two()
    story.add(1010, "m1", Kind.CONNECTED, group=None, session="0x9")
    story.created(1020, "m1", 2, "0x9")
    story.registry(1030, Kind.SESSION_CLOSED, None, session_of("m1"), group=None)
    story.ends(1100, "m1")
    assert judge(story).why == "g_m1 claimed t/2 while it held t/0"


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
    story.begins(1002, "m2")
    story.claims(1005, "m2", 5)
    story.ends(1006, "m2")
    story.releases(1010, "m1", 0, 1)
    story.claims(1020, "m1", 2)
    story.deleted(1030, "m2", 5, "0x1")  # m2's znode, deleted by m1's session
    story.ends(1100, "m1")
    finding = judge(story)
    assert (finding.outcome, finding.why) == (Outcome.VIOLATED, "g_m1 claimed t/2, then gave up t/5")


def test_so_is_one_in_the_first_attempt_of_all() -> None:
    story = GroupStory()
    story.joins(0, "m2")
    story.begins(2, "m2")
    story.claims(5, "m2", 5)
    story.ends(6, "m2")
    story.joins(0, "m1")
    story.begins(10, "m1")
    story.claims(50, "m1", 0)
    story.deleted(60, "m2", 5, "0x1")
    story.ends(100, "m1")
    assert judge(story).why == "g_m1 claimed t/0, then gave up t/5"


def test_who_had_nothing_breaks_no_order() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.begins(10, "m1")
    story.claims(50, "m1", 0)
    story.ends(100, "m1")
    assert in_order(story)


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
    story.registry(1004, Kind.SESSION_CLOSED, None, session_of("m1"), group=None)
    story.add(1005, "m1", Kind.CONNECTED, group=None, session="0x9")
    story.decides(1020, "m1", [])
    story.ends(1100, "m1")
    assert in_order(story)
    story.begins(2100, "m1")
    story.created(2110, "m1", 2, "0x9")
    story.ends(2200, "m1")
    story.begins(2300, "m1")
    story.decides(2310, "m1", [])
    story.ends(2400, "m1")
    assert judge(story).why == "g_m1 ended a rebalance without giving up t/2"


def test_who_was_never_connected_holds_nothing() -> None:
    story = GroupStory()
    story.elsewhere(0, up_to=1)
    story.started(0, "m1")
    story.begins(10, "m1")
    story.decides(20, "m1", [])
    story.ends(30, "m1")
    assert judge(story).why == "no rebalance claimed a partition"
