"""Groups at rest: what the registry holds then."""

from __future__ import annotations

import json

from group_story import GroupStory

from rebalance_lab.checks.registry_state import RegistryState, states_at_rests, topic_changes, unrested
from rebalance_lab.history.events import Kind


def at_rest(story: GroupStory) -> RegistryState:
    """At a rest at 9 s."""
    story.rest(9_000)
    [(_, state)] = states_at_rests(story.history())
    return state


def test_what_stands_at_a_rest() -> None:
    story = GroupStory()
    topic = story.topic(0, "t", 2)
    broker = story.broker(0, 7)
    member = story.joins(10, "m1")
    claims = story.claims(20, "m1", 0, 1)
    state = at_rest(story)
    assert {who: event.id for who, event in state.ids.items()} == {("g", "g_m1"): member}
    assert [event.id for event in state.owners.values()] == claims
    assert list(state.owners) == [("g", "t", 0), ("g", "t", 1)]
    assert {name: (event.id, numbers) for name, (event, numbers) in state.topics.items()} == {"t": (topic, (0, 1))}
    assert {path: event.id for path, event in state.brokers.items()} == {"/brokers/ids/7": broker}
    assert state.freed == {}


def test_what_has_gone_does_not() -> None:
    story = GroupStory()
    for kind in (Kind.CREATED, Kind.DELETED):
        story.topic(100, "t", 2, kind)
        story.broker(100, 7, kind)
    story.joins(10, "m1")
    story.claims(20, "m1", 0)
    [released] = story.releases(30, "m1", 0)
    story.goes(40, "m1")
    state = at_rest(story)
    assert (state.ids, state.owners, state.topics, state.brokers) == ({}, {}, {}, {})
    assert {place: event.id for place, event in state.freed.items()} == {("g", "t", 0): released}


def test_what_was_there_before_the_history_may_go() -> None:
    story = GroupStory()
    story.topic(0, "t", 2, Kind.DELETED)
    story.broker(0, 7, Kind.DELETED)
    story.goes(10, "m1")
    story.releases(20, "m1", 0)
    state = at_rest(story)
    assert (state.ids, state.owners, state.topics, state.brokers) == ({}, {}, {}, {})


def test_what_has_an_owner_again_is_free_no_more() -> None:
    story = GroupStory()
    story.claims(20, "m1", 0)
    story.releases(30, "m1", 0)
    story.claims(40, "m2", 0)
    state = at_rest(story)
    assert (list(state.owners), state.freed) == ([("g", "t", 0)], {})


def test_what_is_below_a_topic_s_znode_is_not_the_topic() -> None:
    """As the state of a partition, which names its topic too."""
    story = GroupStory()
    topic = story.topic(0, "t", 2)
    detail = {"data": json.dumps({"version": 1, "partitions": {"9": [0]}}), "ephemeral": False}
    path = "/brokers/topics/t/partitions/0/state"
    story.registry(10, Kind.CREATED, path, "0xff", group=None, topic="t", detail=detail)
    assert [(name, event.id) for name, event in topic_changes(story.history())] == [("t", topic)]
    assert at_rest(story).topics["t"][1] == (0, 1)


def test_a_change_of_the_moment_of_the_last_rest_was_rested_from() -> None:
    for ms, left in ((9_000, None), (9_000.001, "no rest followed the change of /brokers/topics/t")):
        story = GroupStory()
        story.rest(9_000)
        story.topic(ms, "t", 1)
        story.phase(20_000, "closing")
        assert unrested(story.history()) == left
