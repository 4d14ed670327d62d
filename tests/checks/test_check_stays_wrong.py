"""Stays wrong (O5g; Z9): tiny histories, findings in full."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind

CHECK = CHECKS["stays_wrong"]

CLEAN = "at the last rest every partition on which a member had given up had an owner"


def group(partitions: int = 2, **told: object) -> GroupStory:
    """m1 owns t/0, m2 all others of t's partitions; they rest at 1000 ms (runner/0)."""
    story = GroupStory(**told)  # type: ignore[arg-type]
    story.topic(0, "t", partitions)  # zookeeper/0
    story.joins(10, "m1")
    story.joins(20, "m2")
    story.claims(100, "m1", 0)
    story.claims(110, "m2", *range(1, partitions))
    story.rest(1000)
    return story


def meets(story: GroupStory, ms: float, actor: str, owner: str, *partitions: int) -> list[EventId]:
    """An attempt of the actor fails, as another owns these partitions for 5 ms. Returns the DELETEDs."""
    story.claims(ms, owner, *partitions)
    for _ in partitions:
        story.refused(ms + 2, actor)
    story.fails(ms + 3, actor, conflicts=partitions)
    return story.releases(ms + 5, owner, *partitions)


def gives_up(
    story: GroupStory, *, begin_ms: float = 2000, until_ms: float = 4000, partitions: tuple[int, ...] = (1,)
) -> tuple[EventId, EventId, list[EventId]]:
    """m2 releases these partitions, wants them again while m1 owns them, and gives up. Returns the REBALANCE_BEGAN,
    its end, and the DELETEDs of m1's claims."""
    began = story.begins(begin_ms, "m2")
    story.releases(begin_ms + 5, "m2", *partitions)
    story.decides(begin_ms + 20, "m2", partitions)
    released = meets(story, begin_ms + 25, "m2", "m1", *partitions)
    return began, story.ends(until_ms, "m2", "failed", attempts=4), released


def judge(story: GroupStory, *rests_ms: float) -> Finding:
    """It rests at these times, and the phase `closing` begins at 20 s."""
    for ms in rests_ms:
        story.rest(ms)
    story.phase(20_000, "closing")
    return CHECK.judge(story.history())


def numbers(count: int, gave_up: int, rests: int) -> dict[str, int]:
    return {"count": count, "gave_up": gave_up, "rests": rests}


def test_what_a_member_gave_up_has_no_owner_at_any_rest_since() -> None:
    story = group()
    began, gave_up, [released] = gives_up(story)
    assert judge(story, 6000, 8000, 10_000) == Finding(
        Outcome.VIOLATED,
        "g_m2 gave up after 4 attempts, and t/1, which it wanted, had no owner at any rest since",
        (began, gave_up, released, ("runner", 3)),
        numbers(1, 1, 3),
    )


def test_of_several_partitions_the_first_is_reported() -> None:
    story = group(4)
    began, gave_up, released = gives_up(story, partitions=(1, 2, 3))
    assert judge(story, 6000) == Finding(
        Outcome.VIOLATED,
        "g_m2 gave up after 4 attempts, and t/1 (and 2 more partitions), which it wanted, "
        "had no owner at any rest since",
        (began, gave_up, released[0], ("runner", 1)),
        numbers(3, 1, 1),
    )


def test_one_more_partition_is_counted_too() -> None:
    story = group(3)
    gives_up(story, partitions=(1, 2))
    assert "t/1 (and 1 more partitions), which" in judge(story, 6000).why


def test_a_group_in_which_every_rebalance_succeeds() -> None:
    story = group()
    story.rebalances(2000, 2010, "m2")
    assert judge(story, 6000) == Finding(Outcome.CLEAN, CLEAN, (), numbers(0, 0, 0))


def test_of_two_that_gave_the_same_partition_up_the_first_is_reported() -> None:
    story = group()
    began, gave_up, _ = gives_up(story)
    story.begins(6500, "m1")
    story.decides(6510, "m1", [1])
    [released] = meets(story, 6520, "m1", "m2", 1)
    story.ends(7000, "m1", "failed", attempts=4)
    # m1 started first, and what it wanted had no owner at the only rest since.
    finding = judge(story, 6000, 8000)
    assert finding.why.startswith("g_m1 gave up")
    assert finding.measures == numbers(1, 2, 1)
    assert released in finding.witness
    assert {began, gave_up}.isdisjoint(finding.witness)


def test_the_partition_that_was_without_owner_at_most_rests_gives_their_number() -> None:
    story = group(3)
    gives_up(story)
    story.begins(6500, "m1")
    story.releases(6510, "m1", 0)
    story.decides(6520, "m1", [0])
    meets(story, 6530, "m1", "m2", 0)
    story.ends(7000, "m1", "failed", attempts=4)
    assert judge(story, 6000, 8000).measures == numbers(2, 2, 2)


# -- who gave up --------------------------------------------------------------------------------


def test_who_gives_up_at_the_moment_of_the_rest_gave_up_before() -> None:
    story = group()
    gives_up(story, until_ms=6000)
    finding = judge(story, 6000)
    assert (finding.outcome, finding.measures) == (Outcome.VIOLATED, numbers(1, 1, 1))


def test_who_still_tries_at_the_last_rest_has_not_given_up() -> None:
    story = group()
    gives_up(story, until_ms=6000.001)
    assert judge(story, 6000) == Finding(Outcome.CLEAN, CLEAN, (), numbers(0, 0, 0))


def test_who_never_ends_its_rebalance_has_not_given_up() -> None:
    story = group()
    story.begins(2000, "m2")
    story.releases(2010, "m2", 1)
    story.decides(2020, "m2", [1])
    assert judge(story, 6000).measures == numbers(0, 0, 0)


@pytest.mark.parametrize("outcome", ["ok", "shutdown"])
def test_only_a_failed_rebalance_gives_up(outcome: str) -> None:
    story = group()
    story.begins(2000, "m2")
    story.releases(2010, "m2", 1)
    story.decides(2020, "m2", [1])
    story.ends(4000, "m2", outcome)
    assert judge(story, 6000).measures == numbers(0, 0, 0)


@pytest.mark.parametrize(("again_ms", "outcome"), [
    (7000, Outcome.CLEAN), (10_000, Outcome.CLEAN), (10_000.001, Outcome.VIOLATED),
])  # fmt: skip
def test_who_rebalances_again_by_the_last_rest_has_not_given_up(again_ms: float, outcome: Outcome) -> None:
    story = group()
    gives_up(story)
    story.rebalances(again_ms, again_ms + 10, "m2")
    assert judge(story, 6000, 8000, 10_000).outcome is outcome


@pytest.mark.parametrize(("left_ms", "outcome"), [(5999.999, Outcome.CLEAN), (6000, Outcome.VIOLATED)])
def test_who_has_left_by_the_last_rest_wants_nothing(left_ms: float, outcome: Outcome) -> None:
    story = group()
    gives_up(story)
    story.closed(left_ms, "m2")
    assert judge(story, 6000).outcome is outcome


def test_members_after_one_that_did_not_give_up_are_looked_at() -> None:
    """m1 and m3 never gave up; m4 did, after them."""
    story = group()
    story.rebalances(2000, 2010, "m1")
    story.joins(2020, "m3")
    story.joins(2030, "m4")
    story.releases(2040, "m2", 1)
    story.begins(2050, "m4")
    meets(story, 2060, "m4", "m3", 1)
    story.ends(4000, "m4", "failed", attempts=4)
    assert judge(story, 6000).why.startswith("g_m4 gave up after 4 attempts, and t/1, ")


# -- what it wanted -----------------------------------------------------------------------------


def _decides(story: GroupStory) -> None:
    """What it meets is another partition."""
    story.decides(2020, "m2", [1, 2])
    meets(story, 2030, "m2", "m1", 2)


def _conflicts(story: GroupStory) -> None:
    meets(story, 2030, "m2", "m1", 1)


def _decides_then(story: GroupStory) -> None:
    """It wants t/1 in its first attempt, and not in its second."""
    _decides(story)
    story.attempts(2500, "m2")
    story.decides(2520, "m2", [2])
    meets(story, 2530, "m2", "m1", 2)


def _decides_otherwise(story: GroupStory) -> None:
    story.decides(2020, "m2", [0, 2])
    meets(story, 2030, "m2", "m1", 2)


def _decides_nothing(story: GroupStory) -> None:
    meets(story, 2030, "m2", "m1", 2)


@pytest.mark.parametrize(("wants", "outcome"), [
    (_decides, Outcome.VIOLATED), (_conflicts, Outcome.VIOLATED), (_decides_then, Outcome.VIOLATED),
    (_decides_otherwise, Outcome.CLEAN), (_decides_nothing, Outcome.CLEAN),
])  # fmt: skip
def test_a_decision_or_a_conflict_of_an_attempt_shows_what_it_wanted(
    wants: Callable[[GroupStory], None], outcome: Outcome
) -> None:
    story = group()  # t has no partition 2: nobody misses it
    story.begins(2000, "m2")
    story.releases(2010, "m2", 1)
    wants(story)
    story.ends(4000, "m2", "failed", attempts=4)
    finding = judge(story, 6000)
    assert (finding.outcome, finding.measures["gave_up"]) == (outcome, 1)


# -- why it gave up -----------------------------------------------------------------------------


def fails_for(story: GroupStory, *reasons: str) -> None:
    """m2 releases t/1 and gives up after an attempt for each of these reasons: m1 owns t/1 (conflict), m2 only says
    so (invented), or an error of its own."""
    story.begins(2000, "m2")
    story.releases(2010, "m2", 1)
    for number, reason in enumerate(reasons):
        at_ms = 2020 + 500 * number
        if number:
            story.attempts(at_ms, "m2")
        story.decides(at_ms, "m2", [1])
        if reason == "conflict":
            meets(story, at_ms + 10, "m2", "m1", 1)
        elif reason == "invented":
            story.fails(at_ms + 10, "m2", conflicts=[1])
        else:
            story.fails(at_ms + 10, "m2", reason)
    story.ends(5000, "m2", "failed", attempts=len(reasons))


@pytest.mark.parametrize(("reasons", "outcome"), [
    (["conflict"] * 4, Outcome.VIOLATED),
    (["conflict", "conflict", "error"], Outcome.UNKNOWN),
    (["error", "conflict"], Outcome.UNKNOWN),
    (["conflict", "invented"], Outcome.UNKNOWN),
    (["invented"] * 4, Outcome.CLEAN),
    (["error"] * 4, Outcome.CLEAN),
    ([], Outcome.CLEAN),
])  # fmt: skip
def test_only_who_failed_on_others_claims_gave_up_because_of_them(reasons: list[str], outcome: Outcome) -> None:
    story = group()
    fails_for(story, *reasons)
    finding = judge(story, 6000)
    assert (finding.outcome, finding.measures["gave_up"]) == (outcome, 1)
    if outcome is Outcome.UNKNOWN:
        met = reasons.count("conflict")
        assert finding.why == (
            f"g_m2 gave up after {len(reasons)} attempts, of which, by the registry, only {met} failed on "
            "others' claims: it is not known whether these made it give up"
        )


def test_a_member_with_several_reasons_is_no_doubt_where_its_partition_has_an_owner() -> None:
    story = group()
    fails_for(story, "conflict", "error")
    story.claims(5500, "m1", 1)
    assert judge(story, 6000).outcome is Outcome.CLEAN


@pytest.mark.parametrize(("reasons", "control", "applies"), [
    (["conflict"], False, True), (["error", "conflict"], False, True), (["error"], False, False),
    (["invented"], False, False), ([], False, False), (["error"], True, True),
])  # fmt: skip
def test_where_nobody_met_anothers_claim_only_a_control_is_judged(
    reasons: list[str], control: bool, applies: bool
) -> None:
    story = group(control=control)
    fails_for(story, *reasons)
    story.rest(6000)
    story.phase(20_000, "closing")
    assert CHECK.applies(story.history()) is applies


@pytest.mark.parametrize(("began_ms", "applies"), [(997.9, False), (998, True), (20_000.1, False)])
def test_a_conflict_before_the_first_rest_or_at_the_end_is_none_of_a_change(began_ms: float, applies: bool) -> None:
    story = group(control=False)
    story.begins(began_ms, "m2")
    meets(story, began_ms + 1, "m2", "m1", 5)
    story.phase(20_000, "closing")
    assert CHECK.applies(story.history()) is applies


def test_a_group_that_never_rested_is_judged() -> None:
    story = GroupStory()
    story.joins(10, "m1")
    assert CHECK.applies(story.history())


def test_what_a_member_of_another_group_wanted_is_another_partition() -> None:
    story = group()
    story.releases(1500, "m2", 1)
    story.comes(1600, "m3", group="h")
    story.begins(2000, "m3", group="h")
    story.add(2020, "m3", Kind.DECIDED, member="h_m3", group="h", detail={"wants": [["t", 1]]})
    story.ends(4000, "m3", "failed", attempts=4, group="h")
    assert judge(story, 6000).measures == numbers(0, 1, 0)


# -- what has an owner --------------------------------------------------------------------------


def test_what_has_an_owner_at_a_rest_since_did_not_stay_wrong() -> None:
    story = group()
    gives_up(story)
    story.claims(6500, "m1", 1)
    story.releases(8500, "m1", 1)
    assert judge(story, 6000, 8000, 10_000) == Finding(Outcome.CLEAN, CLEAN, (), numbers(0, 1, 0))


def test_what_has_an_owner_at_the_last_rest_did_not_stay_wrong() -> None:
    story = group()
    gives_up(story)
    story.claims(8500, "m1", 1)
    assert judge(story, 6000, 8000, 10_000).outcome is Outcome.CLEAN


def test_that_it_had_an_owner_before_the_member_gave_up_changes_nothing() -> None:
    story = group()
    gives_up(story)
    assert judge(story, 6000).outcome is Outcome.VIOLATED  # at 1000 ms m2 owned it


def test_a_foreign_owner_is_an_owner() -> None:
    story = group()
    gives_up(story)
    story.joins(4500, "m3", streams={"u": 1})
    story.claims(4510, "m3", 1)
    assert judge(story, 6000) == Finding(Outcome.CLEAN, CLEAN, (), numbers(0, 1, 0))


# -- doubts -------------------------------------------------------------------------------------


def test_where_nobody_rebalanced_nothing_is_clean() -> None:
    finding = judge(group(), 6000)
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "no member ever rebalanced")


def test_a_change_that_no_rest_followed_leaves_it_open() -> None:
    story = group()
    story.rebalances(2000, 2010, "m2")
    story.joins(7000, "m3")
    finding = judge(story, 6000)
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "no rest followed the change of /consumers/g/ids/g_m3")


def test_a_group_that_never_rested_is_unknown() -> None:
    story = GroupStory()
    story.joins(10, "m1")
    story.rebalances(20, 30, "m1", "failed")
    finding = judge(story)
    assert (finding.outcome, finding.measures) == (Outcome.UNKNOWN, numbers(0, 0, 0))


def test_where_the_clock_drifted_nobody_knows_what_had_an_owner_at_a_rest() -> None:
    story = group(wall_drift_us=2001)
    gives_up(story)
    finding = judge(story, 6000)
    assert (finding.outcome, finding.measures) == (Outcome.UNKNOWN, numbers(0, 1, 0))
    assert "the wall clock drifted by 2001 us: registry times are not comparable with other times" in finding.why
