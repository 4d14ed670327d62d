"""placement_rule: the rule against Kafka's recorded answers, and histories written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from topics_story import Topics

from rebalance_lab.checks import Finding, Outcome
from rebalance_lab.checks.placed_topics import Placed
from rebalance_lab.checks.placement_rule import explanations, is_random
from rebalance_lab.history.events import LAYER_OF, Event, EventId, Kind

CREATED: dict[str, Any] = {"layer": LAYER_OF[Kind.CREATED], "kind": Kind.CREATED}

VECTORS = Path(__file__).parents[1] / "vectors"


def by_rule(start: int, gap: int, partitions: int, replication: int, brokers: int = 5) -> list[list[int]]:
    """What the rule says of brokers 1 to `brokers`, written once more."""
    found = []
    for partition in range(partitions):
        first = (partition + start) % brokers
        behind = [1 + (gap + partition // brokers + each) % (brokers - 1) for each in range(replication - 1)]
        found.append([first + 1, *((first + each) % brokers + 1 for each in behind)])
    return found


class Placements(Topics):
    def __init__(self) -> None:
        super().__init__(brokers=5)

    def topic(self, number: int, *replicas: list[int]) -> EventId:
        name, ms = f"t{number}", 100 + 10 * number
        asked = self.asked(ms, name, len(replicas[0]), len(replicas))
        created = self.assignment(ms + 2, name, *replicas)
        self.answered(ms + 4, name, asked)
        return created

    def judged(self) -> Finding:
        return self.found("placement_rule")


def test_starts_and_gaps_of_all_kinds() -> None:
    story = Placements()
    for number in range(20):
        story.topic(number, *by_rule(number % 5, number % 4, 6, 1 + number % 3))
    finding = story.judged()
    assert finding.outcome is Outcome.CLEAN
    assert finding.measures == {"count": 0, "topics": 20, "partitions": 120, "wrapped": 20, "most_starts": 4}


def test_a_gap_that_does_not_grow() -> None:
    story = Placements()
    rows = by_rule(0, 1, 6, 2)
    rows[5] = rows[0]
    wrong = story.topic(0, *rows)
    finding = story.judged()
    assert (finding.outcome, finding.witness, finding.measures["count"]) == (Outcome.VIOLATED, (wrong,), 1)


def test_a_leader_that_is_not_the_next_broker() -> None:
    story = Placements()
    wrong = story.topic(0, [3], [5], [1], [4], [2], [3])
    assert story.judged().witness == (wrong,)


def test_topics_that_all_begin_at_one_broker() -> None:
    story = Placements()
    topics = [story.topic(number, *by_rule(2, number % 4, 6, 2)) for number in range(20)]
    finding = story.judged()
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (topics[0], topics[-1]))
    assert finding.why == "20 of 20 topics have the same start, of 5 that are possible"


def test_topics_that_all_have_one_gap() -> None:
    story = Placements()
    for number in range(20):
        story.topic(number, *by_rule(number % 5, 1, 6, 3))
    assert story.judged().why == "20 of 20 topics have the same gap, of 4 that are possible"


def test_few_topics_decide_nothing() -> None:
    story = Placements()
    for number in range(5):
        story.topic(number, *by_rule(number, number % 4, 6, 2))
    finding = story.judged()
    assert (finding.outcome, finding.why) == (
        Outcome.UNKNOWN,
        "5 topics are too few to tell a random start from a fixed one",
    )


def test_short_topics_decide_nothing() -> None:
    story = Placements()
    for number in range(20):
        story.topic(number, *by_rule(number % 5, number % 4, 5, 2))
    finding = story.judged()
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why == "no topic has more partitions than there are brokers, so no gap had to grow"


def test_what_chance_explains_and_what_it_does_not() -> None:
    assert is_random({0: 10, 1: 6, 2: 4}, 5)
    assert not is_random({0: 20}, 5)
    assert is_random({0: 12}, 5)
    assert not is_random({0: 200, 1: 200, 2: 200, 3: 400, 4: 0}, 5)


def recorded() -> list[dict[str, Any]]:
    """What Kafka's own classes answered for new topics without racks."""
    files = [json.loads((VECTORS / name).read_text()) for name in ("placement_0_8.json", "placement_3_9.json")]
    return [
        case
        for file in files
        for case in file["cases"]
        if case.get("assignment")
        and not case.get("racks")
        and not case["start_partition_id"]
        and len(case["brokers"]) > 1
    ]


def test_the_start_and_gap_of_recorded_answers_are_found() -> None:
    assert len(recorded()) > 30
    for case in recorded():
        brokers = tuple(case["brokers"])
        replicas = tuple(tuple(case["assignment"][str(each)]) for each in range(case["partitions"]))
        start = case["fixed_start_index"]
        topic = Placed(case["name"], Event(actor="z", n=0, at_us=0, **CREATED), brokers, replicas, {})
        assert (start % len(brokers), start % (len(brokers) - 1)) in explanations(topic), case["name"]


@pytest.mark.parametrize("swapped", [0, 3, 8])
def test_two_brokers_that_changed_places_are_found(swapped: int) -> None:
    rows = [tuple(each) for each in by_rule(3, 2, 9, 3)]
    rows[swapped] = (rows[swapped][1], rows[swapped][0], rows[swapped][2])
    topic = Placed("t", Event(actor="z", n=0, at_us=0, **CREATED), (1, 2, 3, 4, 5), tuple(rows), {})
    assert explanations(topic) == []
