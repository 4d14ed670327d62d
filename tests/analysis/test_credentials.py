"""What makes a live trial live: by hand, without Spark."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from history_story import Story

from rebalance_lab.analysis.trialwise.credentials import unproved
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History


def live(story: Story | None = None, **told: Any) -> History:
    """Proved live, but for what is told; m1 started in a host of its own."""
    if story is None:
        story = Story(world="processes")
        story.add(0, "m1", Kind.PROCESS_STARTED, group=None)
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
    told: dict[str, Any], why: str | None
) -> None:
    assert unproved(live(**told)) == why


def test_every_member_of_a_live_trial_runs_in_a_process_that_is_recorded() -> None:
    story = Story(world="processes")
    for actor in ("m1", "m2"):
        story.add(0, actor, Kind.PROCESS_STARTED, group=None)
        story.started(1, actor)
    assert unproved(live(story)) is None
    story.started(2, "m3")
    assert unproved(live(story)) == "no start of m3's process is recorded"
