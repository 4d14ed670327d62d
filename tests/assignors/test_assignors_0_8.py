"""Every rule as real Kafka 0.8.2.2 answered it; the articles' ceil; what holds for both slices."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from dealing import CASES, consumer_ids, dealt, views
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.assignors import (
    AssignmentContext,
    AssignmentError,
    RequirementFailed,
    TopicPartition,
    UnknownAssignor,
    by_name,
    java_order,
    partitions_of,
)

DEALT = [case for case in CASES if "errors" not in case]
REFUSED = [case for case in CASES if "errors" in case]

#: What Kafka throws where the lab raises.
KAFKA: dict[type[Exception], str] = {RequirementFailed: "java.lang.IllegalArgumentException"}


def names(cases: list[dict[str, Any]]) -> list[str]:
    return [f"{case['strategy']}-{case['name']}" for case in cases]


def test_all_cases_are_there() -> None:
    assert Counter(case["strategy"] for case in CASES) == {"range": 36, "roundrobin": 36}
    assert len(REFUSED) == 3
    assert [case["name"] for case in DEALT if case.get("inconsistent")] == ["hash_collision_topics"]


@pytest.mark.parametrize("case", DEALT, ids=names(DEALT))
def test_the_answer_is_kafkas(case: dict[str, Any]) -> None:
    expected = [(TopicPartition(*partition), thread) for partition, thread in case["assignment"]]
    answer = dealt(case["strategy"], case["members"], case["topics"])
    assert answer == sorted(expected)
    owned = Counter(partition for partition, _ in answer)
    assert (max(owned.values(), default=0) > 1) is case.get("inconsistent", False)


@pytest.mark.parametrize("case", REFUSED, ids=names(REFUSED))
def test_every_member_refuses_where_kafkas_did(case: dict[str, Any]) -> None:
    thrown = {}
    for view in views(case["members"], case["topics"]):
        with pytest.raises(AssignmentError) as caught:
            by_name(case["strategy"])(view)
        thrown[view.consumer_id] = KAFKA[caught.type]
    assert thrown == case["errors"]


def group(members: int, topic: str = "t") -> list[dict[str, Any]]:
    return [{"consumer_id": f"c{each:03}", "topics": {topic: 1}} for each in range(members)]


def shares(assignor: str, partitions: int, members: int) -> list[int]:
    found = dealt(assignor, group(members), {"t": partitions})
    return [sum(thread == f"c{each:03}-0" for _, thread in found) for each in range(members)]


@pytest.mark.parametrize(
    ("assignor", "partitions", "members", "sizes"),
    [
        ("ceil", 10, 3, [4, 4, 2]),
        ("range", 10, 3, [4, 3, 3]),
        ("ceil", 4, 3, [2, 2, 0]),
        ("range", 4, 3, [2, 1, 1]),
        ("ceil", 3, 4, [1, 1, 1, 0]),
        ("range", 3, 4, [1, 1, 1, 0]),
        ("ceil", 3, 2, [2, 1]),
        ("range", 3, 2, [2, 1]),
        ("ceil", 5, 4, [2, 2, 1, 0]),
        ("ceil", 0, 2, [0, 0]),
    ],
)
def test_shares(assignor: str, partitions: int, members: int, sizes: list[int]) -> None:
    assert shares(assignor, partitions, members) == sizes


def test_the_partitions_of_a_topic() -> None:
    found = partitions_of("t", {2: "", 0: ""})
    assert found == [TopicPartition("t", 2), TopicPartition("t", 0)]
    assert {type(each) for each in found} == {TopicPartition}


def test_ceil_differs_from_range_exactly_where_the_claim_says() -> None:
    for partitions in range(1, 41):
        for members in range(1, 25):
            rest = partitions % members
            differs = partitions >= members and 1 <= rest <= members - 2
            same = dealt("ceil", group(members), {"t": partitions}) == dealt("range", group(members), {"t": partitions})
            assert same is not differs, f"{partitions} over {members} (Z5b)"


def test_members_that_get_nothing_are_warned() -> None:
    view = views(group(3), {"t": 2})[2]
    assert by_name("range")(view).warnings == ("No broker partitions consumed by consumer thread c002-0 for topic t",)


topics = st.sampled_from(["a", "b", "c"])
members = st.dictionaries(
    consumer_ids,
    st.dictionaries(topics, st.integers(1, 12), max_size=3),
    min_size=1,
    max_size=6,
)


@given(members, st.dictionaries(topics, st.integers(0, 30)), st.sampled_from(["ceil", "range"]))
def test_every_partition_of_a_subscribed_topic_has_one_owner(
    subscriptions: dict[str, dict[str, int]], existing: dict[str, int], assignor: str
) -> None:
    people = [{"consumer_id": name, "topics": wanted} for name, wanted in subscriptions.items()]
    owners = dealt(assignor, people, existing)
    wanted = {topic for subscription in subscriptions.values() for topic in subscription}
    everything = [TopicPartition(topic, each) for topic in sorted(wanted) for each in range(existing.get(topic, 0))]
    assert [partition for partition, _ in owners] == everything


@given(st.integers(0, 200), st.integers(1, 60))
def test_range_is_even_and_favours_the_first(partitions: int, count: int) -> None:
    sizes = shares("range", partitions, count)
    assert sum(sizes) == partitions
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


@given(st.integers(0, 200), st.integers(1, 60))
def test_ceil_gives_n_to_each_until_nothing_is_left(partitions: int, count: int) -> None:
    sizes = shares("ceil", partitions, count)
    each = -(-partitions // count)
    assert sum(sizes) == partitions
    full = partitions // each if each else 0
    assert sizes[:full] == [each] * full
    assert all(size < each for size in sizes[full:] if each)


@given(members, st.dictionaries(topics, st.integers(0, 30)), st.randoms(use_true_random=False))
def test_the_order_of_members_does_not_matter(
    subscriptions: dict[str, dict[str, int]], existing: dict[str, int], random: Any
) -> None:
    people = [{"consumer_id": name, "topics": wanted} for name, wanted in subscriptions.items()]
    before = dealt("range", people, existing)
    random.shuffle(people)
    assert dealt("range", people, existing) == before


def test_threads_are_ordered_as_java_orders_strings() -> None:
    assert sorted(["c-2", "c-10", "c-1"], key=java_order) == ["c-1", "c-10", "c-2"]
    # UTF-16 puts surrogates (of U+1F600) before U+FFEE; code points would not.
    assert sorted(["\uffee", "\U0001f600"], key=java_order) == ["\U0001f600", "\uffee"]


def context(threads: dict[str, tuple[str, ...]]) -> AssignmentContext:
    return AssignmentContext("g", "c1", {"t": ("c1-0",)}, {"t": (0,)}, threads)


@pytest.mark.parametrize(
    ("threads", "text"),
    [
        ({}, r"c1: group g shows nobody on topic t, only on \[\]"),
        ({"t": ("c2-0",)}, r"c1: thread c1-0 is not among those of topic t in group g: \['c2-0'\]"),
    ],
)
def test_a_view_without_the_member_itself_is_refused(threads: dict[str, tuple[str, ...]], text: str) -> None:
    with pytest.raises(AssignmentError, match=text):
        by_name("ceil")(context(threads))


def test_an_unknown_rule_is_named() -> None:
    with pytest.raises(UnknownAssignor, match="no assignor is named 'best'; known are ceil, range, roundrobin"):
        by_name("best")
