"""Round robin by thread: the hash, the order, the requirement, and what holds for every group."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from dealing import CASES, consumer_ids, dealt, views
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.assignors import AssignmentContext, NoTopics, RequirementFailed, TopicPartition, by_name
from rebalance_lab.assignors.round_robin import java_hash, map_order

round_robin = by_name("roundrobin")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("hello", 99162322),
        ("[A,0]", 86020691),
        ("[A,1]", 86020722),
        ("[B,0]", 86050482),
        ("[orders,0]", -1093576615),
        ("[orders,9]", -1093576336),
        ("[orders,10]", 458862962),
        ("\U0001f600", 0xD83D * 31 + 0xDE00),  # two code units, not one
    ],
)
def test_the_hash_is_javas(text: str, value: int) -> None:
    assert java_hash(text) == value


@given(st.text(), st.text())
def test_a_hash_goes_on_after_another(first: str, second: str) -> None:
    assert java_hash(second, java_hash(first)) == java_hash(first + second)
    assert -(2**31) <= java_hash(first) < 2**31


def test_two_topics_over_unequal_members() -> None:
    members = [{"consumer_id": "g_c1", "topics": {"A": 2, "B": 2}}, {"consumer_id": "g_c2", "topics": {"A": 1, "B": 1}}]
    shares: dict[str, list[str]] = {}
    for each, thread in dealt("roundrobin", members, {"A": 4, "B": 4}):
        shares.setdefault(thread, []).append(f"{each.topic}{each.partition}")
    assert shares == {"g_c1-0": ["A0", "A3", "B2"], "g_c1-1": ["A1", "B0", "B3"], "g_c2-0": ["A2", "B1"]}


def test_ten_and_more_come_elsewhere_than_one_to_nine() -> None:
    members = [{"consumer_id": "c", "topics": {"high": 12}}]
    turns = {
        int(thread.rpartition("-")[2]): each.partition for each, thread in dealt("roundrobin", members, {"high": 12})
    }
    in_java_order = [turns[each] for each in (0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9)]
    assert in_java_order == sorted(range(12), key=lambda each: java_hash(f"[high,{each}]"))
    assert "".join(map(str, range(10))) in "".join(map(str, in_java_order))


REQUIREMENT = (
    "requirement failed: Round-robin assignment is allowed only if all consumers in the group subscribe to the same "
    "topics, AND if the stream counts across topics are identical for a given consumer instance.\n"
)


@pytest.mark.parametrize(
    ("case", "sets"),
    [
        ("unequal_streams", {"b": "c1-0, c1-1", "a": "c1-0, c2-0, c2-1, c2-2"}),
        ("unequal_topics", {"b": "c1-0, c2-0", "a": "c1-0, c3-0"}),
        ("pattern_and_static_mixed", {"abd": "c1-0", "abc": "c1-0, c2-0"}),
    ],
)
def test_the_refusal_is_in_kafkas_words(case: str, sets: dict[str, str]) -> None:
    found = next(each for each in CASES if each["name"] == case and each["strategy"] == "roundrobin")
    lines = [
        f"Topic {topic} has the following available consumer streams: Set({each})\n" for topic, each in sets.items()
    ]
    for view in views(found["members"], found["topics"]):
        with pytest.raises(RequirementFailed) as caught:
            round_robin(view)
        assert str(caught.value) == REQUIREMENT + "".join(lines)


def test_a_group_without_topics_is_refused() -> None:
    (view,) = views([{"consumer_id": "c1", "topics": {"t.*": 1}, "pattern": "white_list"}], {"orders": 3})
    with pytest.raises(NoTopics, match="c1: group g1 subscribes to no topic, and round robin needs one"):
        round_robin(view)


def test_a_member_without_topics_takes_nothing_beside_others() -> None:
    members = [{"consumer_id": "c1", "topics": {}}, {"consumer_id": "c2", "topics": {"t": 1}}]
    assert dealt("roundrobin", members, {"t": 2}) == [
        (TopicPartition("t", 0), "c2-0"),
        (TopicPartition("t", 1), "c2-0"),
    ]


def test_topics_of_equal_hash_come_last_registered_first() -> None:
    assert map_order(["AaAa", "BBBB", "AaBB"]) == ["AaBB", "BBBB", "AaAa"]
    assert map_order(["BBBB", "AaAa", "AaBB"]) == ["AaBB", "AaAa", "BBBB"]


def test_only_topics_of_equal_hash_depend_on_the_order_of_registration() -> None:
    assert map_order(["a", "b", "c"]) == map_order(["c", "a", "b"])


def test_equal_hashes_make_members_disagree_and_leave_a_partition_without_owner() -> None:
    members = [{"consumer_id": "c1", "topics": {"Aa": 1, "BB": 1}}, {"consumer_id": "c2", "topics": {"BB": 1, "Aa": 1}}]
    owners = [(each.topic, thread) for each, thread in dealt("roundrobin", members, {"Aa": 1, "BB": 1})]
    assert owners == [("BB", "c1-0"), ("BB", "c2-0")]
    for each in members:
        each["topics"] = {"Aa": 1, "BB": 1}
    assert dealt("roundrobin", members, {"Aa": 1, "BB": 1}) == [
        (TopicPartition("Aa", 0), "c2-0"),
        (TopicPartition("BB", 0), "c1-0"),
    ]


#: Some have equal hashes: harmless as long as all members list them in one order.
topics = st.dictionaries(st.sampled_from(["Aa", "BB", "a", "orders", "\U0001f600"]), st.integers(0, 30), min_size=1)
streams = st.dictionaries(consumer_ids, st.integers(1, 12), min_size=1, max_size=6)


def group(streams_of: dict[str, int], existing: dict[str, int]) -> list[dict[str, Any]]:
    """Members that all subscribe to all topics, each with its own number of streams."""
    return [{"consumer_id": name, "topics": dict.fromkeys(existing, count)} for name, count in streams_of.items()]


@given(streams, topics)
def test_equal_subscriptions_every_partition_has_one_owner(
    streams_of: dict[str, int], existing: dict[str, int]
) -> None:
    owners = dealt("roundrobin", group(streams_of, existing), existing)
    everything = sorted(TopicPartition(topic, each) for topic, count in existing.items() for each in range(count))
    assert [partition for partition, _ in owners] == everything


@given(streams, topics)
def test_equal_subscriptions_threads_differ_by_one_at_most(
    streams_of: dict[str, int], existing: dict[str, int]
) -> None:
    owned = Counter(thread for _, thread in dealt("roundrobin", group(streams_of, existing), existing))
    threads = [f"{name}-{each}" for name, count in streams_of.items() for each in range(count)]
    sizes = [owned[thread] for thread in threads]
    assert sum(sizes) == sum(existing.values())
    assert max(sizes) - min(sizes) <= 1


@given(streams, topics, st.randoms(use_true_random=False))
def test_the_order_of_members_does_not_matter(
    streams_of: dict[str, int], existing: dict[str, int], random: Any
) -> None:
    members = group(streams_of, existing)
    before = dealt("roundrobin", members, existing)
    random.shuffle(members)
    assert dealt("roundrobin", members, existing) == before


@given(streams, st.lists(st.sampled_from(["a", "b", "orders", "t-1"]), min_size=1, unique=True), st.data())
def test_the_order_of_topics_does_not_matter_without_equal_hashes(
    streams_of: dict[str, int], names: list[str], data: st.DataObject
) -> None:
    existing = dict.fromkeys(names, 7)
    members = group(streams_of, existing)
    before = dealt("roundrobin", members, existing)
    for each in members:
        each["topics"] = {name: each["topics"][name] for name in data.draw(st.permutations(names))}
    assert dealt("roundrobin", members, existing) == before


def test_a_member_keeps_to_its_own_view() -> None:
    """c1 has not seen that c2 came: it takes everything, as its plan says."""
    old = AssignmentContext("g", "c1", {"t": ("c1-0",)}, {"t": (0, 1)}, {"t": ("c1-0",)})
    assert [each.partition for each, _ in round_robin(old).owners] == [0, 1]
