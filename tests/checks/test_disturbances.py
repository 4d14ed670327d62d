"""A live trial that the machine disturbed: what looks violated or clean there is unknown."""

from __future__ import annotations

import pytest
from history_story import Story
from msgspec.structs import replace

from rebalance_lab.checks import judge
from rebalance_lab.checks.disturbances import disturbance
from rebalance_lab.checks.model import Outcome
from rebalance_lab.history.events import Kind


def overlapping(world: str = "processes") -> Story:
    """m1 and m2 both believe that they own a partition, from 100 to 300 ms. Their sessions are 0x1 and 0x2."""
    story = Story(world=world)
    for actor, session in (("m1", "0x1"), ("m2", "0x2")):
        story.started(0, actor)
        story.add(0, actor, Kind.CONNECTED, session=session)
    story.owned(50, "m1")
    story.owned(100, "m2")
    story.disowned(300, "m1")
    return story


def lost(story: Story, ms: float, actor: str = "m1", kind: Kind = Kind.DISCONNECTED) -> None:
    story.add(ms, actor, kind, session="0x1")


def outcome(story: Story) -> Outcome:
    story.rest(5000)
    return judge(story.history())["belief_overlap"].outcome


@pytest.mark.parametrize(("kind", "what"), [(Kind.DISCONNECTED, "connection"), (Kind.EXPIRED, "session")])
def test_a_connection_that_nobody_meant_to_break_makes_a_violation_unknown(kind: Kind, what: str) -> None:
    story = overlapping()
    lost(story, 200, kind=kind)
    assert outcome(story) is Outcome.UNKNOWN
    finding = judge(story.history())["belief_overlap"]
    assert finding.why == (
        "g_m1 and g_m2 both believed for 0.200 s that they owned t/0; "
        f"but m1 lost its {what} (m1/4), and no fault explains it"
    )
    assert finding.witness
    assert finding.measures["count"] == 1


@pytest.mark.parametrize("ms", [200, 4_999])
def test_what_is_clean_is_unknown_too(ms: float) -> None:
    story = overlapping()
    story.created(50, "m1")
    lost(story, ms)
    story.rest(5000)
    finding = judge(story.history())["registry_overlap"]
    assert (finding.outcome, finding.witness) == (Outcome.UNKNOWN, ())
    assert finding.why == "m1 lost its connection (m1/4), and no fault explains it"
    assert finding.measures["count"] == 0


def test_what_is_clean_stays_so_where_the_group_is_taken_down_first() -> None:
    story = overlapping()
    story.created(50, "m1")
    story.rest(5000)
    story.phase(6000, "closing")
    lost(story, 6001)
    assert judge(story.history())["registry_overlap"].outcome is Outcome.CLEAN


def test_what_was_unknown_keeps_its_reason() -> None:
    story = overlapping()
    lost(story, 200)
    finding = judge(story.history())["registry_overlap"]
    assert (finding.outcome, finding.why.startswith("the group never came to rest")) == (Outcome.UNKNOWN, True)


def test_what_was_shown_before_the_loss_is_unknown_too() -> None:
    """A process that stands still records nothing: the stall may have begun before the overlap."""
    story = overlapping()
    lost(story, 4_900)
    assert outcome(story) is Outcome.UNKNOWN


def ended(story: Story, ms: float) -> Outcome:
    """m1's session 0x1 ends; m1 itself records nothing of it."""
    story.session_closed(ms, "0x1")
    return outcome(story)


def test_a_session_that_ends_disturbs_though_its_member_never_learns_of_it() -> None:
    story = overlapping()
    assert ended(story, 200) is Outcome.UNKNOWN
    why = judge(story.history())["belief_overlap"].why
    assert why.endswith("; but session 0x1 of a member ended (zookeeper/0), and no fault explains it")


def test_a_session_that_ends_once_its_member_has_closed_disturbs_nothing() -> None:
    story = overlapping()
    story.member(310, "m1", Kind.MEMBER_CLOSED)
    assert ended(story, 400) is Outcome.VIOLATED


@pytest.mark.parametrize(("ms", "expected"), [(198, Outcome.VIOLATED), (197.999, Outcome.UNKNOWN)])
def test_a_session_that_its_member_closes_disturbs_nothing(ms: float, expected: Outcome) -> None:
    """The server's clock and the member's may differ by 2 ms."""
    story = overlapping()
    story.member(200, "m1", Kind.MEMBER_CLOSING)
    story.member(310, "m1", Kind.MEMBER_CLOSED)
    assert ended(story, ms) is expected


def test_a_session_that_a_kill_ends_disturbs_nothing() -> None:
    story = overlapping()
    story.killed(320, "m1")
    assert ended(story, 2500) is Outcome.VIOLATED


def test_undisturbed_it_is_violated() -> None:
    assert outcome(overlapping()) is Outcome.VIOLATED


def test_a_simulated_machine_is_never_too_busy() -> None:
    story = overlapping("simulated")
    lost(story, 200)
    story.add(300, "m1", Kind.CONNECTED, session="0x1")
    assert outcome(story) is Outcome.VIOLATED


@pytest.mark.parametrize(
    ("fault", "target", "disturbs"),
    [
        ("pause", "m1", False),
        ("lose-reply", "m1", False),
        ("server-kill", "z2", False),
        ("pause", "m2", True),  # somebody else's
        ("join", "m1", True),
        ("topic", "t1", True),
    ],
)
def test_a_fault_of_the_member_or_of_a_server_is_a_cause(fault: str, target: str, *, disturbs: bool) -> None:
    story = overlapping()
    began = story.fault(60, fault, target)
    story.ended(150, fault, target, began)
    lost(story, 200)
    story.rest(5000)
    assert (disturbance(story.history()) is not None) is disturbs


@pytest.mark.parametrize(("ms", "disturbs"), [(40, True), (200, False), (600, True)])
def test_a_fault_is_a_cause_until_the_rest_that_follows_it(ms: float, *, disturbs: bool) -> None:
    story = overlapping()
    began = story.fault(60, "pause", "m1")
    story.ended(150, "pause", "m1", began)
    story.rest(500)
    lost(story, ms)
    story.rest(5000)
    assert (disturbance(story.history()) is not None) is disturbs


def test_the_runner_and_the_end_do_not_count() -> None:
    story = overlapping()
    lost(story, 200, "runner")
    story.rest(1000)
    story.phase(2000, "closing")
    lost(story, 2000)
    lost(story, 2100)
    assert disturbance(story.history()) is None


def test_what_does_not_count_hides_nothing() -> None:
    story = overlapping()
    lost(story, 200, "runner")
    lost(story, 300)
    story.rest(1000)
    found = disturbance(story.history())
    assert found is not None
    assert found.id == ("m1", 4)


def explained(ms: float, *, rests: tuple[float, ...] = (3000,)) -> bool:
    """Whether a pause of m1 from 1000 to 2000 ms explains that it loses its connection at `ms`."""
    story = Story(world="processes")
    story.started(0, "m1")
    story.paused(1000, 2000, "m1")
    for rest in rests:
        story.rest(rest)
    lost(story, ms)
    story.phase(9000, "closing")
    return disturbance(story.history()) is None


@pytest.mark.parametrize(("ms", "expected"), [(999.999, False), (1000, True), (3000, True), (3000.001, False)])
def test_a_loss_of_the_moment_in_which_the_fault_begins_or_the_group_rests_is_the_fault_s(
    ms: float, *, expected: bool
) -> None:
    assert explained(ms) is expected


@pytest.mark.parametrize(("ms", "expected"), [(997.999, False), (998, True), (3002, True), (3002.001, False)])
def test_the_end_of_a_session_is_told_by_the_server_s_clock(ms: float, *, expected: bool) -> None:
    """m1 is paused from 1000 to 2000 ms, and the group rests at 3000 ms."""
    story = Story(world="processes")
    story.started(0, "m1")
    story.add(0, "m1", Kind.CONNECTED, session="0x1")
    story.paused(1000, 2000, "m1")
    story.rest(3000)
    story.session_closed(ms, "0x1")
    story.phase(9000, "closing")
    assert (disturbance(story.history()) is None) is expected


def test_a_rest_during_the_fault_does_not_end_what_it_explains() -> None:
    assert explained(2500, rests=(1500, 3000))


@pytest.mark.parametrize(("world", "ms", "expected"), [
    ("simulated", 102, Outcome.VIOLATED), ("simulated", 102.001, Outcome.UNKNOWN),
    ("processes", 200, Outcome.VIOLATED), ("processes", 200.001, Outcome.UNKNOWN),
])  # fmt: skip
def test_a_pause_whose_proof_stands_at_its_end_must_have_stopped_the_process_at_once(
    world: str, ms: float, expected: Outcome
) -> None:
    story = overlapping(world)
    began = story.fault(100, "pause", "m1")
    story.worked("m1", ms)
    story.bit(290, "pause", "m1", began)
    story.ended(295, "pause", "m1", began)
    story.rest(5000)
    finding = judge(story.history())["belief_overlap"]
    assert finding.outcome is expected
    assert ("stopped nothing" in finding.why) == (expected is Outcome.UNKNOWN)


@pytest.mark.parametrize(("ms", "disturbs"), [(2500, False), (3000, False), (3000.001, True)])
def test_a_phase_between_a_fault_and_its_rest_changes_nothing(ms: float, *, disturbs: bool) -> None:
    story = Story(world="processes")
    story.started(0, "m1")
    story.paused(1000, 2000, "m1")
    story.phase(2100, "recovery")
    story.rest(3000)
    lost(story, ms)
    story.phase(9000, "closing")
    assert (disturbance(story.history()) is not None) is disturbs


def test_a_server_that_lags_keeps_its_sessions() -> None:
    story = overlapping()
    began = story.fault(60, "lag", "z2")
    lost(story, 200)
    story.ended(300, "lag", "z2", began)
    assert outcome(story) is Outcome.UNKNOWN


def again(fault: str, target: str, connected_ms: float) -> Story:
    """m1 loses a connection at 400 ms that it made at `connected_ms`; a fault lasted from 60 to 150 ms."""
    story = overlapping()
    began = story.fault(60, fault, target)
    lost(story, 100)
    story.ended(150, fault, target, began)
    story.add(connected_ms, "m1", Kind.CONNECTED, session="0x3")
    return story


@pytest.mark.parametrize("kind", [Kind.DISCONNECTED, Kind.EXPIRED])
@pytest.mark.parametrize(
    ("fault", "target", "connected_ms", "disturbs"),
    [
        ("cut", "m1", 150, False),
        ("cut", "m1", 150.001, True),
        ("pause", "m1", 160, True),
        ("server-kill", "z1", 160, False),  # new connections, too, end when the servers elect a leader
    ],
)
def test_a_fault_of_the_member_is_no_cause_for_the_loss_of_a_later_connection(
    fault: str, target: str, connected_ms: float, kind: Kind, *, disturbs: bool
) -> None:
    story = again(fault, target, connected_ms)
    story.add(400, "m1", kind, session="0x3")
    story.rest(5000)
    found = disturbance(story.history())
    assert (found is not None) is disturbs
    assert found is None or (found.kind, found.at_us) == (kind, 400_000)


@pytest.mark.parametrize(("session", "disturbs"), [("0x1", False), ("0x3", True)])
def test_nor_is_it_for_the_end_of_a_session_that_was_connected_later(session: str, *, disturbs: bool) -> None:
    story = again("cut", "m1", 160)
    story.session_closed(400, session)
    story.rest(5000)
    assert (disturbance(story.history()) is not None) is disturbs


def test_a_connection_that_another_member_made_later_does_not_count() -> None:
    story = overlapping()
    began = story.fault(60, "cut", "m1")
    story.ended(150, "cut", "m1", began)
    story.add(160, "m2", Kind.CONNECTED, session="0x2")
    lost(story, 400)
    story.rest(5000)
    assert disturbance(story.history()) is None


@pytest.mark.parametrize(
    ("world", "drift_us", "expected"),
    [
        ("processes", 50_000, Outcome.VIOLATED),
        ("processes", 50_001, Outcome.UNKNOWN),
        ("containers", -35_000_000, Outcome.UNKNOWN),
        ("simulated", 60_000, Outcome.VIOLATED),
    ],
)
def test_a_wall_clock_that_was_set_makes_everything_unknown(world: str, drift_us: int, expected: Outcome) -> None:
    story = overlapping(world)
    story.rest(5000)
    history = story.history()
    finding = judge(replace(history, trial=replace(history.trial, wall_drift_us=drift_us)))["belief_overlap"]
    assert finding.outcome is expected
    assert ("the wall clock was set, or the machine was suspended" in finding.why) is (expected is Outcome.UNKNOWN)
