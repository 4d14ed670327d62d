"""What turns clean into unknown, and that a violation stays one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from group_story import GroupStory
from history_story import Story

from rebalance_lab.checks import CHECKS, Finding, Outcome, judge
from rebalance_lab.checks.completeness import unknown_causes
from rebalance_lab.checks.faults import Fault, faults
from rebalance_lab.checks.model import unknown
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History

#: The checks of overlaps, windows and registrations, which one story can break all at once. Others
#: have their doubts in their own tests.
BASIC = ("belief_overlap", "effect_overlap", "registration", "registry_overlap", "unowned_window")


def judge_basic(history: History) -> dict[str, Finding]:
    found = judge(history)
    return {name: found[name] for name in BASIC}


def test_a_quiet_history_has_no_cause_to_doubt_it() -> None:
    story = Story()
    story.rest(10)
    assert unknown_causes(story.history()) == []


def test_no_rest_is_a_cause() -> None:
    assert unknown_causes(Story().history()) == ["the group never came to rest"]


def test_a_missed_rest_is_a_cause_though_another_was_reached() -> None:
    story = Story()
    story.rest(10)
    story.rest_missed(20, "m2: it rebalances")
    assert unknown_causes(story.history()) == ["rest was missed: m2: it rebalances"]


def test_a_check_s_own_cause_is_told_after_the_others() -> None:
    finding = unknown(Story().history(), "it shows nothing")
    assert finding == Finding(Outcome.UNKNOWN, "the group never came to rest; it shows nothing")


def test_two_boot_ids_are_a_cause() -> None:
    story = Story(boot_ids=("a", "b", "a"))
    story.rest(10)
    assert unknown_causes(story.history()) == ["its processes ran under 2 boot ids: their clocks are not comparable"]


def test_a_hole_in_an_actor_s_events_is_a_cause() -> None:
    story = Story()
    for ms in (1, 2, 3):
        story.owned(ms, "m1")
    story.rest(10)
    del story.events[1]
    assert unknown_causes(story.history()) == ["m1's event 1 is missing"]


def test_events_lost_at_an_actor_s_beginning_are_a_cause() -> None:
    story = Story()
    for ms in (1, 2):
        story.owned(ms, "m1")
        story.owned(ms, "m2")
    story.rest(10)
    story.events = [event for event in story.events if event.id not in {("m1", 0), ("m2", 0)}]
    assert unknown_causes(story.history()) == ["m1's event 0 is missing", "m2's event 0 is missing"]


def test_an_event_told_twice_is_a_cause() -> None:
    story = Story()
    story.owned(1, "m1")
    story.disowned(2, "m1")
    story.rest(10)
    story.events.append(story.events[0])
    assert unknown_causes(story.history()) == ["m1's event 0 was recorded more than once"]


def test_events_may_stand_in_another_order_than_they_were_counted() -> None:
    """The server's wall clock may step back: its order is that of zxids."""
    story = Story()
    story.created(5, "m1")
    story.deleted(4, "m1")
    story.rest(10)
    assert unknown_causes(story.history()) == []


def test_a_trial_that_never_ended_is_a_cause() -> None:
    story = Story(ended=False)
    story.rest(10)
    assert unknown_causes(story.history()) == ["the runner did not record the end of the trial"]


def test_a_trial_without_its_fault_is_a_cause_unless_it_is_a_control() -> None:
    story = Story(control=False)
    story.rest(10)
    assert unknown_causes(story.history()) == ["it is not a control, but no fault began"]
    story.paused(5, 8, "m1")
    assert unknown_causes(story.history()) == []


@pytest.mark.parametrize("harm", ["kill", "pause", "cut", "expire", "lag", "server"])
def test_a_control_in_which_harm_was_done_is_a_cause(harm: str) -> None:
    story = Story(control=True)
    story.rest(10)
    for deed in ("join", "leave", "topic", "broker"):
        story.bit(4, deed, "m1", story.fault(4, deed, "m1"))
    assert unknown_causes(story.history()) == []
    story.bit(5, harm, "m1", story.fault(5, harm, "m1"))
    assert unknown_causes(story.history()) == [f"it is a control, but a fault began: {harm}"]


def test_what_somebody_saw_of_the_registry_must_be_there() -> None:
    story = Story()
    story.created(5, "m1")
    story.member(6, "m1", Kind.DECIDED, detail={"members_zxid": 1})
    story.member(6, "m1", Kind.WATCH_FIRED, zxid=2 << 32)  # an election
    story.rest(10)
    assert unknown_causes(story.history()) == []
    for zxid, fields in ((2, {"detail": {"members_zxid": 2}}), (3, {"zxid": 3})):
        doubtful = Story()
        doubtful.created(5, "m1")
        doubtful.member(6, "m1", Kind.DECIDED, **fields)
        doubtful.rest(10)
        why = f"the registry's transaction {zxid:#x} is missing: m1's event 0 saw it"
        assert unknown_causes(doubtful.history()) == [why]


@pytest.mark.parametrize(
    ("zxid", "known"),
    [(6, True), (7, True), (8, False), (2 << 32 | 2, False), (2 << 32 | 3, True), (2 << 32 | 6, False)],
)
def test_others_transactions_may_be_the_last_of_an_epoch(zxid: int, known: bool) -> None:
    """On a ZooKeeper that others use two transactions without an event came between 5 and 2:5, in either epoch."""
    story = Story()
    story.registry(5, Kind.CREATED, "/a", "0x1", zxid=5)
    story.registry(6, Kind.CREATED, "/b", "0x1", zxid=2 << 32 | 5, detail={"passed": 2})
    story.member(7, "m1", Kind.WATCH_FIRED, zxid=zxid)
    story.rest(10)
    assert (unknown_causes(story.history()) == []) is known


def test_a_fault_without_proof_is_a_cause() -> None:
    story = Story()
    began = story.fault(5, "pause", "m1")
    story.ended(8, "pause", "m1", began)
    story.rest(10)
    assert unknown_causes(story.history()) == ["pause of m1 (runner/0) has no proof that it took effect"]


def test_one_fault_s_proof_is_not_another_s() -> None:
    story = Story()
    story.paused(1, 2, "m1")
    began = story.fault(5, "pause", "m1")
    story.ended(8, "pause", "m1", began)
    story.rest(10)
    assert unknown_causes(story.history()) == ["pause of m1 (runner/3) has no proof that it took effect"]


def _long_pause(closed_ms: float | None, session: str = "0x1", **told: Any) -> Story:
    """A pause from 10 to 20 ms that must outlast session 0x1."""
    story = Story(**told)
    began = story.fault(10, "pause", "m1", outlast=True)
    story.bit(10, "pause", "m1", began)
    story.ended(20, "pause", "m1", began)
    if closed_ms is not None:
        story.session_closed(closed_ms, session)
    story.rest(30)
    return story


@pytest.mark.parametrize("closed_ms", [8, 10, 15, 20, 22])
def test_a_session_closed_within_the_pause_or_2_ms_of_it_proves_it(closed_ms: float) -> None:
    assert unknown_causes(_long_pause(closed_ms).history()) == []


@pytest.mark.parametrize(("closed_ms", "session"), [(7.999, "0x1"), (22.001, "0x1"), (15, "0x2"), (None, "")])
def test_a_pause_that_did_not_outlast_its_session_is_a_cause(closed_ms: float | None, session: str) -> None:
    causes = unknown_causes(_long_pause(closed_ms, session).history())
    assert causes == ["pause of m1 (runner/0) did not outlast session 0x1"]


def _outage(*after: tuple[float, Kind, str]) -> Story:
    """An outage of the server from 10 to 20 ms that session 0x1 must survive, and what happens to sessions."""
    story = Story()
    detail = {"fault": "server-kill", "target": "z1", "must_survive": "0x1"}
    began = story.add(10, "runner", Kind.FAULT_BEGAN, detail=detail)
    story.bit(11, "server-kill", "z1", began)
    story.ended(20, "server-kill", "z1", began)
    for ms, kind, session in after:
        if kind is Kind.SESSION_CLOSED:
            story.session_closed(ms, session)
        else:
            story.add(ms, "m1", kind, session=session)
    return story


@pytest.mark.parametrize(
    "after",
    [
        (),
        ((30, Kind.CONNECTED, "0x1"), (40, Kind.SESSION_CLOSED, "0x1")),
        ((30, Kind.SESSION_CLOSED, "0x2"),),
    ],
)
def test_a_session_survives_an_outage_if_it_is_connected_again(after: tuple[tuple[float, Kind, str], ...]) -> None:
    assert [each.why_not_bitten for each in faults(_outage(*after).history())] == [None]


@pytest.mark.parametrize(
    "after",
    [
        ((30, Kind.SESSION_CLOSED, "0x1"),),
        ((30, Kind.SESSION_CLOSED, "0x1"), (40, Kind.CONNECTED, "0x1")),
        ((25, Kind.CONNECTED, "0x2"), (30, Kind.SESSION_CLOSED, "0x1")),
    ],
)
def test_a_session_that_ends_first_has_not_survived_it(after: tuple[tuple[float, Kind, str], ...]) -> None:
    why = [each.why_not_bitten for each in faults(_outage(*after).history())]
    assert why == ["server-kill of z1 (runner/0): session 0x1 did not survive it"]


def test_a_pause_that_never_ended_may_be_outlasted_at_any_time() -> None:
    story = Story()
    began = story.fault(10, "pause", "m1", outlast=True)
    story.bit(10, "pause", "m1", began)
    story.session_closed(9_000, "0x1")
    story.rest(9_500)
    [fault] = faults(story.history())
    assert isinstance(fault, Fault)
    assert fault.closed is not None
    assert fault.ended is None


DRIFTED = "the wall clock drifted by {} us: registry times are not comparable with other times"


@pytest.mark.parametrize("drift_us", [2_001, -2_001])
def test_a_drift_is_a_cause_only_where_layers_are_compared(drift_us: int) -> None:
    story = Story(wall_drift_us=drift_us)
    story.rest(10)
    assert unknown_causes(story.history()) == []
    assert unknown_causes(story.history(), across_layers=True) == [DRIFTED.format(drift_us)]


@pytest.mark.parametrize("drift_us", [2_000, -2_000])
def test_a_drift_within_the_tolerance_is_none(drift_us: int) -> None:
    story = Story(wall_drift_us=drift_us)
    story.rest(10)
    assert unknown_causes(story.history(), across_layers=True) == []


def test_a_drift_leaves_it_open_whether_a_pause_outlasted_its_session() -> None:
    story = _long_pause(15, wall_drift_us=2_001)
    assert unknown_causes(story.history()) == [DRIFTED.format(2_001)]


def _sound(**told: Any) -> GroupStory:
    """A group of one member that every check calls clean; it is alive until 5 s."""
    story = GroupStory(**told)
    story.topic(0, "t", 1)
    story.comes(0, "m1")
    story.registers(50, "m1")
    story.created(90, "m1")
    story.owned(90, "m1")
    story.worked("m1", 100, 150)
    story.rebalanced(100, "m1")
    story.observed(4_000, "m1")
    story.rest(4_000)
    story.phase(5_000, "closing")
    return story


def test_a_drift_concerns_the_checks_that_compare_the_registry_with_another_layer() -> None:
    outcomes = {name: finding.outcome for name, finding in judge_basic(_sound().history()).items()}
    assert outcomes == dict.fromkeys(BASIC, Outcome.CLEAN)
    findings = judge_basic(_sound(wall_drift_us=2_001).history())
    concerned = {name: finding.why for name, finding in findings.items() if finding.outcome is Outcome.UNKNOWN}
    assert concerned == dict.fromkeys(("registration", "unowned_window"), DRIFTED.format(2_001))
    assert {findings[name].outcome for name in set(BASIC) - set(concerned)} == {Outcome.CLEAN}


def test_a_drift_hides_no_overlap_within_a_layer() -> None:
    story = _sound(wall_drift_us=9_000, recorded=False)
    story.created(200, "m2", session="0x2")
    story.owned(110, "m2")
    story.worked("m2", 120, 170)
    findings = judge_basic(story.history())
    violated = {name for name, finding in findings.items() if finding.outcome is Outcome.VIOLATED}
    assert violated == {"belief_overlap", "effect_overlap", "registry_overlap"}


def test_every_cause_is_named() -> None:
    story = Story(boot_ids=("a", "b"))
    story.owned(1, "m1")
    story.fault(5, "kill", "m1")
    finding = CHECKS["belief_overlap"].judge(story.history())
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why == (
        "its processes ran under 2 boot ids: their clocks are not comparable; the group never came to rest; "
        "kill of m1 (runner/0) has no proof that it took effect"
    )
    assert finding.witness == ()


def test_violated_beats_unknown_in_every_check() -> None:
    """One broken history with every cause to doubt it, which still shows the basic anomalies."""
    story = GroupStory(boot_ids=("a", "b"))
    story.topic(0, "t", 1)
    for actor in ("m1", "m2"):
        story.started(0, actor)
        story.registers(5, actor)
        story.owned(10, actor)
        story.worked(actor, 10, 60)
        story.created(10, actor)
        story.rebalanced(10, actor)
    story.created_id(20, "m1", "0x1", ephemeral=False)
    story.changed(25, "m2")
    story.deleted(30, "m2")
    story.fault(70, "pause", "m1")
    story.rest_missed(90_000, "m1: it rebalances")
    findings = judge_basic(story.history())
    assert {name: finding.outcome for name, finding in findings.items()} == dict.fromkeys(BASIC, Outcome.VIOLATED)
    assert all(finding.witness for finding in findings.values())


def test_who_goes_on_after_its_kill_was_not_killed() -> None:
    story = Story()
    story.killed(10, "m1")
    story.worked("m1", 13)
    story.rest(100)
    assert unknown_causes(story.history()) == ["kill of m1 (runner/0) stopped nothing: m1 recorded event 0 during it"]


@pytest.mark.parametrize(
    ("ms", "stopped"), [(9, True), (11, True), (50, False), (97.999, False), (98, True), (99, True), (150, True)]
)
def test_who_goes_on_in_its_pause_was_not_paused(ms: float, stopped: bool) -> None:
    """The runner sees it stopped a moment after the signal, and says that the pause is over before the next one."""
    story = Story()
    began = story.fault(10, "pause", "m1")
    story.bit(10, "pause", "m1", began)
    story.ended(100, "pause", "m1", began)
    story.worked("m1", ms)
    story.rest(1000)
    assert (unknown_causes(story.history()) == []) is stopped


@pytest.mark.parametrize(("world", "within_ms"), [("simulated", 2), ("processes", 100), ("containers", 100)])
def test_stopping_takes_as_long_as_the_world_needs_for_it(world: str, within_ms: int) -> None:
    """The proof comes late here: the runner was kept waiting."""
    for ms, stopped in ((10 + within_ms, True), (10.001 + within_ms, False)):
        story = Story(world=world)
        began = story.fault(10, "pause", "m1")
        story.bit(3_000, "pause", "m1", began)
        story.ended(5_000, "pause", "m1", began)
        story.worked("m1", ms)
        story.rest(9_000)
        assert any("stopped nothing" in cause for cause in unknown_causes(story.history())) is not stopped, ms


def test_a_transaction_that_is_missing_is_a_cause() -> None:
    """The recorder counts what it writes: a record that it never read leaves no gap in that."""
    story = Story()
    for ms in (1, 2, 3):
        story.created(ms, "m1", partition=ms)
    story.rest(10)
    lost = story.events.pop(1)
    story.events[1] = msgspec.structs.replace(story.events[1], n=lost.n)
    assert unknown_causes(story.history()) == ["1 of the registry's transactions between 0x1 and 0x3 are missing"]


@pytest.mark.parametrize(("passed", "lost"), [(1, 1), (2, 0), (None, 2)])
def test_transactions_that_were_passed_over_are_not_lost(passed: int | None, lost: int) -> None:
    story = Story()
    story.created(1, "m1", zxid=5)
    story.created(2, "m1", partition=1, zxid=8, detail={"ephemeral": True, "passed": passed})
    story.rest(10)
    missing = [f"{lost} of the registry's transactions between 0x5 and 0x8 are missing"]
    assert unknown_causes(story.history()) == (missing if lost else [])


def test_the_first_transaction_of_an_epoch_follows_any_of_the_last() -> None:
    story = Story()
    story.created(1, "m1", zxid=0x1_0000_0005)
    story.created(2, "m1", partition=1, zxid=0x2_0000_0001)
    story.rest(10)
    assert unknown_causes(story.history()) == []
