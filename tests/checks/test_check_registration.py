"""Registration (Z1): ids and owners live as long as their session, and the outside sees it."""

from __future__ import annotations

from history_story import Story, joined

from rebalance_lab.checks import Finding, Outcome
from rebalance_lab.checks.registration import CHECK
from rebalance_lab.history.events import Kind


def judge(story: Story) -> Finding:
    return CHECK.judge(story.history())


NONE_SEEN = {"sampled": 0, "observations": 0, "longest_us": 0}


def _crash(*, seen_after: tuple[str, ...] = ("m2",)) -> Story:
    """m1 is killed at 1 s (runner/2 to 4), its session closes at 3 s; seen (runner/5, 6) and at rest at 5 s."""
    story = joined()
    story.killed(1_000, "m1")
    closed = story.session_closed(3_000, "0x1")  # zookeeper/3
    assert closed == ("zookeeper", 3)
    story.deleted_id(3_000, "m1", "0x1", zxid=4)
    story.deleted(3_000, "m1", session="0x1", zxid=4)
    story.observed(5_000, *seen_after)
    story.observed_owners(5_000, {})
    story.rest(5_000)
    return story


def test_a_crash_that_takes_all_with_its_session_is_clean() -> None:
    assert judge(_crash()) == Finding(
        Outcome.CLEAN,
        "each registration and its ownership lived as long as their session, and ended at most 2.000 s after the kill",
        (),
        {
            "count": 0,
            "registrations": 2,
            "unregistered": 0,
            "sessions_closed": 1,
            "sampled": 0,
            "observations": 4,
            "longest_us": 2_000_000,
        },
    )


def test_no_registration_at_all_is_unknown() -> None:
    story = Story()
    story.rest(10)
    assert judge(story) == Finding(
        Outcome.UNKNOWN,
        "no member registered",
        (),
        {"count": 0, "registrations": 0, "unregistered": 0, "sessions_closed": 0, **NONE_SEEN},
    )


# -- 1. ephemeral, by the member's session -------------------------------------------------------


def test_a_persistent_registration_is_violated() -> None:
    story = Story()
    story.created_id(100, "m1", "0x1", ephemeral=False)
    story.rest(200)
    assert judge(story) == Finding(
        Outcome.VIOLATED,
        "/consumers/g/ids/g_m1 was created as a persistent znode",
        (("zookeeper", 0),),
        {"count": 1, "registrations": 1, "unregistered": 0, "sessions_closed": 0, **NONE_SEEN},
    )


def test_a_persistent_owner_is_violated() -> None:
    story = Story()
    story.created_id(100, "m1", "0x1")
    story.created(110, "m1", detail={"ephemeral": False})
    story.rest(200)
    finding = judge(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 1),))


def _connected(*sessions: str) -> Story:
    story = Story(recorded=False)
    story.started(0, "m1")
    for session in sessions:
        story.member(1, "m1", Kind.CONNECTED, session=session)
    story.created_id(100, "m1", "0x1")
    story.rest(200)
    return story


def test_an_id_by_a_session_that_its_member_never_had_is_violated() -> None:
    finding = judge(_connected("0x7", "0x8"))
    assert finding.why == "/consumers/g/ids/g_m1 was created by session 0x1, which g_m1 never had"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 0),))


def test_an_id_by_any_of_its_member_s_sessions_is_clean() -> None:
    assert judge(_connected("0x7", "0x1")).outcome is Outcome.CLEAN


def test_a_member_whose_connections_were_not_recorded_is_not_blamed() -> None:
    finding = judge(_connected())
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why == "g_m1 is registered by session 0x1, which no process recorded"


# -- 2. gone with its session -------------------------------------------------------------------


def test_an_id_that_outlives_its_session_is_violated() -> None:
    story = joined()
    story.session_closed(3_000, "0x1")
    story.deleted(3_000, "m1", session="0x1", zxid=4)
    story.deleted_id(3_000, "m1", "0x1", zxid=5)  # one transaction too late
    story.rest(5_000)
    finding = judge(story)
    assert finding.why == "/consumers/g/ids/g_m1 outlived its session 0x1, which closed at zxid 0x4"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 0), ("zookeeper", 3)))
    assert finding.measures["count"] == 1


def test_an_owner_that_outlives_its_session_at_the_history_s_end_is_violated() -> None:
    story = joined()
    story.session_closed(3_000, "0x1")
    story.deleted_id(3_000, "m1", "0x1", zxid=4)
    story.rest(5_000)
    finding = judge(story)
    assert finding.why == "/consumers/g/owners/t/0 outlived its session 0x1, which closed at zxid 0x4"
    assert finding.witness == (("zookeeper", 2), ("zookeeper", 3))


def test_another_session_s_end_takes_nothing() -> None:
    story = joined()
    story.session_closed(3_000, "0x9")
    story.rest(5_000)
    assert judge(story).outcome is Outcome.CLEAN


def test_an_expired_member_may_register_again_in_a_new_session() -> None:
    story = joined()
    story.session_closed(3_000, "0x1")
    story.deleted_id(3_000, "m1", "0x1", zxid=4)
    story.deleted(3_000, "m1", session="0x1", zxid=4)
    story.created_id(4_000, "m1", "0x11")
    story.observed(5_000, "m1", "m2")
    story.rest(5_000)
    finding = judge(story)
    assert finding.outcome is Outcome.CLEAN
    assert (finding.measures["registrations"], finding.measures["sessions_closed"]) == (3, 1)


def test_a_persistent_id_is_told_once_though_its_session_ends() -> None:
    story = Story()
    story.created_id(100, "m1", "0x1", ephemeral=False)
    story.session_closed(3_000, "0x1")
    story.rest(5_000)
    assert judge(story).measures["count"] == 1


# -- 3. not before it ---------------------------------------------------------------------------


def test_a_member_may_release_what_it_owns() -> None:
    story = joined()
    story.deleted(600, "m1", session="0x1")
    story.created(700, "m2", session="0x2")
    story.rest(5_000)
    assert judge(story).outcome is Outcome.CLEAN


def test_a_deletion_by_another_session_is_violated() -> None:
    story = joined()
    story.deleted(600, "m1", session="0x2")
    story.rest(5_000)
    finding = judge(story)
    assert finding.why == "/consumers/g/owners/t/0 of session 0x1 was deleted by session 0x2"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 2), ("zookeeper", 3)))


def test_an_id_created_over_another_ends_the_first() -> None:
    """The deletion between them is lost: not this check's affair, and no second finding."""
    story = joined()
    story.created(600, "m2", session="0x2")
    story.session_closed(3_000, "0x1")
    story.deleted_id(3_000, "m1", "0x1", zxid=5)
    story.rest(5_000)
    assert judge(story).outcome is Outcome.CLEAN


# -- 4. nothing of a killed member is left at rest -----------------------------------------------


def test_a_killed_member_s_znode_that_is_there_at_rest_is_violated() -> None:
    story = joined()
    kill = story.killed(1_000, "m1")
    story.observed(4_000, "m1", "m2")
    rest = story.rest(5_000)
    finding = judge(story)
    assert finding.why == "/consumers/g/ids/g_m1 existed at rest, 4.000 s after its member was killed"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 0), kill, rest))
    assert finding.measures["count"] == 2  # the id and the owner


def test_a_rest_before_the_kill_or_one_that_others_followed_does_not_count() -> None:
    story = joined()
    story.rest(900)
    story.killed(1_000, "m1")
    story.rest(2_000)  # its session lives on
    story.session_closed(3_000, "0x1")
    story.deleted_id(3_000, "m1", "0x1", zxid=4)
    story.deleted(3_000, "m1", session="0x1", zxid=4)
    story.observed(5_000, "m2")
    story.observed_owners(5_000, {})
    story.rest(5_000)
    assert judge(story).outcome is Outcome.CLEAN


def test_a_kill_that_no_rest_followed_is_unknown() -> None:
    story = joined()
    story.rest(900)
    story.killed(1_000, "m1")
    story.observed(1_100, "m1", "m2")
    finding = judge(story)
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why == (
        "no rest followed the kill of g_m1; the ids were not observed after g_m1 was gone;"
        " the owner znodes of g_m1 were not observed after it was gone"
    )


def test_a_member_killed_before_it_registered_proves_nothing() -> None:
    story = joined()
    story.killed(1_000, "m3")
    story.rest(5_000)
    finding = judge(story)
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "g_m3 was not registered when it was killed")


# -- 5. the outside observer --------------------------------------------------------------------


def test_an_observer_that_still_sees_a_dead_member_is_violated() -> None:
    finding = judge(_crash(seen_after=("m1", "m2")))
    assert finding.why == "the outside observer saw /consumers/g/ids/g_m1, which had gone"
    assert (finding.outcome, finding.witness) == (
        Outcome.VIOLATED,
        (("zookeeper", 0), ("zookeeper", 4), ("runner", 5)),
    )


def test_an_observer_that_misses_a_live_member_is_violated() -> None:
    finding = judge(_crash(seen_after=()))
    assert finding.why == "the outside observer did not see /consumers/g/ids/g_m2, which existed"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("zookeeper", 1), ("runner", 5)))


def test_an_observer_that_sees_a_member_before_it_registered_is_violated() -> None:
    story = Story()
    story.started(0, "m1")
    story.observed(50, "m1")
    story.created_id(100, "m1", "0x1")
    story.rest(200)
    finding = judge(story)
    assert finding.why == "the outside observer saw /consumers/g/ids/g_m1, which the registry had never held"
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("runner", 0),))


def test_a_started_member_that_only_the_observer_saw_is_violated() -> None:
    story = joined()
    story.started(0, "m3")
    seen = story.observed(600, "m1", "m2", "m3")
    story.rest(700)
    assert judge(story).witness == (seen,)


def test_names_from_outside_the_trial_are_nobody_s_affair() -> None:
    story = joined()
    story.observed(600, "m1", "m2", "console-consumer")
    story.rest(700)
    assert judge(story).outcome is Outcome.CLEAN


def test_within_2_ms_the_observer_may_see_either() -> None:
    for children in ((), ("m1",)):
        story = Story()
        story.created_id(100, "m1", "0x1")
        story.observed(98, *children)
        story.observed(102, *children)
        story.rest(200)
        assert judge(story).outcome is Outcome.CLEAN
        story.observed(102.001)
        assert judge(story).outcome is Outcome.VIOLATED


def test_a_reply_s_zxid_decides_better_than_its_time() -> None:
    story = Story()
    story.elsewhere(50, up_to=6)
    story.created_id(100, "m1", "0x1")  # zxid 7
    story.observed(300, zxid=6)  # the reply was late
    story.observed(300, "m1", zxid=7)
    story.rest(400)
    assert judge(story).outcome is Outcome.CLEAN
    story.observed(300, zxid=7)
    assert judge(story).witness == (("zookeeper", 6), ("runner", 3))


def test_a_crash_that_nobody_observed_is_unknown() -> None:
    story = Story()
    story.created_id(100, "m1", "0x1")
    story.created(100, "m1")
    story.killed(1_000, "m1")
    story.session_closed(3_000, "0x1")
    story.deleted_id(3_000, "m1", "0x1", zxid=3)
    story.deleted(3_000, "m1", zxid=3)
    story.rest(5_000)
    finding = judge(story)
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why == (
        "the id of g_m1 was not observed before its kill; the ids were not observed after g_m1 was gone;"
        " the owner znodes of g_m1 were not observed before its kill;"
        " the owner znodes of g_m1 were not observed after it was gone"
    )


def _seen_crash(ids_ms: tuple[float, ...], owners_ms: tuple[float, ...]) -> Story:
    """m1 registers and claims at 100 ms, is killed at 1 s and gone at 3 s; the observer looks at
    these times."""
    story = Story()
    story.created_id(100, "m1", "0x1")
    story.created(100, "m1")
    story.killed(1_000, "m1")
    story.session_closed(3_000, "0x1")
    story.deleted_id(3_000, "m1", "0x1", zxid=3)
    story.deleted(3_000, "m1", zxid=3)
    for ms in ids_ms:
        story.observed(ms, *(("m1",) if 100 < ms < 3_000 else ()))
    for ms in owners_ms:
        story.observed_owners(ms, {0: "m1"} if 100 < ms < 3_000 else {})
    story.rest(5_000)
    return story


def test_the_observer_must_have_looked_between_registration_and_kill() -> None:
    assert judge(_seen_crash((500, 5_000), (500, 5_000))).outcome is Outcome.CLEAN
    for late_or_early in ((), (50,), (2_000,)):
        finding = judge(_seen_crash((*late_or_early, 5_000), (500, 5_000)))
        assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "the id of g_m1 was not observed before its kill")
        finding = judge(_seen_crash((500, 5_000), (*late_or_early, 5_000)))
        assert (finding.outcome, finding.why) == (
            Outcome.UNKNOWN,
            "the owner znodes of g_m1 were not observed before its kill",
        )


def test_the_observer_must_have_looked_after_all_was_gone() -> None:
    finding = judge(_seen_crash((500, 2_000), (500, 5_000)))
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "the ids were not observed after g_m1 was gone")
    finding = judge(_seen_crash((500, 5_000), (500, 2_000)))
    assert (finding.outcome, finding.why) == (
        Outcome.UNKNOWN,
        "the owner znodes of g_m1 were not observed after it was gone",
    )


def test_what_the_observer_saw_elsewhere_says_nothing_of_ids() -> None:
    story = joined()
    detail = {"path": "/consumers/h/ids", "children": ["g_m3"]}
    story.add(600, "runner", Kind.OBSERVED, detail=detail)
    story.rest(700)
    assert judge(story).outcome is Outcome.CLEAN
