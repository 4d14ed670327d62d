"""rack_spread: Kafka's recorded answers, and histories written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from topics_story import Topics

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.checks.placed_topics import Placed
from rebalance_lab.checks.rack_spread import mistake
from rebalance_lab.history.events import LAYER_OF, Event, EventId, Kind

CREATED: dict[str, Any] = {"layer": LAYER_OF[Kind.CREATED], "kind": Kind.CREATED}

VECTORS = Path(__file__).parents[1] / "vectors"

TWO_EACH = ("a", "b", "c", "a", "b", "c")


class Placements(Topics):
    def __init__(self, racks: tuple[str, ...] = TWO_EACH, brokers: int = 6) -> None:
        super().__init__(brokers, racks)

    def topic(self, *replicas: list[int], ms: int = 100) -> EventId:
        asked = self.asked(ms, "t", len(replicas[0]), len(replicas))
        created = self.assignment(ms + 2, "t", *replicas)
        self.answered(ms + 4, "t", asked)
        return created

    def judged(self) -> Finding:
        return self.found("rack_spread")


def test_each_replica_in_a_rack_of_its_own() -> None:
    story = Placements()
    story.topic([1, 2, 3], [5, 6, 4], [3, 4, 2])
    finding = story.judged()
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "topics": 1, "partitions": 3, "racks": 3}


def test_two_replicas_in_one_rack() -> None:
    story = Placements()
    wrong = story.topic([1, 2, 3], [5, 6, 3])
    finding = story.judged()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (wrong,))
    assert finding.why == "topic t: partition 1 has its replicas [5, 6, 3] on 2 of 3 possible racks"


def test_more_replicas_than_racks_leave_no_rack_out() -> None:
    story = Placements(("a", "a", "b", "b", "a", "a"))
    story.topic([1, 3, 2], [4, 5, 6])
    assert story.judged().outcome is Outcome.CLEAN
    story = Placements(("a", "a", "b", "b", "a", "a"))
    story.topic([1, 3, 2], [5, 6, 1])
    assert story.judged().why == "topic t: partition 1 has its replicas [5, 6, 1] on 1 of 2 possible racks"


def test_a_broker_that_leads_more_than_others() -> None:
    story = Placements()
    story.topic([1, 2], [3, 4], [1, 3])
    assert story.judged().why == "topic t: broker 1 is the preferred leader of 2 partitions, and broker 2 of 0"


def test_a_replica_on_a_broker_that_is_not_there_is_in_no_rack() -> None:
    story = Placements()
    story.topic([1, 9])
    assert story.judged().why == "topic t: partition 0 has a replica on broker 9, which is not registered"


def test_the_rack_of_the_last_registration_counts() -> None:
    story = Placements()
    story.znode(50, "/brokers/ids/2", kind=Kind.DELETED)
    story.registered(60, 2, "a")
    story.topic([1, 2], ms=20_000)
    assert story.judged().outcome is Outcome.VIOLATED


def test_a_broker_that_registers_meanwhile_leaves_the_topic_undecided() -> None:
    story = Placements()
    asked = story.asked(20_000, "t", 2, 1)
    story.registered(20_001, 7, "a")
    story.assignment(20_002, "t", [1, 4])
    story.answered(20_004, "t", asked)
    story.rest(30_000)
    assert not CHECKS["rack_spread"].applies(story.history())


@pytest.mark.parametrize(("racks", "brokers"), [((), 6), (("a", "b", "c"), 6)], ids=["none", "some"])
def test_brokers_without_racks_are_left_to_placement_rule(racks: tuple[str, ...], brokers: int) -> None:
    story = Placements(racks, brokers)
    story.topic([1, 4])
    story.rest(9000)
    assert not CHECKS["rack_spread"].applies(story.history())
    assert CHECKS["placement_rule"].applies(story.history())


def test_one_replica_each_or_one_rack_decides_nothing() -> None:
    story = Placements()
    story.topic([1], [2])
    assert (story.judged().outcome, story.judged().why) == (Outcome.UNKNOWN, "no partition has several replicas")
    story = Placements(("a",) * 6)
    story.topic([1, 2], [2, 3])
    assert (story.judged().outcome, story.judged().why) == (Outcome.UNKNOWN, "all brokers stand in one rack")


def recorded() -> list[dict[str, Any]]:
    """What Kafka's own class answered for new topics on brokers in racks."""
    cases = json.loads((VECTORS / "placement_3_9.json").read_text())["cases"]
    return [each for each in cases if each.get("racks") and each.get("assignment") and not each["start_partition_id"]]


def test_what_kafka_answered_is_spread() -> None:
    assert len(recorded()) > 30
    for case in recorded():
        replicas = tuple(tuple(case["assignment"][str(each)]) for each in range(case["partitions"]))
        racks = dict(zip(case["brokers"], case["racks"], strict=True))
        created = Event(actor="z", n=0, at_us=0, **CREATED)
        assert mistake(Placed("t", created, tuple(sorted(racks)), replicas, racks)) is None, case["name"]
