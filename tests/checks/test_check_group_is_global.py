"""A group that is global (Z15a): who reads other topics rebalances too."""

from __future__ import annotations

import pytest
from group_story import GroupStory
from rest_story import ended
from test_check_reactions import numbers

from rebalance_lab.checks import CHECKS, Finding, Outcome

GLOBAL = CHECKS["group_is_global"]


def readers(*streams: dict[str, int], pattern: str = "static") -> GroupStory:
    """m1, m2, … read these topics, and are at rest at 1000 ms."""
    story = GroupStory()
    for number, each in enumerate(streams, 1):
        story.joins(number, f"m{number}", streams=each, pattern=pattern)
    story.rest(1000)
    return story


def test_readers_of_other_topics_rebalance_too() -> None:
    story = readers({"a": 1}, {"b": 1})
    story.joins(2000, "m3", streams={"b": 1})
    story.reacts(2005, 2010, "m1")
    assert GLOBAL.statement
    assert GLOBAL.applies(story.history())
    assert GLOBAL.judge(ended(story).history()) == Finding(
        Outcome.CLEAN,
        "members rebalanced for other members with which they share no topic",
        (),
        numbers(reactions=1, longest_us=5_000),  # m2 shares one, and did not
    )


def test_readers_in_another_group_need_not() -> None:
    story = readers({"a": 1}, {"b": 1})
    story.joins(3, "m3", streams={"c": 1}, group="h")
    story.goes(2000, "m2")
    story.reacts(2005, 2010, "m1")
    finding = GLOBAL.judge(ended(story).history())
    assert (finding.outcome, finding.measures["reactions"]) == (Outcome.CLEAN, 1)


def test_a_rebalance_for_another_reason_does_not_count() -> None:
    """m1's operations are recorded, and it neither heard of the change nor was triggered."""
    story = readers({"a": 1}, {"b": 1})
    story.asks(1500, "m1", "get", "/brokers/ids/0", zxid=1)
    change = story.goes(2000, "m2")
    began = story.rebalances(2005, 2010, "m1")
    finding = GLOBAL.judge(ended(story).history())
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (change, began))
    assert finding.why == "g_m1 began a rebalance 0.005 s after /consumers/g/ids/g_m2 went, but for another reason"


def test_they_do_not() -> None:
    story = readers({"a": 1}, {"b": 1})
    change = story.goes(2000, "m2")
    finding = GLOBAL.judge(ended(story).history())
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (change,))
    assert finding.why == "g_m1 did not rebalance after /consumers/g/ids/g_m2 went"


@pytest.mark.parametrize(
    ("one", "other", "pattern"),
    [({"a": 1}, {"a": 2, "b": 1}, "static"), ({"a.*": 1}, {"b.*": 1}, "white_list")],
)
def test_who_shares_a_topic_or_may_is_of_no_concern(one: dict[str, int], other: dict[str, int], pattern: str) -> None:
    story = readers(one, other, pattern=pattern)
    story.goes(2000, "m2")
    assert not GLOBAL.applies(ended(story).history())


@pytest.mark.parametrize(
    ("topics", "one", "outcome"),
    [
        (("a", "b"), "a", Outcome.VIOLATED),  # as a ConsoleConsumer names its topic
        (("a1", "b1"), "a.*", Outcome.VIOLATED),
        (("a1", "b1", "ab"), "a.*", None),  # both take ab
        ((), "a", None),  # what a filter takes cannot be told
    ],
)
def test_a_filter_means_the_topics_that_it_takes(topics: tuple[str, ...], one: str, outcome: Outcome | None) -> None:
    story = readers({one: 1}, {".*b.*" if len(topics) != 2 else f"{topics[1]}": 1}, pattern="white_list")
    for topic in topics:
        story.topic(500, topic, 1)
    story.goes(2000, "m2")
    history = ended(story).history()
    assert (GLOBAL.judge(history).outcome if GLOBAL.applies(history) else None) is outcome


def test_who_comes_with_what_cannot_be_read_is_of_no_concern() -> None:
    story = readers({"a": 1}, {"b": 1})
    story.created_id(2000, "m3", "0x3")
    assert not GLOBAL.applies(ended(story).history())


def test_who_goes_and_was_never_seen_to_come_is_of_no_concern() -> None:
    story = readers({"a": 1}, {"b": 1})
    story.deleted_id(2000, "m9", "0x9")
    assert not GLOBAL.applies(ended(story).history())
