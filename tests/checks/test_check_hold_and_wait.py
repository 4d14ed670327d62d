"""Hold and wait (O6w; Z16): tiny histories, findings in full. Circles: `test_waits`."""

from __future__ import annotations

from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId

CHECK = CHECKS["hold_and_wait"]


def ended(story: GroupStory, ms: float = 20_000) -> GroupStory:
    story.rest(ms)
    story.phase(ms, "closing")
    return story


def hold_and_wait(*, lasts: bool, wall_drift_us: int = 0) -> tuple[GroupStory, EventId, EventId]:
    """m1 holds t/0 and wants t/1, m2 the other way round; both wait from 2050 ms on."""
    story = GroupStory(wall_drift_us=wall_drift_us)
    for ms, actor in ((0, "m1"), (100, "m2")):
        story.joins(ms, actor)
    story.rest(1000)
    story.begins(2000, "m1")
    story.begins(2000, "m2")
    story.claims(2010, "m1", 0)
    story.claims(2010, "m2", 1)
    first = story.meets(2040, "m1", [1])
    second = story.meets(2050, "m2", [0])
    if not lasts:
        story.releases(2060, "m1", 0)
    for actor in ("m1", "m2"):
        story.attempts(2550, actor)
        story.ends(2600, actor)
    return story, first, second


def test_two_that_hold_what_the_other_waits_for() -> None:
    story, first, second = hold_and_wait(lasts=True)
    assert CHECK.judge(ended(story).history()) == Finding(
        Outcome.VIOLATED,
        "g_m2 holds t/1 and waits for t/0, g_m1 holds t/0 and waits for t/1",
        (second, first),
        {"count": 1, "conflicts": 2},
    )


def test_who_gives_back_what_it_won_waits_for_nobody_that_waits_for_it() -> None:
    story, _, _ = hold_and_wait(lasts=False)
    why = "no members waited for each other in a cycle"
    assert CHECK.judge(ended(story).history()) == Finding(Outcome.CLEAN, why, (), {"count": 0, "conflicts": 2})


def test_what_is_given_back_as_the_group_rests_was_held_until_then() -> None:
    """The registry's times are up to 2 ms early, and a rest follows a quiet time."""
    for freed_ms, outcome in ((19_998.001, Outcome.VIOLATED), (19_998, Outcome.CLEAN)):
        story, _, _ = hold_and_wait(lasts=True)
        story.releases(freed_ms, "m1", 0)
        assert CHECK.judge(ended(story).history()).outcome is outcome, freed_ms


def test_where_the_clock_drifted_nobody_knows_who_held_what() -> None:
    story, _, _ = hold_and_wait(lasts=True, wall_drift_us=2_001)
    assert CHECK.judge(ended(story).history()).outcome is Outcome.UNKNOWN


def test_where_nobody_rebalanced_nothing_is_clean() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    finding = CHECK.judge(ended(story).history())
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "no member ever rebalanced")
