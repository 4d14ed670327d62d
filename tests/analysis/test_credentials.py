"""What makes a trial one of its own, and a live one live: by hand, without Spark."""

from __future__ import annotations

import hashlib

import msgspec
import pytest
from history_story import Story

from rebalance_lab.analysis.trialwise.credentials import course, unproved
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History

# -- courses ------------------------------------------------------------------------------------


def digest(*steps: str) -> str:
    return hashlib.sha256("".join(f"{step}\n" for step in steps).encode()).hexdigest()


def test_a_course_is_what_happened_in_registry_and_belief() -> None:
    story = Story()
    story.started(0, "m1")
    story.created_id(10, "m1", "0x1")
    story.created(20, "m1", 3, "0x1")
    story.owned(30, "m1", 3)
    story.worked("m1", 40, 50, partition=3)
    story.registry(60, Kind.FAILED, None, "0x7", group=None, detail={"code": -110})
    story.rest(1000)
    assert course(story.history()) == digest(
        '["zookeeper","created","m1",null,null,"/consumers/g/ids/m1",null]',
        '["zookeeper","created","m1","t",3,"/consumers/g/owners/t/3",null]',
        '["m1","owned","m1","t",3,null,null]',
        '["zookeeper","failed",null,null,null,null,-110]',
    )


def test_of_members_that_no_process_started_the_course_has_the_names() -> None:
    story = Story()
    story.started(0, "m1")
    story.created_id(10, "m2", "0x2")
    story.created_id(20, "m1", "0x1")
    assert course(story.history()) == digest(
        '["zookeeper","created","g_m2",null,null,"/consumers/g/ids/g_m2",null]',
        '["zookeeper","created","m1",null,null,"/consumers/g/ids/m1",null]',
    )


def test_a_start_without_a_name_names_nobody() -> None:
    story = Story()
    story.add(0, "m9", Kind.MEMBER_STARTED)
    story.created_id(10, "m1", "0x1")
    story.registry(20, Kind.CREATED, "/elsewhere", "0x1", group=None)
    assert course(story.history()) == digest(
        '["zookeeper","created","g_m1",null,null,"/consumers/g/ids/g_m1",null]',
        '["zookeeper","created",null,null,null,"/elsewhere",null]',
    )


# -- proofs -------------------------------------------------------------------------------------


def live(story: Story | None = None, **told: object) -> History:
    """Proved live, but for what is told; m1 started in a host of its own."""
    if story is None:
        story = Story(world="processes")
        story.add(0, "m1", Kind.HOST_STARTED, group=None)
        story.started(1, "m1")
    history = story.history()
    versions = {"zookeeper": "3.9.3"}
    trial = msgspec.structs.replace(history.trial, **{"started_wall_ms": 1, "versions": versions, **told})
    return History(trial, history.events)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({}, None),
        ({"started_wall_ms": 0}, "it names no boot id, or no time at which it started"),
        ({"boot_ids": ()}, "it names no boot id, or no time at which it started"),
        ({"versions": {"java": "21"}}, "it names no version of ZooKeeper"),
        ({"world": "simulated", "boot_ids": (), "started_wall_ms": 0, "versions": {}}, None),
    ],
)
def test_a_live_trial_names_the_boot_its_time_and_the_version_of_its_server(
    told: dict[str, object], why: str | None
) -> None:
    assert unproved(live(**told)) == why


def test_every_member_of_a_live_trial_runs_in_a_process_that_is_recorded() -> None:
    story = Story(world="processes")
    for actor in ("m1", "m2"):
        story.add(0, actor, Kind.HOST_STARTED, group=None)
        story.started(1, actor)
    assert unproved(live(story)) is None
    story.started(2, "m3")
    assert unproved(live(story)) == "no start of m3's process is recorded"
