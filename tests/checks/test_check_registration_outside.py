"""Registration (Z1): what the outside observer sees of owners, and ends that are only sampled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from history_story import Story

from rebalance_lab.checks import Finding, Outcome
from rebalance_lab.checks.registration import CHECK
from rebalance_lab.history.events import Kind

PATH = "/consumers/g/owners/t/0"
ID = "/consumers/g/ids/g_m1"


def judge(story: Story) -> Finding:
    return CHECK.judge(story.history())


def owning(**claim: Any) -> Story:
    """m1 registers (zxid 1) and claims t/0 (zxid 2)."""
    story = Story()
    story.created_id(100, "m1", "0x1")  # zookeeper/0
    claim.setdefault("detail", {"ephemeral": True, "data": "g_m1-0"})
    story.created(200, "m1", **claim)  # zookeeper/1
    return story


# -- owners that the outside sees ------------------------------------------------------------------


def test_owners_as_the_registry_has_them_are_clean() -> None:
    story = owning()
    story.observed_owners(300, {0: "m1"}, {0: "0x1"}, zxid=2)
    story.rest(400)
    assert judge(story).outcome is Outcome.CLEAN


def test_an_owner_that_the_observer_misses_is_violated() -> None:
    story = owning()
    seen = story.observed_owners(300, {}, {}, zxid=2)
    story.rest(400)
    finding = judge(story)
    assert finding.why == f"the outside observer did not see {PATH}, which existed"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 1), seen))


def test_an_owner_that_the_observer_sees_after_the_log_has_it_gone_is_violated() -> None:
    story = owning()
    gone = story.deleted(300, "m1")
    seen = story.observed_owners(400, {0: "m1"}, {0: "0x1"}, zxid=3)
    story.rest(500)
    finding = judge(story)
    assert finding.why == f"the outside observer saw {PATH}, which had gone"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 1), gone, seen))


def test_an_owner_of_the_trial_s_that_the_registry_never_held_is_violated() -> None:
    story = owning()
    seen = story.observed_owners(300, {0: "m1", 1: "m1"}, {0: "0x1", 1: "0x1"}, zxid=2)
    story.rest(400)
    finding = judge(story)
    assert finding.why == "the outside observer saw /consumers/g/owners/t/1, which the registry had never held"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (seen,))


def test_an_owner_from_outside_the_trial_is_nobody_s_affair() -> None:
    story = owning()
    story.observed_owners(300, {0: "m1", 1: "m7"}, {0: "0x1", 1: "0x7"}, zxid=2)
    story.rest(400)
    assert judge(story).outcome is Outcome.CLEAN


@pytest.mark.parametrize(("actor", "session"), [("m1", "0x2"), ("m2", "0x1"), ("m1", "0x0")])
def test_an_owner_of_another_session_or_with_other_data_is_violated(actor: str, session: str) -> None:
    """0x0 is a znode that no session's end takes along."""
    story = owning()
    seen = story.observed_owners(300, {0: actor}, {0: session}, zxid=2)
    story.rest(400)
    finding = judge(story)
    assert finding.why == (
        f"the outside observer saw {PATH} of session {session} with data 'g_{actor}-0';"
        " in the registry it has session 0x1 and data 'g_m1-0'"
    )
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 1), seen))


def test_an_owner_with_the_data_of_a_later_write_is_clean() -> None:
    story = owning()
    story.changed(250, "m1", detail={"data": "g_m2-0"})
    story.observed_owners(300, {0: "m2"}, {0: "0x1"}, zxid=3)
    story.rest(400)
    assert judge(story).outcome is Outcome.CLEAN


def _seen_in_two_reads(children: list[str], owner: str | None, session: str | None) -> Finding:
    """m1 releases t/0 (zxid 3) and m2 claims it (zxid 4): names are read at zxid 2, owners at 4."""
    story = owning()
    story.deleted(300, "m1")
    story.created(310, "m2", session="0x2", detail={"ephemeral": True, "data": "g_m2-0"})
    detail = {
        "path": "/consumers/g/owners/t",
        "children": children,
        "owners": {} if owner is None else {"0": owner},
        "sessions": {} if session is None else {"0": session},
        "owners_zxid": 4,
    }
    story.add(320, "runner", Kind.OBSERVED, topic="t", zxid=2, detail=detail)
    story.rest(400)
    return judge(story)


def test_owners_may_change_between_the_observer_s_two_reads() -> None:
    assert _seen_in_two_reads(["0"], "g_m1-0", "0x1").outcome is Outcome.CLEAN
    assert _seen_in_two_reads(["0"], "g_m2-0", "0x2").outcome is Outcome.CLEAN
    assert _seen_in_two_reads(["0"], None, None).outcome is Outcome.CLEAN
    assert _seen_in_two_reads(["0"], "g_m1-0", "0x2").outcome is Outcome.VIOLATED
    assert _seen_in_two_reads([], None, None).outcome is Outcome.VIOLATED


def test_an_owner_that_was_there_throughout_and_could_not_be_read_is_violated() -> None:
    story = owning()
    detail = {"path": "/consumers/g/owners/t", "children": ["0"], "owners": {}, "sessions": {}, "owners_zxid": 2}
    story.add(320, "runner", Kind.OBSERVED, topic="t", zxid=2, detail=detail)
    story.rest(400)
    assert judge(story).why == f"the outside observer could not read {PATH}, which existed"


@pytest.mark.parametrize(("zxid", "outcome"), [(2, Outcome.VIOLATED), (3, Outcome.CLEAN)])
def test_the_zxid_of_the_second_read_says_whether_an_owner_was_there_throughout(zxid: int, outcome: Outcome) -> None:
    """It goes at zxid 3, within 2 ms of the observation, so that times leave it open."""
    story = owning()
    detail = {"path": "/consumers/g/owners/t", "children": ["0"], "owners": {}, "sessions": {}, "owners_zxid": zxid}
    story.add(320, "runner", Kind.OBSERVED, topic="t", zxid=2, detail=detail)
    story.deleted(321, "m1")
    story.rest(400)
    assert judge(story).outcome is outcome


def test_an_observation_without_children_saw_none() -> None:
    story = owning()
    story.add(320, "runner", Kind.OBSERVED, topic="t", zxid=2, detail={"path": "/consumers/g/owners/t"})
    story.rest(400)
    assert judge(story).why == f"the outside observer did not see {PATH}, which existed"


# -- sampled ends ------------------------------------------------------------------------------------


def _ended(*, sampled: bool | None) -> Story:
    """All that m1 has goes with its session at zxid 3."""
    story = owning()
    story.session_closed(3_000, "0x1", sampled=sampled)  # zookeeper/2
    more: dict[str, Any] = {"zxid": 3, "detail": {"with_session": True}}
    story.deleted_id(3_000, "m1", "0x1", **more)
    story.deleted(3_000, "m1", **more)
    return story


def test_a_listed_end_needs_no_observer() -> None:
    story = _ended(sampled=False)
    story.rest(5_000)
    finding = judge(story)
    assert (finding.outcome, finding.measures["sampled"]) == (Outcome.CLEAN, 0)


@pytest.mark.parametrize("sampled", [True, None])
def test_a_sampled_end_that_nobody_observed_is_unknown(sampled: bool | None) -> None:
    """None: a history of before SESSION_CLOSED said where its deletions come from."""
    story = _ended(sampled=sampled)
    story.rest(5_000)
    finding = judge(story)
    assert (finding.outcome, finding.measures["sampled"]) == (Outcome.UNKNOWN, 2)
    assert finding.why == (
        "sampled: the log does not list what went with session 0x1, and no later observation shows that"
        f" {ID} and 1 more had gone"
    )


def test_a_sampled_end_that_the_outside_saw_is_clean_and_says_so() -> None:
    story = _ended(sampled=True)
    story.observed(4_000, zxid=3)
    story.observed_owners(4_000, {}, {}, zxid=3)
    story.rest(5_000)
    finding = judge(story)
    assert finding.outcome is Outcome.CLEAN
    assert finding.why == (
        "each registration and its ownership lived as long as their session; "
        "2 ends are sampled: not listed in the log, but confirmed by the outside observer"
    )


def test_each_znode_of_a_sampled_end_must_have_been_seen_to_be_gone() -> None:
    story = _ended(sampled=True)
    story.observed(4_000, zxid=3)
    story.rest(5_000)
    finding = judge(story)
    assert (finding.outcome, finding.why) == (
        Outcome.UNKNOWN,
        "sampled: the log does not list what went with session 0x1, and no later observation shows that"
        f" {PATH} had gone",
    )
    story = _ended(sampled=True)
    story.observed_owners(4_000, {}, {}, zxid=3)
    finding = judge(story)
    assert (finding.outcome, ID in finding.why, "more" in finding.why) == (Outcome.UNKNOWN, True, False)


def test_what_was_seen_before_a_sampled_end_confirms_nothing() -> None:
    story = Story()
    story.observed(50, zxid=0)
    story.created_id(100, "m1", "0x1")
    story.session_closed(3_000, "0x1", sampled=True)
    story.deleted_id(3_000, "m1", "0x1", zxid=2)
    story.rest(5_000)
    assert judge(story).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("sessions", [{0: "0x2"}, None])
def test_another_s_owner_in_its_place_shows_that_the_first_is_gone(sessions: dict[int, str] | None) -> None:
    """By its session, or (older histories) by its data."""
    story = _ended(sampled=True)
    story.observed(4_000, zxid=3)
    story.created(3_500, "m2", session="0x2", detail={"ephemeral": True, "data": "g_m2-0"})
    story.observed_owners(4_000, {0: "m2"}, sessions, zxid=4)
    story.rest(5_000)
    assert judge(story).outcome is Outcome.CLEAN


def test_the_same_member_s_new_claim_is_told_by_its_session_alone() -> None:
    for sessions, outcome in (({0: "0x11"}, Outcome.CLEAN), (None, Outcome.UNKNOWN)):
        story = _ended(sampled=True)
        story.observed(4_000, zxid=3)
        story.created(3_500, "m1", session="0x11", detail={"ephemeral": True, "data": "g_m1-0"})
        story.observed_owners(4_000, {0: "m1"}, sessions, zxid=4)
        story.rest(5_000)
        assert judge(story).outcome is outcome


def test_a_sampled_end_that_the_outside_contradicts_is_violated() -> None:
    story = _ended(sampled=True)
    story.observed(4_000, zxid=3)
    seen = story.observed_owners(4_000, {0: "m1"}, {0: "0x1"}, zxid=3)
    story.rest(5_000)
    finding = judge(story)
    assert finding.why == f"the outside observer saw {PATH} after its session 0x1 had closed"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 1), ("zookeeper", 2), seen))


def test_a_release_before_a_sampled_end_is_no_sampled_one() -> None:
    story = owning()
    story.deleted(300, "m1")
    story.session_closed(3_000, "0x1", sampled=True)
    story.deleted_id(3_000, "m1", "0x1", zxid=4)
    story.observed(4_000, zxid=4)
    story.rest(5_000)
    finding = judge(story)
    assert (finding.outcome, finding.measures["sampled"]) == (Outcome.CLEAN, 1)


def test_the_time_of_a_sampled_end_is_not_measured() -> None:
    story = owning()
    story.observed(500, "m1")
    story.observed_owners(500, {0: "m1"}, {0: "0x1"}, zxid=2)
    story.killed(1_000, "m1")
    story.session_closed(3_000, "0x1", sampled=True)
    story.deleted_id(3_000, "m1", "0x1", zxid=3)
    story.deleted(3_000, "m1", zxid=3)
    story.observed(5_000, zxid=3)
    story.observed_owners(5_000, {}, {}, zxid=3)
    story.rest(5_000)
    finding = judge(story)
    assert (finding.outcome, finding.measures["longest_us"]) == (Outcome.CLEAN, 0)


def test_an_owner_whose_data_could_not_be_read_has_none() -> None:
    story = owning()
    detail = {"path": "/consumers/g/owners/t", "children": ["0"], "owners": {}, "sessions": {"0": "0x1"}}
    story.add(320, "runner", Kind.OBSERVED, topic="t", zxid=2, detail={**detail, "owners_zxid": 2})
    story.rest(400)
    assert judge(story).why == (
        f"the outside observer saw {PATH} of session 0x1 with data '';"
        " in the registry it has session 0x1 and data 'g_m1-0'"
    )


def test_an_owner_as_it_was_before_it_was_made_anew_is_violated() -> None:
    story = owning()
    story.deleted(250, "m1")
    again = story.created(260, "m1", session="0x11", detail={"ephemeral": True, "data": "g_m1-0"})
    seen = story.observed_owners(300, {0: "m1"}, {0: "0x1"}, zxid=4)
    story.rest(400)
    finding = judge(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (again, seen))


def test_a_persistent_owner_is_of_no_session() -> None:
    story = owning(detail={"ephemeral": False, "data": "g_m1-0"})
    story.observed_owners(300, {0: "m1"}, {0: "0x0"}, zxid=2)
    story.rest(400)
    finding = judge(story)
    assert (finding.why, finding.measures["count"]) == (f"{PATH} was created as a persistent znode", 1)


# -- which of several is reported ----------------------------------------------------------------------


def _gone(story: Story) -> None:
    story.deleted(300, "m1", zxid=3)
    story.observed_owners(400, {0: "m1"}, {0: "0x1"}, zxid=9)


def _gone_with_its_session(story: Story) -> None:
    story.session_closed(300, "0x1", sampled=True, zxid=3)
    story.deleted_id(300, "m1", "0x1", zxid=3)
    story.deleted(300, "m1", zxid=3)
    story.observed_owners(400, {0: "m1"}, {0: "0x1"}, zxid=9)


def _not_seen(story: Story) -> None:
    story.observed_owners(400, {}, {}, zxid=9)


def _of_another_session(story: Story) -> None:
    story.observed_owners(400, {0: "m1"}, {0: "0x2"}, zxid=9)


def _could_not_be_read(story: Story) -> None:
    detail = {"path": "/consumers/g/owners/t", "children": ["0"], "owners": {}, "sessions": {}, "owners_zxid": 9}
    story.add(400, "runner", Kind.OBSERVED, topic="t", zxid=9, detail=detail)


@pytest.mark.parametrize("happens", [_gone, _gone_with_its_session, _not_seen, _of_another_session, _could_not_be_read])
def test_the_violation_of_the_znode_that_was_created_first_is_reported(happens: Callable[[Story], None]) -> None:
    """t/0 was created at zxid 2, and a persistent id at zxid 5."""
    story = owning()
    happens(story)
    story.created_id(350, "m2", "0x2", ephemeral=False, zxid=5)
    story.rest(500)
    finding = judge(story)
    assert (finding.witness[0], finding.measures["count"]) == (("zookeeper", 1), 2)


@pytest.mark.parametrize(("zxid", "first"), [(9, "ids/g_m2"), (None, "owners/t/1")])
def test_what_never_was_created_ranks_by_the_view_s_zxid(zxid: int | None, first: str) -> None:
    story = Story()
    story.created_id(100, "m2", "0x2", ephemeral=False)  # zxid 1
    story.elsewhere(200, up_to=9)
    story.observed_owners(300, {1: "m2"}, {1: "0x2"}, zxid=zxid)
    story.rest(500)
    finding = judge(story)
    assert (f"/consumers/g/{first}" in finding.why, finding.measures["count"]) == (True, 2)
