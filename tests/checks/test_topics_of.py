"""Topics of a registration: the checks read filters as the members do, by Java's rules."""

from __future__ import annotations

import json

import pytest
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Outcome
from rebalance_lab.checks.registry_state import registration_of, topics_of
from rebalance_lab.history.events import Event, Kind, Layer

EXISTING = ("t1", "t2", "__consumer_offsets", "u")


def registered(data: object) -> Event:
    text = data if isinstance(data, str) else json.dumps(data)
    detail: dict[str, object] = {"path": "/consumers/g/ids/g_m1", "data": text}
    return Event("zookeeper", 0, 0, Layer.REGISTRY, Kind.CREATED, member="g_m1", group="g", detail=detail)


@pytest.mark.parametrize(
    ("pattern", "text", "topics"),
    [
        ("static", "t1", ["t1"]),
        ("white_list", "t1", ["t1"]),
        ("white_list", r"\p{Alpha}+1", ["t1"]),  # a class that Java has and Python's `re` refuses
        ("white_list", "t[0-9]", ["t1", "t2"]),
        ("white_list", ".*", ["t1", "t2", "u"]),
        ("black_list", "t1", ["t2", "u"]),
        ("white_list", "t1, u", ["t1", "u"]),
        ("white_list", "[a-c[d-f]]", None),  # Java knows unions of classes, the lab does not
        ("white_list", "(", None),  # Java refuses it
    ],
)
def test_topics_of_a_registration(pattern: str, text: str, topics: list[str] | None) -> None:
    event = registered({"version": 1, "subscription": {text: 1}, "pattern": pattern, "timestamp": "1"})
    assert topics_of(event, EXISTING) == topics


@pytest.mark.parametrize("data", ["", "[]", "{", '{"version":1}', '{"subscription":{"t":"1"},"pattern":"static"}'])
def test_a_payload_that_is_not_a_registration_leaves_the_topics_unknown(data: str) -> None:
    assert (registration_of(registered(data)), topics_of(registered(data), EXISTING)) == (None, None)


@pytest.mark.parametrize("text", ["(", "[a-c[d-f]]"])
def test_omission_is_unknown_where_a_filter_cannot_be_read(text: str) -> None:
    story = GroupStory()
    story.topic(0, "t", 2)
    story.joins(100, "m1")
    story.joins(100, "m2", streams={text: 1}, pattern="white_list")
    story.claims(200, "m1", 0)
    story.claims(200, "m2", 1)
    story.rest(1_000)
    finding = CHECKS["omission"].judge(story.history())
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "the topics that g_m2 subscribed to cannot be read")


def test_omission_sees_what_a_filter_of_java_takes() -> None:
    story = GroupStory()
    story.topic(0, "t1", 2)
    story.joins(100, "m1", streams={r"\p{Alpha}+1": 1}, pattern="white_list")
    story.claims(200, "m1", 0, topic="t1")
    story.rest(1_000)
    finding = CHECKS["omission"].judge(story.history())
    assert (finding.outcome, finding.why) == (Outcome.VIOLATED, "t1/1 had no owner at rest")
