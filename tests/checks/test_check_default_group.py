"""The default group (Z14): tiny histories, findings in full."""

from __future__ import annotations

import pytest
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import Kind

CHECK = CHECKS["default_group"]
NO_GROUP = "requirement failed: Missing required property 'group.id'"


def joined(*groups: str, topics: str = "tuv") -> GroupStory:
    """m1, m2, … name no group, and register in these, each on a host of its own for a topic of its own."""
    story = GroupStory()
    for number, group in enumerate(groups, 1):
        story.comes(number, f"m{number}", group=group, group_given=False, host=f"host-{number}")
        story.registers(10 + number, f"m{number}", group=group, streams={topics[number - 1]: 1})
    story.rest(1000)
    return story


def numbers(**told: int) -> dict[str, int]:
    return {"count": 0, "members": 2, "refused": 0, "registered": 2, "groups": 1, **told}


def test_all_are_in_one_group() -> None:
    story = joined("default", "default")
    story.joins(20, "m3")  # which names group g
    assert CHECK.applies(story.history())
    why = "2 members that named no group are all in group default"
    assert CHECK.judge(story.history()) == Finding(Outcome.CLEAN, why, (), numbers())


def test_they_are_in_two() -> None:
    story = joined("one", "other")
    assert CHECK.judge(story.history()) == Finding(
        Outcome.VIOLATED,
        "one_m1 and other_m2 named no group, and are in groups one and other",
        (("zookeeper", 0), ("zookeeper", 1)),
        numbers(count=1, groups=2),
    )


def test_one_is_in_two() -> None:
    story = joined("one")
    story.registry(500, Kind.CREATED, "/consumers/other/ids/one_m1", "0x1", member="one_m1", group="other")
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 0), ("zookeeper", 1)))
    assert finding.why == "one_m1 named no group, and is in groups one and other"


def test_of_three_groups_two_are_told() -> None:
    finding = CHECK.judge(joined("one", "other", "third").history())
    assert finding.why.endswith("are in groups one and other")
    assert (finding.witness, finding.measures["count"]) == ((("zookeeper", 0), ("zookeeper", 1)), 2)


def test_as_shipped_one_is_refused() -> None:
    story = joined()
    refused = story.add(5, "m1", Kind.MEMBER_REFUSED, group=None, detail={"error": NO_GROUP, "group_given": False})
    assert CHECK.judge(story.history()) == Finding(
        Outcome.VIOLATED,
        f"m1 named no group and was refused: {NO_GROUP}",
        (refused,),
        numbers(count=1, members=1, refused=1, registered=0, groups=0),
    )


def test_one_alone_may_be_in_a_group_of_its_own() -> None:
    finding = CHECK.judge(joined("default").history())
    assert (finding.outcome, finding.why) == (
        Outcome.UNKNOWN,
        "only one member named no group: others might be in another",
    )


def test_one_that_never_registered_leaves_it_open() -> None:
    story = joined("default", "default")
    story.comes(500, "m3", group="default", group_given=False)
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "only 2 of 3 members that named no group registered")


def test_who_registers_again_after_its_expiry_is_one_member() -> None:
    story = joined("default", "default")
    story.goes(500, "m1", group="default")
    story.registers(600, "m1", group="default", session="0x9", streams={"t": 1})
    assert CHECK.judge(story.history()).measures == numbers()


def test_it_does_not_apply_where_all_name_a_group_or_are_refused_for_something_else() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    detail = {"error": "NumberFormatException: x", "group_given": False}
    story.add(5, "m2", Kind.MEMBER_REFUSED, group=None, detail=detail)
    detail = {"error": "client.id ! is illegal", "group_given": True}
    story.add(5, "m3", Kind.MEMBER_REFUSED, group=None, detail=detail)
    assert not CHECK.applies(story.history())


def test_a_group_that_others_named_may_be_theirs() -> None:
    story = joined("g", "g")
    story.joins(20, "m3")  # which names group g
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.measures) == (Outcome.UNKNOWN, numbers())
    assert finding.why == "they are in group g, which g_m3 named: it may not be the default group"


def test_members_of_one_topic_may_be_in_a_group_named_after_it() -> None:
    finding = CHECK.judge(joined("readers-of-t", "readers-of-t", topics="tt").history())
    assert (finding.outcome, finding.measures) == (Outcome.UNKNOWN, numbers())
    assert finding.why == (
        "all members that named no group subscribe to the same topics: the group may be named after these"
    )


def test_a_registration_that_cannot_be_read_names_no_other_topic() -> None:
    story = joined("default")
    story.comes(500, "m2", group="default", group_given=False)
    detail = {"ephemeral": True, "data": "?"}
    path = "/consumers/default/ids/default_m2"
    story.registry(510, Kind.CREATED, path, "0x2", member="default_m2", group="default", detail=detail)
    assert CHECK.judge(story.history()).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("hosts", "known"),
    [
        (("a", "a"), "but host a is"),
        (("a", None), "but host a is"),
        ((None, None), "at all is"),
        (("a", "b"), None),
        (("a", "a", "b"), None),
        (("a", "b", None), None),
    ],
)
def test_members_of_one_host_may_be_in_a_group_named_after_it(hosts: tuple[str | None, ...], known: str | None) -> None:
    story = GroupStory()
    for number, host in enumerate(hosts, 1):
        told = {} if host is None else {"host": host}
        story.comes(number, f"m{number}", group="default", group_given=False, **told)
        story.registers(10 + number, f"m{number}", group="default", streams={"tuv"[number - 1]: 1})
    story.rest(1000)
    finding = CHECK.judge(story.history())
    assert finding.outcome is (Outcome.CLEAN if known is None else Outcome.UNKNOWN)
    why = f"no host {known} known for the members that named no group: the group may be named after their host"
    assert (finding.why == why) is (known is not None)


@pytest.mark.parametrize("kind", [Kind.CREATED, Kind.OWNED, Kind.WORKED])
def test_who_registers_in_one_group_and_uses_another_is_in_two(kind: Kind) -> None:
    story = joined("default", "default")
    actor = "zookeeper" if kind is Kind.CREATED else "m2"
    used = story.add(500, actor, kind, member="default_m2", group="own", topic="u", partition=0)
    assert CHECK.judge(story.history()) == Finding(
        Outcome.VIOLATED,
        "default_m1 and default_m2 named no group, and are in groups default and own",
        (("zookeeper", 0), used),
        numbers(count=1, groups=2),
    )


def test_what_others_use_is_no_concern_of_theirs() -> None:
    story = joined("default", "default")
    story.joins(20, "m3")
    story.claims(500, "m3", 0)
    story.owned(510, "m3", 0)
    assert CHECK.judge(story.history()).outcome is Outcome.CLEAN
