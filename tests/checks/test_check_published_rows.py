"""Published rows (Z3): tiny histories, findings in full."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind

CHECK = CHECKS["published_rows"]


def settles(story: GroupStory, ms: float, owners: Mapping[int, str], group: str = "g") -> EventId:
    """Members claim these partitions (20 ms before) and believe in them, unless they did so before; the outside
    observer sees it at `ms`."""
    known = {event.topic and event.partition for event in story.events if event.kind is Kind.CREATED}
    for partition, actor in owners.items():
        if group == "g" and partition not in known:
            story.claims(ms - 20, actor, partition)
            story.owned(ms - 15, actor, partition)
    return story.owners_seen(ms, owners, group=group)


def two_members(published: list[list[list[object]]]) -> GroupStory:
    """m1 and m2 at rest at 2 s; what they own is published, and looked at by the test."""
    story = GroupStory()
    story.joins(0, "m1")
    story.rest(1000)
    story.announces(1000, "member 2 joins", published=published)  # runner/1
    story.joins(1010, "m2")
    return story


ROW: list[list[list[object]]] = [[["t", 0], ["t", 1]], [["t", 2]]]


def test_the_row_that_is_published() -> None:
    story = two_members(ROW)
    settles(story, 1990, {2: "m2", 0: "m1", 1: "m1"})
    story.rest(2000)
    assert CHECK.applies(story.history())
    assert CHECK.judge(story.history()) == Finding(
        Outcome.CLEAN, "at each rest members owned what is published", (), {"count": 0, "rows": 1}
    )


def test_another_row() -> None:
    story = two_members(ROW)
    seen = settles(story, 1990, {0: "m1", 1: "m2", 2: "m2"})
    rest = story.rest(2000)
    assert CHECK.judge(story.history()) == Finding(
        Outcome.VIOLATED,
        "at rest after phase member 2 joins members owned {t/0} {t/1, t/2}; published: {t/0, t/1} {t/2}",
        (("runner", 1), seen, rest),
        {"count": 1, "rows": 1},
    )


@pytest.mark.parametrize(("first", "then", "outcome"), [
    ("m1", "m2", Outcome.CLEAN),
    ("m9", "m2", Outcome.VIOLATED),
    ("m10", "m2", Outcome.CLEAN),
    ("m2", "m10", Outcome.VIOLATED),
    ("m\U0001f600", "m\uff5e", Outcome.CLEAN),  # by UTF-16 code units the first is d83d de00
])  # fmt: skip
def test_rows_are_those_of_the_members_in_the_order_of_their_ids(first: str, then: str, outcome: Outcome) -> None:
    """Who joined first plays no part. The first member owns the first row."""
    for order in ((first, then), (then, first)):
        story = GroupStory()
        story.joins(0, order[0])
        story.announces(5, "joining", published=ROW)
        story.joins(10, order[1])
        settles(story, 990, {0: first, 1: first, 2: then})
        story.rest(1000)
        assert CHECK.judge(story.history()).outcome is outcome


@pytest.mark.parametrize(("attempts", "gave_up"), [
    (["failed"], True), (["ok", "failed"], True), (["failed", "ok"], False), (["shutdown"], False), (["ok"], False),
])  # fmt: skip
def test_a_row_is_not_judged_where_a_member_had_given_up(attempts: list[str], gave_up: bool) -> None:
    story = two_members(ROW)
    for number, outcome in enumerate(attempts):
        story.rebalances(1020 + 10 * number, 1025 + 10 * number, "m2", outcome)
    settles(story, 1990, {0: "m1", 1: "m1"})
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert finding.outcome is (Outcome.UNKNOWN if gave_up else Outcome.VIOLATED)
    assert finding.measures["rows"] == (0 if gave_up else 1)
    if gave_up:
        assert finding.why.endswith("g_m2 had given up at the rest after phase member 2 joins")


@pytest.mark.parametrize(("ends_ms", "outcome"), [(2000, Outcome.UNKNOWN), (2000.001, Outcome.VIOLATED)])
def test_who_gives_up_after_the_rest_had_not_given_up(ends_ms: float, outcome: Outcome) -> None:
    story = two_members(ROW)
    story.begins(1500, "m2")
    settles(story, 1990, {0: "m1", 1: "m1"})
    story.rest(2000)
    story.ends(ends_ms, "m2", "failed")
    assert CHECK.judge(story.history()).outcome is outcome


def test_rows_before_a_member_gave_up_are_judged() -> None:
    story = two_members(ROW)
    settles(story, 1990, {0: "m1", 1: "m2", 2: "m2"})
    story.rest(2000)
    story.announces(2000, "later", published=ROW)
    story.rebalances(2100, 2200, "m2", "failed")
    settles(story, 2990, {0: "m1"})
    story.rest(3000)
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.measures) == (Outcome.VIOLATED, {"count": 1, "rows": 1})


def test_an_idle_member_has_an_empty_row() -> None:
    story = two_members([[["t", 0]], []])
    settles(story, 1990, {0: "m1"})
    story.rest(2000)
    assert CHECK.judge(story.history()).outcome is Outcome.CLEAN


def test_a_member_that_is_not_published_is_one_too_many() -> None:
    story = two_members([[["t", 0]]])
    settles(story, 1990, {0: "m1"})
    story.rest(2000)
    assert CHECK.judge(story.history()).why == (
        "at rest after phase member 2 joins members owned {t/0} {}; published: {t/0}"
    )


def test_who_has_left_has_no_row_and_who_starts_at_the_rest_has_none_yet() -> None:
    story = two_members([[["t", 0]]])
    story.member(1500, "m1", Kind.MEMBER_CLOSED)
    settles(story, 1990, {0: "m2"})
    story.rest(2000)
    story.joins(2000, "m3")  # of the same microsecond, and before the runner's events in the history
    assert CHECK.judge(story.history()).outcome is Outcome.CLEAN


def test_an_owner_that_does_not_live_is_a_stranger() -> None:
    story = two_members([[["t", 0]], []])
    settles(story, 1990, {0: "m1", 1: "m7"})
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert finding.outcome is Outcome.VIOLATED
    assert finding.why.endswith("published: {t/0} {}; g_m7 also owned a partition")


def test_other_groups_are_of_no_concern() -> None:
    story = two_members(ROW)
    story.comes(1020, "m3", group="h")
    settles(story, 1980, {0: "m3", 1: "m3"}, group="h")
    settles(story, 1990, {0: "m1", 1: "m1", 2: "m2"})
    story.rest(2000)
    assert CHECK.judge(story.history()).outcome is Outcome.CLEAN


def test_the_last_look_before_the_rest_counts() -> None:
    story = two_members(ROW)
    settles(story, 1500, {0: "m1"})
    settles(story, 1990, {0: "m1", 1: "m1", 2: "m2"})
    story.rest(2000)
    assert CHECK.judge(story.history()).outcome is Outcome.CLEAN


def test_what_was_seen_before_the_phase_or_of_other_paths_is_not_of_its_row() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    settles(story, 900, {0: "m1", 1: "m1"})
    story.rest(1000)
    story.announces(1000, "member 2 joins", published=ROW)
    story.joins(1010, "m2")
    story.observed(1500, "m1", "m2")
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.measures["rows"]) == (Outcome.UNKNOWN, 0)


def test_all_strangers_are_told() -> None:
    story = two_members([[["t", 0]], []])
    settles(story, 1990, {0: "m1", 1: "m7", 2: "m8"})
    story.rest(2000)
    assert CHECK.judge(story.history()).why.endswith("; g_m7, g_m8 also owned a partition")


def test_a_member_s_name_may_have_hyphens() -> None:
    """As those of real consumers: group_host-time-random, and the thread's number after that."""
    story = GroupStory()
    story.announces(0, "member 1 joins", published=[[["t", 0]]])
    story.joins(10, "m1-1353556800000-1f")
    settles(story, 990, {0: "m1-1353556800000-1f"})
    story.rest(1000)
    assert CHECK.judge(story.history()).outcome is Outcome.CLEAN


def test_who_leaves_at_the_rest_was_there() -> None:
    story = two_members(ROW)
    settles(story, 1990, {0: "m1", 1: "m1", 2: "m2"})
    story.member(2000, "m2", Kind.MEMBER_CLOSED)
    story.rest(2000)
    assert CHECK.judge(story.history()).outcome is Outcome.CLEAN


def test_nobody_looked() -> None:
    story = two_members(ROW)
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.measures) == (Outcome.UNKNOWN, {"count": 0, "rows": 0})
    assert finding.why == "no rest with an observation followed a published row"


def test_a_rest_that_was_missed_says_nothing_of_its_row() -> None:
    story = two_members(ROW)
    settles(story, 1990, {0: "m1"})
    story.rest_missed(2000, "m2: it rebalances")
    story.announces(2000, "member 3 joins")
    settles(story, 2990, {0: "m1"})
    story.rest(3000)
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.measures["rows"]) == (Outcome.UNKNOWN, 0)


def test_without_a_published_row_it_does_not_apply() -> None:
    story = GroupStory()
    story.announces(0, "member 1 joins", change="join", members=0)
    story.rest(1000)
    assert not CHECK.applies(story.history())


def test_who_believes_in_other_partitions_owns_them_on_paper_only() -> None:
    story = two_members(ROW)
    story.claims(1100, "m1", 0, 1)
    story.claims(1100, "m2", 2)
    story.owned(1200, "m1", 1)
    story.owned(1200, "m1", 2)
    wrong = story.owned(1200, "m2", 0)
    seen = story.owners_seen(1990, {0: "m1", 1: "m1", 2: "m2"})
    rest = story.rest(2000)
    finding = CHECK.judge(story.history())
    assert finding.why == (
        "at rest after phase member 2 joins members believed that they owned {t/1, t/2} {t/0}; "
        "published: {t/0, t/1} {t/2}"
    )
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("runner", 1), seen, wrong, rest))


@pytest.mark.parametrize(("until_ms", "outcome"), [(1990, Outcome.CLEAN), (2040, Outcome.VIOLATED)])
def test_nobody_works_on_more_than_its_row(until_ms: int, outcome: Outcome) -> None:
    story = two_members(ROW)
    settles(story, 1990, {0: "m1", 1: "m1", 2: "m2"})
    story.worked("m2", *range(1900, until_ms + 1, 20), partition=0)
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert finding.outcome is outcome
    if outcome is Outcome.VIOLATED:
        assert "at rest after phase member 2 joins g_m2 worked on t/0; published: {t/0, t/1} {t/2}" in finding.why


def test_the_registry_counts_where_the_observer_saw_the_published_row() -> None:
    story = two_members(ROW)
    settles(story, 1900, {0: "m1", 1: "m2", 2: "m2"})
    story.owners_seen(1990, {0: "m1", 1: "m1", 2: "m2"})
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert finding.outcome is Outcome.VIOLATED
    assert (
        "at rest after phase member 2 joins members owned {t/0} {t/1, t/2}; published: {t/0, t/1} {t/2}" in finding.why
    )


def test_an_observer_that_saw_other_owners_leaves_it_open() -> None:
    story = two_members(ROW)
    settles(story, 1900, {0: "m1", 1: "m1", 2: "m2"})
    story.owners_seen(1990, {0: "m1", 1: "m2", 2: "m2"})
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why == (
        "after phase member 2 joins the outside observer saw {t/0} {t/1, t/2}, but the registry held {t/0, t/1} {t/2}"
    )


def test_every_published_row_must_be_looked_at() -> None:
    """The observer stopped before the third member came."""
    story = two_members(ROW)
    settles(story, 1990, {0: "m1", 1: "m1", 2: "m2"})
    story.rest(2000)
    story.announces(2000, "member 3 joins", published=[*ROW, []])
    story.joins(2010, "m3")
    story.rest(3000)
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.measures) == (Outcome.UNKNOWN, {"count": 0, "rows": 1})
    assert finding.why == "the owners were not observed after phase member 3 joins"
