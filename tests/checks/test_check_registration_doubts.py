"""Registration (Z1): what a history cannot show, for want of ownership or of a steady clock."""

from __future__ import annotations

import pytest
from history_story import Story, joined

from rebalance_lab.checks import Finding, Outcome
from rebalance_lab.checks.registration import CHECK


def judge(story: Story) -> Finding:
    return CHECK.judge(story.history())


# -- a killed member that owned nothing ------------------------------------------------------------


def _owned_until(released_ms: float | None, claimed_ms: float | None, *, seen_ms: float = 999.5) -> Story:
    """m1 is killed at 1 s; all it has goes with its session at 3 s, seen from outside."""
    story = Story()
    story.created_id(100, "m1", "0x1")
    if claimed_ms is not None:
        story.created(claimed_ms, "m1")
    if released_ms is not None:
        story.deleted(released_ms, "m1")
    story.observed(500, "m1")
    if claimed_ms is not None and released_ms is None:
        story.observed_owners(seen_ms, {0: "m1"})
    story.killed(1_000, "m1")
    zxid = 2 + (claimed_ms is not None) + (released_ms is not None)
    story.session_closed(3_000, "0x1", zxid=zxid)
    story.deleted_id(3_000, "m1", "0x1", zxid=zxid)
    if claimed_ms is not None and released_ms is None:
        story.deleted(3_000, "m1", zxid=zxid)
    story.observed(5_000)
    story.observed_owners(5_000, {})
    story.rest(5_000)
    return story


def test_a_killed_member_that_owned_a_partition_shows_that_ownership_goes() -> None:
    assert judge(_owned_until(None, 200)).outcome is Outcome.CLEAN
    assert judge(_owned_until(None, 997)).outcome is Outcome.CLEAN
    assert judge(_owned_until(None, 200, seen_ms=1_000)).outcome is Outcome.CLEAN
    assert judge(_owned_until(None, 200, seen_ms=1_000.001)).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(("released_ms", "claimed_ms"), [(None, None), (400, 200), (1_002, 200), (None, 998)])
def test_a_killed_member_that_did_not_surely_own_anything_shows_nothing_of_ownership(
    released_ms: float | None, claimed_ms: float | None
) -> None:
    finding = judge(_owned_until(released_ms, claimed_ms))
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why == "g_m1 did not surely own a partition when it was killed, so none could vanish"


def test_each_kill_is_doubted_for_itself() -> None:
    story = Story()
    story.created_id(100, "m2", "0x2")
    story.killed(900, "m1")
    story.killed(1_000, "m2")
    story.rest(5_000)
    story.session_closed(3_000, "0x2", zxid=2)
    story.deleted_id(3_000, "m2", "0x2", zxid=2)
    assert (
        "g_m2 did not surely own a partition when it was killed, so none could vanish; "
        "g_m1 was not registered when it was killed; "
        "the id of g_m2 was not observed before its kill; the ids were not observed after g_m2 was gone"
        in judge(story).why
    )


def test_another_member_s_ownership_is_not_the_victim_s() -> None:
    story = _owned_until(None, None)
    story.created(200, "m2", session="0x2", zxid=3)
    story.deleted(4_000, "m2", session="0x2", zxid=10)
    assert judge(story).outcome is Outcome.UNKNOWN


# -- a wall clock that drifted: what rests on time is unknown, what rests on zxid is not ------------

DRIFTED = "the wall clock drifted by 2001 us: registry times are not comparable with other times"


def test_a_drifted_clock_does_not_tell_what_outlived_a_kill() -> None:
    story = joined(wall_drift_us=2_001)
    story.killed(1_000, "m1")
    story.rest(5_000)
    finding = judge(story)
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why.startswith(DRIFTED)
    assert (finding.witness, finding.measures["count"]) == ((), 0)


@pytest.mark.parametrize(("zxid", "outcome"), [(None, Outcome.UNKNOWN), (2, Outcome.VIOLATED)])
def test_a_drifted_clock_tells_only_by_zxid_what_the_observer_should_have_seen(
    zxid: int | None, outcome: Outcome
) -> None:
    story = joined(wall_drift_us=2_001)
    story.observed(600, "m1", zxid=zxid)  # m2 is there, by time and by zxid
    story.rest(700)
    assert judge(story).outcome is outcome


@pytest.mark.parametrize(("zxid", "outcome"), [(None, Outcome.UNKNOWN), (1, Outcome.VIOLATED)])
def test_a_drifted_clock_tells_only_by_zxid_what_the_observer_should_not_have_seen(
    zxid: int | None, outcome: Outcome
) -> None:
    story = Story(wall_drift_us=2_001)
    story.started(0, "m1")
    story.created_id(500, "m1", "0x1", zxid=2)
    story.observed(100, "m1", zxid=zxid)
    story.rest(700)
    assert judge(story).outcome is outcome


def test_a_member_that_never_registered_needs_no_clock() -> None:
    story = joined(wall_drift_us=2_001)
    story.started(0, "m3")
    seen = story.observed(600, "m1", "m2", "m3")
    story.rest(700)
    assert judge(story).witness == (seen,)


def test_a_drifted_clock_leaves_the_registry_s_own_order() -> None:
    story = Story(wall_drift_us=2_001)
    story.created_id(100, "m1", "0x1", ephemeral=False)
    story.rest(200)
    finding = judge(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 0),))


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize(("zxid", "outcome"), [(None, Outcome.UNKNOWN), (3, Outcome.VIOLATED)])
def test_a_drifted_clock_tells_only_by_zxid_what_was_gone_when_it_was_seen(
    zxid: int | None, outcome: Outcome, sampled: bool
) -> None:
    story = Story(wall_drift_us=2_001)
    story.created_id(100, "m1", "0x1")
    story.session_closed(300, "0x1", sampled=sampled, zxid=3)
    story.deleted_id(300, "m1", "0x1", zxid=3)
    story.observed(500, "m1", zxid=zxid)
    story.rest(700)
    assert judge(story).outcome is outcome


def test_a_drifted_clock_leaves_an_owner_that_the_registry_never_held() -> None:
    story = Story(wall_drift_us=2_001)
    story.created_id(100, "m1", "0x1")
    story.observed_owners(500, {1: "m1"})
    story.rest(700)
    assert judge(story).why == "the outside observer saw /consumers/g/owners/t/1, which the registry had never held"
