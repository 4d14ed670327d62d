"""Registration: members without one, and two processes that go by one member's name."""

from __future__ import annotations

from typing import Any

from history_story import Story

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import Kind


def judge(story: Story) -> Finding:
    return CHECKS["registration"].judge(story.history())


def _connected(story: Story, ms: float, actor: str, session: str, member: str | None = None) -> None:
    story.add(ms, actor, Kind.MEMBER_STARTED, member=member or f"g_{actor}")
    story.add(ms, actor, Kind.CONNECTED, session=session)


def _twice(**told: Any) -> Story:
    """m1 is registered and owns t/0; m2 comes with the same id, and waits."""
    story = Story(**told)
    _connected(story, 0, "m1", "0x1")  # m1/0
    story.created_id(10, "m1", "0x1")  # zookeeper/0
    story.created(20, "m1", session="0x1")
    _connected(story, 100, "m2", "0x2", member="g_m1")  # m2/0
    return story


def test_a_second_member_of_the_same_id_lives_unregistered() -> None:
    story = _twice()
    rest = story.rest(3_000)
    assert judge(story) == Finding(
        Outcome.VIOLATED,
        "g_m1 (m2, session 0x2) was alive at rest, but not registered: session 0x1 holds its id",
        (("m2", 0), ("zookeeper", 0), rest),
        {
            "count": 1,
            "registrations": 1,
            "unregistered": 1,
            "sessions_closed": 0,
            "sampled": 0,
            "observations": 0,
            "longest_us": 0,
        },
    )


def test_it_is_told_once_however_often_the_group_rests() -> None:
    story = _twice()
    story.rest(3_000)
    story.rest(6_000)
    assert judge(story).measures["unregistered"] == 1


def test_neither_session_is_foreign_to_their_name() -> None:
    """The first leaves, and the second registers at last."""
    story = _twice()
    story.session_closed(500, "0x1")
    story.deleted(500, "m1", session="0x1", zxid=3)
    story.deleted_id(500, "m1", "0x1", zxid=3)
    story.add(501, "m1", Kind.MEMBER_CLOSED, member="g_m1")
    story.created_id(2_100, "m1", "0x2")
    story.rest(4_000)
    finding = judge(story)
    assert (finding.outcome, finding.measures["registrations"]) == (Outcome.CLEAN, 2)


def test_a_kill_of_the_second_takes_nothing_of_the_first() -> None:
    story = _twice()
    began = story.add(
        500,
        "runner",
        Kind.FAULT_BEGAN,
        member="g_m1",
        detail={"fault": "kill", "target": "m2", "session": "0x2", "must_outlast_session": False},
    )
    story.bit(500, "kill", "m2", began)
    story.observed(4_000, "m1")
    story.rest(4_000)
    finding = judge(story)
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "g_m1 was not registered when it was killed")


def test_a_member_that_never_registered_is_violated_though_nothing_stands_in_its_way() -> None:
    story = Story()
    _connected(story, 0, "m1", "0x1")
    rest = story.rest(3_000)
    finding = judge(story)
    assert finding.why == "g_m1 (m1, session 0x1) was alive at rest, but not registered"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("m1", 0), rest))


def test_a_registration_of_the_session_before_counts_for_nothing() -> None:
    story = Story()
    _connected(story, 0, "m1", "0x1")
    story.created_id(10, "m1", "0x1", ephemeral=True)
    story.session_closed(100, "0x1")
    story.deleted_id(100, "m1", "0x1", zxid=2)
    story.add(200, "m1", Kind.EXPIRED, session="0x1")
    story.add(210, "m1", Kind.CONNECTED, session="0x2")
    story.rest(3_000)
    finding = judge(story)
    assert finding.why == "g_m1 (m1, session 0x2) was alive at rest, but not registered"


def test_who_is_not_connected_or_has_left_need_not_be_registered() -> None:
    story = Story()
    _connected(story, 0, "m1", "0x1")
    story.add(5, "m1", Kind.DISCONNECTED, session="0x1")
    _connected(story, 0, "m2", "0x2")
    story.add(5, "m2", Kind.MEMBER_CLOSING, member="g_m2")
    _connected(story, 0, "m3", "0x3")
    story.created_id(10, "m3", "0x3")
    story.rest(3_000)
    assert judge(story).outcome is Outcome.CLEAN


def test_an_id_at_the_moment_of_the_rest_is_within_the_doubt_of_two_clocks() -> None:
    story = Story()
    _connected(story, 0, "m1", "0x1")
    story.created_id(3_002, "m1", "0x1")
    story.rest(3_000)
    assert judge(story).outcome is Outcome.CLEAN
    late = Story()
    _connected(late, 0, "m1", "0x1")
    late.created_id(3_003, "m1", "0x1")
    late.rest(3_000)
    assert judge(late).outcome is Outcome.VIOLATED


def test_a_clock_that_drifted_leaves_it_open() -> None:
    story = _twice(wall_drift_us=2_001)
    story.rest(3_000)
    assert judge(story).outcome is Outcome.UNKNOWN
