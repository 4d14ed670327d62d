"""Placement as real Kafka 0.8.2.2 and 3.9.1 answered it, and what holds for every placement."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.placement import (
    InvalidPartitions,
    InvalidReplicationFactor,
    PlacementError,
    RacksMissing,
    Start,
    place,
    rack_alternated,
)

VECTORS = Path(__file__).parents[1] / "vectors"


def cases(version: str) -> list[Any]:
    recorded = json.loads((VECTORS / f"placement_{version}.json").read_text(encoding="utf-8"))["cases"]
    return [pytest.param(case, id=f"{version}-{case['name']}") for case in recorded]


ALL = cases("0_8") + cases("3_9")


def answered(case: dict[str, Any]) -> dict[str, Any]:
    """What `place` answers to a recorded case, in the recording's form."""
    start = Start.fixed(case["fixed_start_index"], case["start_partition_id"])
    racks = {broker: rack for broker, rack in zip(case["brokers"], case.get("racks") or (), strict=False) if rack}
    try:
        placed = place(case["brokers"], case["partitions"], case["replication"], start, racks)
    except PlacementError as error:
        return {"error": str(error)}
    answer: dict[str, Any] = {"assignment": {str(each): list(replicas) for each, replicas in placed.items()}}
    if racks:
        answer["rack_alternated"] = list(rack_alternated(racks))
    return answer


def recorded(case: dict[str, Any]) -> dict[str, Any]:
    if "error" in case:
        return {"error": case["error"].split(": ", 1)[1]}
    return {key: case[key] for key in ("assignment", "rack_alternated") if case.get(key) is not None}


def test_all_cases_are_there() -> None:
    assert (len(cases("0_8")), len(cases("3_9"))) == (84, 86)


@pytest.mark.parametrize("case", ALL)
def test_the_answer_is_kafkas(case: dict[str, Any]) -> None:
    answer, expected = answered(case), recorded(case)
    if "error" in expected:  # 0.8.2.2 has the words of 3.9.1 without the capital and the full stop
        assert str(answer["error"]).rstrip(".").lower() == expected["error"].rstrip(".").lower()
    else:
        assert answer == expected


def test_the_article_s_example() -> None:
    """Claim P2: 5 brokers, 5 partitions, the first on the fourth broker."""
    placed = place([1, 2, 3, 4, 5], 5, 1, Start.fixed(3))
    assert [replicas[0] for replicas in placed.values()] == [4, 5, 1, 2, 3]


def test_index_and_shift_are_apart() -> None:
    assert place([1, 2, 3], 1, 2, Start(index=0, shift=1)) == {0: (1, 3)}


@pytest.mark.parametrize(
    ("brokers", "partitions", "replication", "racks", "error"),
    [
        ([1, 2], 0, 1, {}, InvalidPartitions),
        ([1, 2], -1, 1, {}, InvalidPartitions),
        ([1, 2], 1, 0, {}, InvalidReplicationFactor),
        ([1, 2], 1, 3, {}, InvalidReplicationFactor),
        ([], 1, 1, {}, InvalidReplicationFactor),
        ([1, 2], 1, 1, {1: "a"}, RacksMissing),
    ],
)
def test_what_kafka_refuses(
    brokers: list[int], partitions: int, replication: int, racks: dict[int, str], error: type[PlacementError]
) -> None:
    with pytest.raises(error):
        place(brokers, partitions, replication, Start.fixed(0), racks)


def test_racks_of_other_brokers_do_not_count() -> None:
    """The cluster's racks may be handed in whole, although the topic is placed on some brokers only."""
    assert place([1, 2], 2, 1, Start.fixed(0), {9: "z"}) == {0: (1,), 1: (2,)}


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[int], dict[int, str], int, int, Start]:
    brokers = draw(st.lists(st.integers(0, 99), min_size=1, max_size=9, unique=True))
    racks = {each: draw(st.sampled_from("abc")) for each in brokers} if draw(st.booleans()) else {}
    replication = draw(st.integers(1, len(brokers)))
    start = Start(draw(st.integers(0, 20)), draw(st.integers(0, 20)), draw(st.integers(0, 20)))
    return brokers, racks, draw(st.integers(1, 40)), replication, start


@given(clusters())
def test_what_holds_for_every_placement(cluster: tuple[list[int], dict[int, str], int, int, Start]) -> None:
    brokers, racks, partitions, replication, start = cluster
    placed = place(brokers, partitions, replication, start, racks)
    assert list(placed) == list(range(start.partition, start.partition + partitions))
    led = Counter(replicas[0] for replicas in placed.values())
    assert max(led[each] for each in brokers) - min(led[each] for each in brokers) <= 1
    for replicas in placed.values():
        assert len(set(replicas)) == replication
        assert set(replicas) <= set(brokers)
        if racks:
            reached = {racks[each] for each in replicas}
            assert len(reached) == min(replication, len(set(racks.values())))
