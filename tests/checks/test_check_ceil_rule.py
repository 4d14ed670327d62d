"""The rule N = ceil(P/C) (Z5b): tiny histories, findings in full."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind

CHECK = CHECKS["ceil_rule"]
CLEAN = "where the rule and range differ, members owned what the rule gives them"

#: Of four partitions: by the rule, and by range.
BY_RULE = {"m1": (0, 1), "m2": (2, 3)}
BY_RANGE = {"m1": (0, 1), "m2": (2,), "m3": (3,)}


def dealt(
    owned: Mapping[str, tuple[int, ...]], *, partitions: int = 4, members: int = 3, published: bool = True
) -> tuple[GroupStory, EventId]:
    """m1, m2, … read topic t and own these at the rest of a phase; the story, and that rest."""
    story = GroupStory()
    story.topic(0, "t", partitions)
    story.announces(5, "joining", **({"published": []} if published else {}))
    for number in range(members, 0, -1):  # the order of the ids counts, not who came first
        story.joins(10, f"m{number}")
    for actor, numbers in owned.items():
        story.claims(100, actor, *numbers)
    return story, story.rest(1000)


def test_shares_by_the_rule() -> None:
    story, _ = dealt(BY_RULE)
    assert CHECK.applies(story.history())
    assert CHECK.judge(story.history()) == Finding(Outcome.CLEAN, CLEAN, (), {"count": 0, "topics": 1})


def test_shares_by_range() -> None:
    story, rest = dealt(BY_RANGE)
    claimed = next(event.id for event in story.events if event.partition == 3)
    assert CHECK.judge(story.history()) == Finding(
        Outcome.VIOLATED,
        "by the rule g_m2 owns t/3, but g_m3 owns it",
        (("runner", 0), claimed, rest),
        {"count": 1, "topics": 1},
    )


def test_a_partition_of_nobody() -> None:
    story, rest = dealt({"m1": (0, 1), "m2": (2,)})
    finding = CHECK.judge(story.history())
    assert finding.why == "by the rule g_m2 owns t/3, but no member owns it"
    assert finding.witness == (("runner", 0), rest)


@pytest.mark.parametrize(
    ("partitions", "members", "differ"),
    [
        (4, 3, True),
        (10, 3, True),
        (5, 4, True),
        (6, 4, True),
        (3, 3, False),
        (5, 3, False),
        (2, 3, False),
        (3, 2, False),
    ],
)
def test_it_applies_where_range_deals_otherwise(partitions: int, members: int, differ: bool) -> None:
    story, _ = dealt({}, partitions=partitions, members=members)
    assert CHECK.applies(story.history()) is differ


def test_it_applies_to_published_rows_alone() -> None:
    story, _ = dealt(BY_RANGE, published=False)
    assert not CHECK.applies(story.history())


def test_a_rest_that_was_missed_shows_nothing() -> None:
    story = GroupStory()
    story.topic(0, "t", 4)
    story.announces(5, "joining", published=[])
    for actor in ("m1", "m2", "m3"):
        story.joins(10, actor)
    story.rest_missed(1000, "m2: it rebalances")
    story.announces(1000, "more")
    story.rest(2000)
    assert not CHECK.applies(story.history())


def test_streams_count_as_consumers() -> None:
    """m1 has two of the three streams, and so the first two shares."""
    story = GroupStory()
    story.topic(0, "t", 4)
    story.announces(5, "joining", published=[])
    story.joins(10, "m1", streams={"t": 2})
    story.joins(10, "m2")
    story.claims(100, "m1", 0, 1, 2, 3)
    story.rest(1000)
    assert CHECK.judge(story.history()) == Finding(Outcome.CLEAN, CLEAN, (), {"count": 0, "topics": 1})


def test_each_topic_is_dealt_to_those_that_read_it() -> None:
    story, _ = dealt(BY_RULE)
    story.announces(1000, "more", published=[])
    story.topic(1010, "u", 4)
    for actor in ("m4", "m5"):
        story.joins(1020, actor, streams={"u": 1})
    story.joins(1030, "m6", streams={"u": 1})
    story.joins(1030, "m7", streams={"v": 1})  # which is not there
    story.joins(1030, "m8", group="h", streams={"u": 1})
    story.claims(1100, "m4", 0, 1, topic="u")
    story.claims(1100, "m6", 2, 3, topic="u")
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert (finding.why, finding.measures) == (
        "by the rule g_m5 owns u/2, but g_m6 owns it",
        {"count": 1, "topics": 3},
    )


def test_filters_are_read_as_java_reads_them() -> None:
    story = GroupStory()
    story.topic(0, "t", 4)
    story.announces(5, "joining", published=[])
    for actor in ("m1", "m2", "m3"):
        story.joins(10, actor, streams={r"\p{Alpha}": 1}, pattern="white_list")
    story.claims(100, "m1", 0, 1)
    story.claims(100, "m2", 2, 3)
    story.rest(1000)
    assert CHECK.judge(story.history()).measures == {"count": 0, "topics": 1}


def test_a_registration_that_cannot_be_read_leaves_it_open() -> None:
    story, _ = dealt(BY_RANGE)
    story.announces(1000, "more", published=[])
    detail = {"ephemeral": True, "data": "?"}
    story.registry(1010, Kind.CREATED, "/consumers/g/ids/g_m9", "0x9", member="g_m9", group="g", detail=detail)
    story.rest(2000)
    assert CHECK.judge(story.history()).measures == {"count": 1, "topics": 1}  # those of the rest before


@pytest.mark.parametrize(("outcomes", "outcome"), [
    (["failed"], Outcome.UNKNOWN), (["failed", "ok"], Outcome.VIOLATED), (["ok"], Outcome.VIOLATED),
])  # fmt: skip
def test_a_rest_at_which_a_member_had_given_up_leaves_it_open(outcomes: list[str], outcome: Outcome) -> None:
    story, _ = dealt(BY_RANGE)
    for number, ended in enumerate(outcomes):
        story.rebalances(200 + 10 * number, 205 + 10 * number, "m2", ended)
    finding = CHECK.judge(story.history())
    assert finding.outcome is outcome
    if outcome is Outcome.UNKNOWN:
        assert finding.why.endswith("g_m2 had given up at the rest after phase joining")


def test_who_gave_up_in_another_group_leaves_nothing_open() -> None:
    story, _ = dealt(BY_RULE)
    story.joins(20, "m8", group="h")
    story.rebalances(200, 205, "m8", "failed", group="h")
    assert CHECK.judge(story.history()).outcome is Outcome.CLEAN


def test_members_of_another_group_that_came_first_are_not_consumers() -> None:
    story = GroupStory()
    story.topic(0, "t", 4)
    story.announces(5, "joining", published=[])
    for group in ("h", "g"):
        for number in (1, 2, 3):
            story.joins(10, f"m{number}", group=group)
    story.claims(100, "m1", 0, 1)
    story.claims(100, "m2", 2, 3)
    story.rest(1000)
    assert CHECK.judge(story.history()).measures == {"count": 0, "topics": 1}


def test_a_filter_that_java_refuses_leaves_it_open() -> None:
    story, _ = dealt(BY_RANGE)
    story.joins(20, "m4", streams={"[": 1}, pattern="white_list")
    assert not CHECK.applies(story.history())


def test_all_that_had_given_up_are_named() -> None:
    story, _ = dealt(BY_RANGE)
    for actor in ("m2", "m3"):
        story.rebalances(200, 205, actor, "failed")
    assert "g_m2, g_m3 had given up at the rest" in CHECK.judge(story.history()).why
