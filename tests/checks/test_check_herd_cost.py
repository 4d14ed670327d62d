"""Herd cost (O9; Z7a, Z7c): tiny histories, findings in full."""

from __future__ import annotations

import pytest
from group_story import GroupStory

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import Kind

CHECK = CHECKS["herd_cost"]

#: A join to one, with one broker, topic and partition: C = 2, so 2 * (3 + 2 + 1 + 7) + 1, 2 for
#: the notification, 3 for the joiner's subscription, and not the leader finder's 2 of the idle one.
READS = 26 + 1 + 2 + 3 - 2

#: One delete, one create, and the joiner's id.
WRITES = 3


def one_at_rest(*, rules: str = "shipped", **told: object) -> GroupStory:
    """m1 owns the one partition of topic t, and is at rest at 1000 ms."""
    story = GroupStory(**{"latency_max_us": 1000, **told})  # type: ignore[arg-type]
    story.broker(0, 0)
    story.topic(0, "t", 1)
    story.joins(10, "m1", rules=rules)
    story.rebalances(20, 50, "m1")
    story.claims(30, "m1", 0)
    story.rest(1000)
    return story


def join(
    story: GroupStory,
    *,
    reads: int = READS,
    writes: int = WRITES,
    notifications: int = 1,
    rebalances: tuple[str, ...] = ("m1", "m2"),
    rules: str = "shipped",
) -> GroupStory:
    """m2 joins after 1000 ms (runner/1), at rest at 3000 ms (runner/2)."""
    story.announces(1000, "one joins", change="join", members=1)
    story.joins(1100, "m2", rules=rules)
    for _ in range(notifications):
        story.told(1110, "m1")
        story.triggers(1110, "m1")
    for number, actor in enumerate(rebalances):
        story.rebalances(1120 + 50 * number, 1150 + 50 * number, actor)
    story.releases(1130, "m1", 0)
    story.claims(1180, "m2", 0)
    story.counted(1300, "m1", get=reads - 5, children=2, exists=1, multi_read=1, reads=2)
    story.counted(1300, "m2", create=writes - 1, delete=1)
    story.rest(3000)
    return story


def numbers(**told: int) -> dict[str, int]:
    cost = {"notifications": 1, "rebalances": 2, "reads": READS, "writes": WRITES}
    cost |= {name: told.pop(name) for name in cost if name in told}
    expected = {f"join_1_expected_{name}": told.pop(f"expected_{name}", number) for name, number in EXPECTED.items()}
    return {
        **dict.fromkeys(("count", "unjudged", "conflicted", "retries", "join_1_retries"), 0),
        **dict.fromkeys(("changes", "compared", "join_1_members"), 1),
        **cost,
        **{f"join_1_{name}": number for name, number in cost.items()},
        **expected,
        **told,
    }


EXPECTED = {"notifications": 1, "rebalances": 2, "reads": READS, "writes": WRITES}


def test_a_join_costs_what_the_formulas_say() -> None:
    story = join(one_at_rest())
    assert CHECK.applies(story.history())
    why = "1 spaced changes cost what the formulas say"
    assert CHECK.judge(story.history()) == Finding(Outcome.CLEAN, why, (), numbers())


@pytest.mark.parametrize("world", ["simulated", "processes"])
@pytest.mark.parametrize("number", [READS - 1, READS + 1])
def test_in_every_world_it_must_be_equal(number: int, world: str) -> None:
    assert CHECK.judge(join(one_at_rest(world=world), reads=number).history()) == Finding(
        Outcome.VIOLATED,
        f"a join in a group of 1 cost {number} reads ({READS} expected)",
        (("runner", 1), ("runner", 2)),
        numbers(reads=number, count=1),
    )


def test_every_number_that_differs_is_told() -> None:
    story = join(one_at_rest(), writes=4, notifications=2, rebalances=("m1", "m2", "m1"))
    assert CHECK.judge(story.history()).why == (
        "a join in a group of 1 cost 2 notifications (1 expected; g_m1 had 2), 3 rebalances (2 expected; g_m1 had 2), "
        "4 writes (3 expected)"
    )


def test_a_group_whose_members_are_not_notified_is_never_clean() -> None:
    """Z7a live: m1 rebalances, and no watch of it fired."""
    story = join(one_at_rest(world="processes"), notifications=0)
    finding = CHECK.judge(story.history())
    assert finding.outcome is Outcome.VIOLATED
    assert finding.why == "a join in a group of 1 cost 0 notifications (1 expected; g_m1 had 0)"


def test_one_member_s_second_notification_does_not_make_up_for_another_s() -> None:
    story = one_at_rest()
    story.joins(20, "m3")
    story.announces(1000, "one joins", change="join", members=2)
    story.joins(1100, "m2")
    for _ in range(2):
        story.told(1110, "m1")
        story.triggers(1110, "m1")
    for actor in ("m1", "m2", "m3"):
        story.rebalances(1120, 1200, actor)
    story.rest(3000)
    finding = CHECK.judge(story.history())
    assert finding.outcome is Outcome.VIOLATED
    assert "2 notifications (2 expected; g_m1 had 2, g_m3 had 0)" in finding.why


@pytest.mark.parametrize("closes", [False, True])
def test_without_recorded_operations_nothing_is_said_of_reads_and_writes(closes: bool) -> None:
    story = one_at_rest(world="processes")
    if closes:  # which is recorded by itself even where all else is not
        story.asks(900, "m1", "close", "")
    story.announces(1000, "one joins", change="join", members=1)
    story.joins(1100, "m2")
    story.told(1110, "m1")
    story.triggers(1110, "m1")
    for actor in ("m1", "m2"):
        story.rebalances(1120, 1200, actor)
    story.rest(3000)
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.measures["compared"]) == (Outcome.UNKNOWN, 0)
    assert finding.why == "reads and writes of 1 changes are not compared: the operations of g_m1 are not recorded"


def test_an_operation_of_unknown_cost_leaves_it_open() -> None:
    story = join(one_at_rest())
    story.asks(1600, "m1", "getEphemerals", "/consumers/g/ids")
    story.rest(3000)
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.measures["compared"]) == (Outcome.UNKNOWN, 0)
    assert finding.why.endswith("are not compared: m1 sent an operation of unknown cost: getEphemerals")


def test_counts_of_an_unknown_operation_leave_it_open() -> None:
    story = join(one_at_rest())
    story.counted(1600, "m1", whoAmI=1)
    story.rest(3000)
    assert CHECK.judge(story.history()).why.endswith("m1 sent an operation of unknown cost: whoAmI")


@pytest.mark.parametrize(("actor", "outcome"), [("helper", Outcome.UNKNOWN), ("runner", Outcome.CLEAN)])
def test_a_client_that_is_neither_member_nor_runner_leaves_it_open(actor: str, outcome: Outcome) -> None:
    story = join(one_at_rest())
    story.counted(1600, actor, get=3)
    story.rest(3000)
    finding = CHECK.judge(story.history())
    assert finding.outcome is outcome
    if outcome is Outcome.UNKNOWN:
        assert finding.why.endswith("are not compared: helper, which is not a member, sent requests")


def test_members_with_a_filter_read_the_topics_too() -> None:
    """Kafka 0.8.2.2: 2w + W reads more in each attempt, and 6 more of a joiner."""
    story = GroupStory(world="processes")
    story.broker(0, 0)
    story.topic(0, "t", 1)
    story.joins(10, "m1", streams={"t": 1}, pattern="white_list", rules="real")
    story.claims(30, "m1", 0)
    story.rest(1000)
    story.announces(1000, "one joins", change="join", members=1)
    story.joins(1100, "m2", streams={"t": 1}, pattern="white_list", rules="real")
    story.told(1110, "m1")
    story.triggers(1110, "m1")
    for actor in ("m1", "m2"):
        story.rebalances(1120, 1200, actor)
    story.releases(1130, "m1", 0)
    story.claims(1180, "m2", 0)
    reads = READS + 2 * (2 + 2) + 6
    for _ in range(reads):
        story.asks(1300, "m1", "get", "/brokers/topics/t")
    for operation in ("create", "create", "delete"):
        story.asks(1300, "m2", operation, "/consumers/g/owners/t/0")
    story.rest(3000)
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.measures["join_1_expected_reads"]) == (Outcome.CLEAN, reads)


def test_as_described_a_joiner_subscribes_to_brokers_too() -> None:
    story = join(one_at_rest(rules="described"), rules="described", reads=READS + 2)
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.measures["join_1_expected_reads"]) == (Outcome.CLEAN, READS + 2)


def test_operations_recorded_singly_count_as_much() -> None:
    story = one_at_rest()
    story.announces(1000, "one goes", change="leave", members=1)
    story.asks(1050, "m1", "children", "/consumers/g/ids", zxid=3)
    story.asks(1050, "m1", "multi_read", "", parts=[["get", "/a"], ["get", "/b"]])
    story.asks(1050, "m1", "delete", "/x")
    story.asks(2000, "m1", "get", "/x")  # of the next change
    story.member(1100, "m1", Kind.MEMBER_CLOSED)
    story.goes(1100, "m1")
    story.rest(2000)
    finding = CHECK.judge(story.history())
    assert finding.why == "a leave in a group of 1 cost 3 reads (0 expected), 1 writes (0 expected)"
    assert finding.measures["bytes"] == finding.measures["leave_1_bytes"] == len("g_m1")


def test_members_on_different_topics_each_read_their_own() -> None:
    """m2 reads u, which has no partitions: no offset, and no leader to find."""
    story = one_at_rest()
    story.announces(1000, "one joins", change="join", members=1)
    story.joins(1100, "m2", streams={"u": 1})
    story.told(1110, "m1")
    story.triggers(1110, "m1")
    for actor in ("m1", "m2"):
        story.rebalances(1120, 1200, actor)
    story.releases(1130, "m1", 0)
    story.claims(1180, "m1", 0)
    story.counted(1300, "m1", get=READS, create=2, delete=1)
    story.counted(1300, "m2", get=0)
    story.rest(3000)
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.measures["join_1_expected_reads"]) == (Outcome.CLEAN, READS)


@pytest.mark.parametrize(("lab", "compared"), [([], 1), (["multi.read"], 1), (["check.owner.before.delete"], 0)])
def test_members_whose_settings_make_other_requests_are_not_compared(lab: list[str], compared: int) -> None:
    story = one_at_rest()
    story.announces(1000, "one joins", change="join", members=1)
    story.comes(1090, "m2", lab=lab)
    story.registers(1100, "m2")
    story.told(1110, "m1")
    story.triggers(1110, "m1")
    for actor in ("m1", "m2"):
        story.rebalances(1120, 1200, actor)
    story.releases(1130, "m1", 0)
    story.claims(1180, "m2", 0)
    story.counted(1300, "m1", get=READS, create=WRITES - 1, delete=1)
    story.counted(1300, "m2", get=0)
    story.rest(3000)
    finding = CHECK.judge(story.history())
    outcome = Outcome.CLEAN if compared else Outcome.UNKNOWN
    assert (finding.outcome, finding.measures["compared"]) == (outcome, compared)


def test_a_group_of_another_size_than_announced() -> None:
    story = one_at_rest()
    story.joins(20, "m3")
    unknown(join(story), "the join announced by runner/1 names a group of 1, but 2 members were registered")


@pytest.mark.parametrize(("rules", "expected"), [("shipped", 0), ("described", 1)])
def test_a_broker_concerns_who_watches_brokers(rules: str, expected: int) -> None:
    story = one_at_rest(rules=rules)
    story.counted(500, "m1", get=1)
    story.announces(1000, "a broker comes", change="broker", members=1)
    story.broker(1100, 1)
    for _ in range(expected):
        story.told(1110, "m1", "/brokers/ids")
        story.triggers(1110, "m1", "/brokers/ids")
        story.rebalances(1120, 1200, "m1")
        story.releases(1130, "m1", 0)
        story.claims(1180, "m1", 0)
        story.counted(1300, "m1", get=(3 * 2 + 1 + 1) + 1 + 2, create=1, delete=1)  # and 7 gets told before
    story.rest(3000)
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.measures["broker_1_expected_rebalances"]) == (Outcome.CLEAN, expected)


def test_as_shipped_who_once_found_no_broker_watches_them() -> None:
    story = one_at_rest()
    story.member(60, "m1", Kind.WARNED, detail={"message": "no brokers found when trying to rebalance."})
    story.announces(1000, "a broker comes", change="broker", members=1)
    story.broker(1100, 1)
    story.rest(3000)
    finding = CHECK.judge(story.history())
    assert finding.why.startswith(
        "a broker in a group of 1 cost 0 notifications (1 expected; g_m1 had 0), 0 rebalances (1 expected; g_m1 had 0)"
    )


@pytest.mark.parametrize("kind", [Kind.CREATED, Kind.CHANGED])
def test_a_topic_concerns_who_reads_it(kind: Kind) -> None:
    story = one_at_rest()
    story.joins(20, "m2", streams={"u": 1})
    story.announces(1000, "a topic", change="topic", members=2)
    story.topic(1100, "t", 2, kind)
    story.told(1110, "m1", "/brokers/topics/t")
    story.triggers(1110, "m1", "/brokers/topics/t")
    story.rebalances(1120, 1200, "m1")
    story.rest(3000)
    finding = CHECK.judge(story.history())
    assert finding.why.startswith("reads and writes of 1 changes are not compared: ")  # one of two rebalances
    assert (finding.outcome, finding.measures["topic_1_expected_notifications"]) == (Outcome.UNKNOWN, 1)


def test_the_watch_of_a_leaver_about_itself_is_no_notification() -> None:
    story = join(one_at_rest())
    story.announces(3000, "one goes", change="leave", members=2)
    story.told(3100, "m2")
    story.triggers(3100, "m2")
    story.told(3100, "m1")
    story.triggers(3100, "m1")
    story.goes(2999, "m2")  # by the registry's clock, which may be 2 ms early
    story.member(3100, "m2", Kind.MEMBER_CLOSED)
    story.rebalances(3110, 3200, "m1")
    story.releases(3120, "m1")
    story.rest(5000)
    finding = CHECK.judge(story.history())
    assert finding.measures["leave_2_notifications"] == finding.measures["leave_2_expected_notifications"] == 1


# -- what cannot be told ------------------------------------------------------------------------


def unknown(story: GroupStory, why: str) -> None:
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, why)
    assert (finding.measures["changes"], finding.measures["unjudged"]) == (0, 1)


def test_two_changes_at_once_are_not_spaced() -> None:
    story = one_at_rest()
    story.joins(1050, "m3")
    unknown(join(story), "the join announced by runner/1 is not the only change until the next rest")


def test_another_change_than_was_announced() -> None:
    story = one_at_rest()
    story.announces(1000, "one joins", change="join", members=1)
    story.broker(1100, 1)
    story.rest(3000)
    unknown(story, "the join announced by runner/1 is not the only change until the next rest")


def test_a_lost_connection_costs_more() -> None:
    story = one_at_rest()
    story.add(1150, "m1", Kind.DISCONNECTED)
    unknown(join(story), "m1 lost its connection in the join announced by runner/1")


def test_a_member_that_gives_up() -> None:
    story = one_at_rest()
    story.rebalances(1050, 2500, "m1", "failed")
    unknown(join(story, rebalances=("m2",)), "g_m1 gave up in the join announced by runner/1")


def test_an_attempt_that_breaks_off() -> None:
    story = one_at_rest()
    story.begins(1050, "m1")
    story.fails(1060, "m1", "error")
    story.ends(1110, "m1")
    unknown(join(story), "an attempt of g_m1 failed without a conflict in the join announced by runner/1")


@pytest.mark.parametrize(("begins", "ends"), [(990, 1010), (2990, 3000), (2990, None)])
def test_a_rebalance_that_is_half_of_another_change(begins: float, ends: float | None) -> None:
    story = one_at_rest()
    join(story)
    story.begins(begins, "m1")
    if ends is not None:
        story.ends(ends, "m1")
    unknown(story, "g_m1 rebalanced across the beginning or end in the join announced by runner/1")


def test_a_change_that_did_not_come_to_rest() -> None:
    story = one_at_rest()
    story.announces(1000, "one joins", change="join", members=1)
    story.announces(2000, "the next")
    story.rest(3000)
    unknown(story, "a spaced change did not come to rest")


def test_a_clock_that_drifted_leaves_it_open() -> None:
    story = join(one_at_rest(wall_drift_us=2_001), reads=READS + 9)
    assert CHECK.judge(story.history()).outcome is Outcome.UNKNOWN


def test_where_nothing_is_announced_it_does_not_apply() -> None:
    story = one_at_rest()
    story.announces(1000, "one joins", change="join")
    assert not CHECK.applies(story.history())
