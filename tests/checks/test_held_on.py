"""The order in a rebalance (Z5a): belief and work end before the first claim."""

from __future__ import annotations

import pytest
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding, Outcome


def judge(story: GroupStory) -> Finding:
    story.rest(2000)
    return CHECKS["order_in_rebalance"].judge(story.history())


def believer(*, disowned_ms: float | None, **told: object) -> GroupStory:
    """m1 owns t/0 from its first rebalance, and gives it up and claims t/2 (at 1020 ms) in its second. It stops
    believing in t/0 at `disowned_ms`, or never."""
    story = GroupStory(**told)  # type: ignore[arg-type]
    story.joins(0, "m1")
    story.begins(10, "m1")
    story.claims(50, "m1", 0)
    story.owned(60, "m1")
    story.ends(100, "m1")
    story.begins(1000, "m1")
    story.releases(1010, "m1", 0)
    story.claims(1020, "m1", 2)
    if disowned_ms is not None:
        story.disowned(disowned_ms, "m1")
    story.owned(1090, "m1", 2)
    story.ends(1100, "m1")
    return story


@pytest.mark.parametrize(
    ("disowned_ms", "told", "outcome"),
    [
        (1005, {}, Outcome.CLEAN),
        (1022, {}, Outcome.CLEAN),
        (1022.001, {}, Outcome.VIOLATED),
        (1050, {"wall_drift_us": 2_001}, Outcome.UNKNOWN),
    ],
)
def test_belief_ends_before_the_first_claim(disowned_ms: float, told: dict[str, object], outcome: Outcome) -> None:
    finding = judge(believer(disowned_ms=disowned_ms, **told))
    assert finding.outcome is outcome
    if outcome is Outcome.VIOLATED:
        assert finding.why == "g_m1 claimed t/2 while it still believed that it owned t/0"


@pytest.mark.parametrize(
    ("heard_ms", "disowned_ms", "outcome"),
    [(1021, 1021.5, Outcome.VIOLATED), (1021.5, 1021, Outcome.CLEAN), (1060, 1050, Outcome.CLEAN)],
)
def test_the_reply_to_the_claim_tells_whether_belief_ended_before(
    heard_ms: float, disowned_ms: float, outcome: Outcome
) -> None:
    """The claim is made at 1020 ms, and the member hears of it at `heard_ms`."""
    story = GroupStory()
    story.joins(0, "m1")
    story.begins(10, "m1")
    story.claims(50, "m1", 0)
    story.owned(60, "m1")
    story.ends(100, "m1")
    story.begins(1000, "m1")
    story.releases(1010, "m1", 0)
    story.claims(1020, "m1", 2)
    zxid = story.events[-1].zxid or 0
    if disowned_ms < heard_ms:
        story.disowned(disowned_ms, "m1")
    story.asks(heard_ms, "m1", "create", "/consumers/g/owners/t/2", zxid=zxid)
    if disowned_ms > heard_ms:
        story.disowned(disowned_ms, "m1")
    story.ends(1100, "m1")
    assert judge(story).outcome is outcome


def test_a_belief_that_never_ends_is_shown_by_its_beginning() -> None:
    story = believer(disowned_ms=1050)
    assert judge(story).witness == (("m1", 7), ("zookeeper", 3), ("m1", 4), ("m1", 8))
    story = believer(disowned_ms=None)
    assert judge(story).witness == (("m1", 7), ("zookeeper", 3), ("m1", 4))


def test_where_it_is_not_sure_which_attempt_claimed_belief_shows_nothing() -> None:
    """The claim of t/2 comes within 2 ms of the beginning of the second rebalance."""
    story = GroupStory()
    story.joins(0, "m1")
    story.begins(10, "m1")
    story.claims(50, "m1", 0)
    story.owned(60, "m1")
    story.releases(90, "m1", 0)
    story.ends(100, "m1", "failed")
    story.begins(1000, "m1")
    story.claims(1001, "m1", 2)
    story.disowned(1050, "m1")
    story.ends(1100, "m1")
    assert judge(story).outcome is Outcome.CLEAN


def test_attempts_after_one_without_a_claim_are_looked_at() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.rebalances(10, 20, "m1", "failed")
    story.begins(30, "m1")
    story.claims(50, "m1", 0)
    story.owned(60, "m1")
    story.ends(100, "m1")
    story.begins(1000, "m1")
    story.releases(1010, "m1", 0)
    story.claims(1020, "m1", 2)
    story.disowned(1050, "m1")
    story.ends(1100, "m1")
    assert judge(story).why == "g_m1 claimed t/2 while it still believed that it owned t/0"


def test_each_belief_from_before_the_attempt_is_looked_at() -> None:
    """t/0 is given up and taken again, and t/3 never given up."""
    story = GroupStory()
    story.joins(0, "m1")
    story.begins(10, "m1")
    story.claims(50, "m1", 0, 3)
    story.owned(60, "m1", 3)
    story.ends(100, "m1")
    story.begins(1000, "m1")
    story.releases(1010, "m1", 0, 3)
    story.claims(1020, "m1", 0)
    story.owned(1090, "m1", 0)
    story.ends(1100, "m1")
    assert judge(story).why == "g_m1 claimed t/0 while it still believed that it owned t/3"


@pytest.mark.parametrize(
    ("works_ms", "outcome"),
    [
        ((950, 1005), Outcome.CLEAN),
        ((950, 1005, 1060), Outcome.VIOLATED),
        ((1018, 1060), Outcome.CLEAN),
        ((1017.999, 1060), Outcome.VIOLATED),
        ((950, 1022), Outcome.CLEAN),
        ((950, 1022.001), Outcome.VIOLATED),
    ],
)
def test_work_ends_before_the_first_claim(works_ms: tuple[float, ...], outcome: Outcome) -> None:
    story = believer(disowned_ms=1005)
    story.worked("m1", *works_ms)
    finding = judge(story)
    assert finding.outcome is outcome
    if outcome is Outcome.VIOLATED:
        assert finding.why == "g_m1 claimed t/2 while it still worked on t/0"


@pytest.mark.parametrize(
    ("between_ms", "outcome"),
    [(None, Outcome.CLEAN), (1015, Outcome.VIOLATED)],
)
def test_fetchers_that_may_have_stopped_unseen_did_not_work_on(between_ms: float | None, outcome: Outcome) -> None:
    """With a full queue the fetchers report nothing at their stop. A report after DISOWNED shows that they went on."""
    story = GroupStory()
    story.joins(0, "m1")
    story.begins(10, "m1")
    story.claims(50, "m1", 0)
    story.owned(60, "m1")
    story.ends(100, "m1")
    story.worked("m1", 990)
    story.begins(1000, "m1")
    story.disowned(1005, "m1")
    story.releases(1010, "m1", 0)
    if between_ms is not None:
        story.worked("m1", between_ms)
    story.claims(1020, "m1", 0)
    story.owned(1025, "m1")
    story.worked("m1", 1030)
    story.ends(1100, "m1")
    assert judge(story).outcome is outcome
