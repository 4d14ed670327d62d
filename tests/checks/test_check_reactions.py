"""Missed watches (O10), brokers that are noticed (Z7b)."""

from __future__ import annotations

import pytest
from group_story import GroupStory
from rest_story import ended, third_joins, two_at_rest

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import Kind

MISSED, BROKERS = CHECKS["missed_watch"], CHECKS["broker_change_noticed"]

#: Of a story's settings: 4 * 500 ms, and nothing for requests in a simulated world without latency.
BOUND_MS = 2000


def numbers(**told: int) -> dict[str, int]:
    return {"count": 0, "changes": 1, "reactions": 2, "longest_us": 0, "bound_us": BOUND_MS * 1000, **told}


def test_all_others_rebalance_for_a_join() -> None:
    story = two_at_rest()
    third_joins(story, ("m3", 2010), ("m1", 2010), ("m2", 2030))
    assert MISSED.judge(ended(story).history()) == Finding(
        Outcome.CLEAN, "every member began a rebalance after every change of members", (), numbers(longest_us=30_000)
    )


def test_one_does_not() -> None:
    story = two_at_rest()
    change = third_joins(story, ("m3", 2010), ("m1", 2010))
    assert MISSED.judge(ended(story).history()) == Finding(
        Outcome.VIOLATED,
        "g_m2 did not rebalance after /consumers/g/ids/g_m3 came",
        (change,),
        numbers(count=1, longest_us=10_000),
    )


def test_one_says_so_and_makes_no_attempt() -> None:
    story = two_at_rest()
    third_joins(story, ("m3", 2010), ("m1", 2010))
    story.member(2010, "m2", Kind.REBALANCE_BEGAN)
    story.ends(2020, "m2", attempts=0)
    finding = MISSED.judge(ended(story).history())
    assert (finding.outcome, finding.why) == (
        Outcome.VIOLATED,
        "g_m2 did not rebalance after /consumers/g/ids/g_m3 came",
    )


def test_one_does_too_late() -> None:
    story = two_at_rest()
    change = third_joins(story, ("m1", 2010), ("m2", 4010))
    late = next(event.id for event in story.events if event.at_us == 4_010_000 and event.kind is Kind.REBALANCE_BEGAN)
    finding = MISSED.judge(ended(story).history())
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (change, late))
    assert finding.why == "g_m2 began a rebalance only 2.010 s after /consumers/g/ids/g_m3 came"


def test_a_rest_is_a_deadline_too() -> None:
    story = two_at_rest()
    third_joins(story, ("m1", 2010), ("m2", 3500))
    story.rest(3100)  # the quiet is 1 s
    assert MISSED.judge(ended(story).history()).outcome is Outcome.VIOLATED


def test_a_rest_within_the_quiet_of_the_change_is_none_of_it() -> None:
    story = two_at_rest()
    third_joins(story, ("m1", 2010), ("m2", 3500))
    story.rest(2990)  # the change was not in the registry yet, by the runner's clock
    assert MISSED.judge(ended(story).history()).outcome is Outcome.CLEAN


def test_a_leave_is_a_change_and_not_for_who_leaves() -> None:
    story = two_at_rest()
    change = story.goes(2000, "m1")
    story.closed(2000, "m1")
    finding = MISSED.judge(ended(story).history())
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (change,))
    assert finding.why == "g_m2 did not rebalance after /consumers/g/ids/g_m1 went"


def test_other_groups_do_not_count() -> None:
    story = two_at_rest()
    story.joins(2000, "m3", group="h")
    finding = MISSED.judge(ended(story).history())
    assert (finding.outcome, finding.measures["changes"]) == (Outcome.CLEAN, 0)


def test_assembling_and_dissolving_are_not_judged() -> None:
    story = GroupStory()
    for ms, actor in ((0, "m1"), (100, "m2")):
        story.joins(ms, actor)
    ended(story, 1000)
    story.goes(1100, "m1")
    finding = MISSED.judge(story.history())
    assert (finding.outcome, finding.measures) == (Outcome.CLEAN, numbers(changes=0, reactions=0))


def test_who_is_paused_cut_off_or_leaving_need_not() -> None:
    for disturbed in ("pause", "cut", "closing", "expired", "killed"):
        story = two_at_rest()
        third_joins(story, ("m1", 2010))
        if disturbed in ("pause", "cut"):
            story.fault(1900, disturbed, "m2")
        elif disturbed == "closing":
            story.member(2500, "m2", Kind.MEMBER_CLOSING)
        elif disturbed == "expired":
            story.add(1950, "m2", Kind.EXPIRED)
        else:
            story.killed(3900, "m2")
        finding = MISSED.judge(ended(story).history())
        assert finding.outcome is not Outcome.VIOLATED, disturbed
        assert finding.measures["reactions"] == 1, disturbed


def test_a_server_that_lags_gives_its_members_time() -> None:
    story = two_at_rest()
    began = story.add(1500, "runner", Kind.FAULT_BEGAN, detail={"fault": "lag", "target": "z1"})
    story.add(1500, "runner", Kind.FAULT_BIT, detail={"of": began[1]})
    third_joins(story, ("m1", 2010), ("m2", 4500))
    story.add(3000, "runner", Kind.FAULT_ENDED, detail={"of": began[1]})
    assert MISSED.judge(ended(story).history()).outcome is Outcome.CLEAN
    again = two_at_rest()
    third_joins(again, ("m1", 2010), ("m2", 4500))
    assert MISSED.judge(ended(again).history()).outcome is Outcome.VIOLATED


@pytest.mark.parametrize(("began_ms", "outcome"), [(5002, Outcome.CLEAN), (5002.001, Outcome.VIOLATED)])
def test_the_bound_counts_from_the_end_of_what_disturbed_all(began_ms: float, outcome: Outcome) -> None:
    story = two_at_rest()
    of_server(story, "lag", 1500, 3000)
    third_joins(story, ("m1", 2010), ("m2", began_ms))
    assert MISSED.judge(ended(story).history()).outcome is outcome


def test_a_fault_that_goes_on_lasts_until_the_last_event() -> None:
    """Nothing is recorded from 2.03 s until the phase `closing`, which is the last event."""
    story = two_at_rest(ended=False)
    of_server(story, "lag", 1500, None)
    third_joins(story, ("m1", 2010))
    story.phase(10_000, "closing")
    assert MISSED.judge(story.history()).outcome is Outcome.UNKNOWN


def of_server(story: GroupStory, name: str, began_ms: float, ended_ms: float | None, target: str = "z1") -> None:
    began = story.fault(began_ms, name, target)
    story.bit(began_ms, name, target, began)
    if ended_ms is not None:
        story.ended(ended_ms, name, target, began)


def test_a_server_that_lags_to_the_end_gives_them_till_then() -> None:
    story = two_at_rest()
    of_server(story, "lag", 1500, None)
    third_joins(story, ("m1", 2010))
    finding = MISSED.judge(ended(story).history())
    assert (finding.measures["count"], finding.measures["reactions"]) == (0, 1), "of m2 it cannot be told"


@pytest.mark.parametrize(("began_ms", "given"), [(2000 + BOUND_MS, True), (2000 + BOUND_MS + 0.001, False)])
def test_a_fault_that_begins_after_the_bound_gives_no_time(began_ms: float, given: bool) -> None:
    story = two_at_rest()
    of_server(story, "lag", began_ms, 5000)
    third_joins(story, ("m1", 2010), ("m2", 4500))
    assert (MISSED.judge(ended(story).history()).outcome is Outcome.CLEAN) is given


def test_a_deed_or_what_is_done_to_another_member_gives_no_time() -> None:
    for name, target in (("topic", "t"), ("pause", "m1")):
        story = two_at_rest()
        of_server(story, name, 1500, 5000, target)
        third_joins(story, ("m1", 2010), ("m2", 4500))
        finding = MISSED.judge(ended(story).history())
        assert finding.outcome is Outcome.VIOLATED, name


def test_of_several_faults_the_one_that_disturbs_all_gives_time() -> None:
    story = two_at_rest()
    of_server(story, "topic", 1200, 1300, "t")
    of_server(story, "lag", 1500, 3000)
    third_joins(story, ("m1", 2010), ("m2", 4500))
    assert MISSED.judge(ended(story).history()).outcome is Outcome.CLEAN


@pytest.mark.parametrize(("rest_ms", "outcome"), [(2998, Outcome.CLEAN), (2998.001, Outcome.VIOLATED)])
def test_a_rest_2_ms_before_the_quiet_after_a_change_is_none_of_it(rest_ms: float, outcome: Outcome) -> None:
    story = two_at_rest()
    third_joins(story, ("m1", 2010), ("m2", 3500))
    story.rest(rest_ms)
    assert MISSED.judge(ended(story).history()).outcome is outcome


def test_who_registers_after_the_change_or_is_gone_before_it_need_not() -> None:
    story = two_at_rest()
    story.comes(1900, "m3")
    story.goes(1950, "m2")
    story.joins(2000, "m4")
    story.registers(2000, "m3")
    story.reacts(1950, 1960, "m1")
    story.reacts(2010, 2020, "m1")
    finding = MISSED.judge(ended(story).history())
    assert finding.measures["reactions"] == 4  # m1 three times, m4 once
    assert finding.why == "g_m4 did not rebalance after /consumers/g/ids/g_m3 came"


def test_two_that_go_with_one_session_need_not_react_to_each_other() -> None:
    story = two_at_rest()
    story.add(200, "m2", Kind.MEMBER_STARTED, member="g_m9", detail={"rules": "shipped"})
    story.registry(210, Kind.CREATED, "/consumers/g/ids/g_m9", "0x2", member="g_m9", detail={"ephemeral": True})
    story.session_closed(2000, "0x2", zxid=4)
    for name in ("g_m2", "g_m9"):
        story.registry(2000, Kind.DELETED, f"/consumers/g/ids/{name}", "0x2", member=name, zxid=4)
    story.reacts(2010, 2020, "m1")
    finding = MISSED.judge(ended(story).history())
    assert (finding.measures["count"], finding.measures["reactions"]) == (0, 2)


def test_another_process_of_the_same_name_is_not_registered() -> None:
    story = two_at_rest()
    story.add(1200, "m9", Kind.MEMBER_STARTED, member="g_m2", detail={"rules": "shipped"})
    story.add(1200, "m9", Kind.CONNECTED, group=None, session="0x9")
    third_joins(story, ("m1", 2010), ("m2", 2010))
    finding = MISSED.judge(ended(story).history())
    assert (finding.outcome, finding.measures["reactions"]) == (Outcome.CLEAN, 2)


def test_a_group_that_never_rested_and_one_whose_members_were_all_disturbed_say_nothing() -> None:
    story = GroupStory()
    story.joins(0, "m1")
    story.phase(1000, "closing")
    finding = MISSED.judge(story.history())
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why.endswith("the group never came to rest, so no change was looked at")
    story = two_at_rest()
    story.goes(2000, "m1")
    story.paused(1990, 9000, "m2")
    finding = MISSED.judge(ended(story).history())
    assert (finding.outcome, finding.measures["reactions"]) == (Outcome.UNKNOWN, 0)
    assert finding.why == "the history does not show for any change whether a member noticed it"


@pytest.mark.parametrize(("closing_ms", "known"), [(3999.999, False), (4000, True)])
def test_a_history_that_ends_before_the_deadline_says_nothing(closing_ms: float, known: bool) -> None:
    story = two_at_rest()
    third_joins(story)
    story.phase(closing_ms, "closing")
    finding = MISSED.judge(story.history())
    assert (finding.outcome is Outcome.VIOLATED) is known
    assert (finding.why == "the history does not show for any change whether a member noticed it") is not known


@pytest.mark.parametrize(("left_ms", "outcome"), [(4000, Outcome.CLEAN), (4000.001, Outcome.VIOLATED)])
def test_who_leaves_by_the_deadline_leaves_nothing_open(left_ms: float, outcome: Outcome) -> None:
    story = two_at_rest()
    third_joins(story, ("m1", 2010))
    story.member(left_ms, "m2", Kind.MEMBER_CLOSING)
    assert MISSED.judge(ended(story).history()).outcome is outcome


def test_who_leaves_later_had_to_react() -> None:
    story = two_at_rest()
    third_joins(story, ("m1", 2010))
    story.rest(3100)
    story.reacts(5010, 5020, "m1")
    story.goes(5000, "m2")
    story.closed(5000, "m2")
    story.reacts(5010, 5020, "m3")
    finding = MISSED.judge(ended(story).history())
    assert finding.why == "g_m2 did not rebalance after /consumers/g/ids/g_m3 came"


def test_an_owner_znode_is_no_registration() -> None:
    story = two_at_rest()
    story.comes(1900, "m3")  # it does not register
    story.created(1910, "m3", detail={"ephemeral": True, "data": "g_m3-0"})
    story.joins(2000, "m4")
    for actor in ("m1", "m2"):
        story.reacts(2010, 2020, actor)
    finding = MISSED.judge(ended(story).history())
    assert (finding.measures["count"], finding.measures["reactions"]) == (0, 2)


def test_without_settings_there_is_no_bound() -> None:
    story = two_at_rest(rebalance_backoff_ms=None)
    third_joins(story)
    finding = MISSED.judge(ended(story).history())
    assert finding == Finding(Outcome.UNKNOWN, "the trial's parameters lack rebalance_backoff_ms", (), {})


def test_the_bound_is_a_whole_rebalance_and_an_attempt_s_time() -> None:
    """4 * (500 ms + 100 ms) + 100 ms, as an attempt of m1 shows a stop of 100 ms."""
    story = two_at_rest(fetcher_stop_ms=100)
    third_joins(story, ("m1", 2010), ("m2", 2010))
    story.begins(2300, "m1")
    story.ends(2400, "m1")
    assert MISSED.judge(ended(story).history()).measures["bound_us"] == 2_500_000


def test_a_clock_that_drifted_leaves_it_open() -> None:
    story = two_at_rest(wall_drift_us=2_001)
    third_joins(story)
    assert MISSED.judge(ended(story).history()).outcome is Outcome.UNKNOWN


# -- brokers ------------------------------------------------------------------------------------


def test_a_broker_that_comes_makes_every_group_rebalance() -> None:
    story = two_at_rest()
    story.joins(200, "m3", group="h")
    story.broker(2000, 1)
    for actor, group in (("m1", "g"), ("m2", "g"), ("m3", "h")):
        story.reacts(2010, 2020, actor, "/brokers/ids", group)
    assert BROKERS.applies(story.history())
    assert BROKERS.judge(ended(story).history()) == Finding(
        Outcome.CLEAN,
        "every member began a rebalance after every change of brokers",
        (),
        numbers(reactions=3, longest_us=10_000),
    )


@pytest.mark.parametrize(("kind", "did"), [(Kind.CREATED, "came"), (Kind.DELETED, "went")])
def test_as_shipped_a_broker_is_not_noticed(kind: Kind, did: str) -> None:
    story = two_at_rest()
    change = story.broker(2000, 1, kind)
    finding = BROKERS.judge(ended(story).history())
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (change,))
    assert finding.why == f"g_m1 did not rebalance after /brokers/ids/1 {did}"
    assert finding.measures == numbers(count=2)


def test_of_brokers_that_stay_nothing_is_said() -> None:
    story = two_at_rest()
    story.broker(500, 1)  # before the first rest
    story.broker(2000, 1, Kind.CHANGED)
    third_joins(story, ms=2500)
    assert not BROKERS.applies(ended(story).history())


def test_a_broker_without_members_proves_nothing() -> None:
    story = GroupStory()
    story.rest(1000)
    story.broker(2000, 1)
    finding = BROKERS.judge(ended(story).history())
    assert (finding.outcome, finding.why) == (
        Outcome.UNKNOWN,
        "no member was registered when a broker came or went",
    )
