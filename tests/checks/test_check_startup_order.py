"""Start-up order (Z6): tiny histories, findings in full."""

from __future__ import annotations

import pytest
from group_story import GroupStory
from msgspec.structs import replace

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind

CHECK = CHECKS["startup_order"]

ID = ("create", "/consumers/g/ids/g_m1")
IDS = ("children", "/consumers/g/ids")
BROKERS = ("children", "/brokers/ids")
TOPICS = ("children", "/brokers/topics")
REBALANCE = ("rebalance", "")

TOLD = [ID, IDS, BROKERS, REBALANCE]

ASKED = (Kind.INVOKED, Kind.OK)


def story_of(steps: list[tuple[str, str]], *, pattern: str = "static") -> tuple[GroupStory, dict[str, EventId]]:
    """m1 takes these steps, 10 ms apart; where each is in the history, by its path."""
    story = GroupStory(latency_max_us=1000)
    story.comes(0, "m1", pattern=pattern)
    found: dict[str, EventId] = {}
    for number, (op, path) in enumerate(steps, 1):
        if op == "rebalance":
            found[op] = story.rebalances(10 * number, 10 * number + 5, "m1", by="create")
        else:
            found[path] = story.asks(10 * number, "m1", op, path, watch=op != "create")
    story.rest(1000)
    return story, found


def judge(steps: list[tuple[str, str]], *, pattern: str = "static") -> Finding:
    return CHECK.judge(story_of(steps, pattern=pattern)[0].history())


def test_the_order_told() -> None:
    why = "every member started in the stated order"
    assert judge(TOLD) == Finding(Outcome.CLEAN, why, (), {"count": 0, "members": 1})
    assert judge([ID, IDS, BROKERS, TOPICS, REBALANCE], pattern="white_list").outcome is Outcome.CLEAN


def test_as_shipped_brokers_are_not_watched() -> None:
    story, found = story_of([ID, IDS, REBALANCE, BROKERS])
    assert CHECK.judge(story.history()) == Finding(
        Outcome.VIOLATED,
        "g_m1 did not watch the brokers before its first rebalance",
        (found[IDS[1]], found["rebalance"]),
        {"count": 1, "members": 1},
    )


def test_two_steps_in_the_wrong_order() -> None:
    story, found = story_of([IDS, ID, BROKERS, REBALANCE])
    assert CHECK.judge(story.history()) == Finding(
        Outcome.VIOLATED,
        "g_m1 started in the wrong order: watch the ids, then register",
        (found[IDS[1]], found[ID[1]]),
        {"count": 1, "members": 1},
    )


@pytest.mark.parametrize("pattern", ["white_list", "black_list"])
def test_with_a_filter_topics_are_watched_too(pattern: str) -> None:
    assert judge(TOLD, pattern=pattern).why == "g_m1 did not watch the topics before its first rebalance"


@pytest.mark.parametrize(
    ("kind", "member", "group", "pattern", "violated"),
    [
        (Kind.CREATED, "g_m1", "g", "white_list", True),
        (Kind.CREATED, "g_m1", "g", "black_list", True),
        (Kind.CHANGED, "g_m1", "g", "white_list", True),
        (Kind.CREATED, "g_m1", "g", "static", False),
        (Kind.CREATED, "g_m2", "g", "white_list", False),
        (Kind.CREATED, "g_m1", "h", "white_list", False),
    ],
)
def test_a_filter_that_the_registry_holds_counts_too(
    kind: Kind, member: str, group: str, pattern: str, violated: bool
) -> None:
    """An owner znode, and what is no registration, hold none."""
    story, _ = story_of(TOLD)
    payload = f'{{"version": 1, "subscription": {{"t.*": 1}}, "pattern": "{pattern}", "timestamp": "1"}}'
    detail = {"ephemeral": True, "data": payload}
    story.claims(12, "m1", 0)
    story.topic(13, "t", 1)
    path = f"/consumers/{group}/ids/{member}"
    story.registry(15, kind, path, "0x1", member=member, group=group, detail=detail)
    finding = CHECK.judge(story.history())
    if violated:
        assert finding.why == "g_m1 did not watch the topics before its first rebalance"
    else:
        assert finding.measures["count"] == 0


def started(world: str = "simulated", **told: object) -> GroupStory:
    """m1 registers and watches. The watch of the brokers is answered at 30 ms, and 15 round trips of 2 ms, or 12
    of 5 ms live, are left to force a rebalance."""
    story = GroupStory(world=world, latency_max_us=1000, **{"members": 0, **told})  # type: ignore[arg-type]
    story.comes(0, "m1")
    for number, (op, path) in enumerate((ID, IDS, BROKERS), 1):
        story.asks(10 * number, "m1", op, path, watch=op != "create")
    return story


def outcome(story: GroupStory) -> tuple[Outcome, str]:
    story.rest(1000)
    finding = CHECK.judge(story.history())
    return finding.outcome, finding.why


UNFORCED = "g_m1 did not force its first rebalance"


@pytest.mark.parametrize(
    ("world", "began_ms", "expected"),
    [
        ("simulated", 60, Outcome.CLEAN),
        ("simulated", 60.001, Outcome.VIOLATED),
        ("processes", 95, Outcome.CLEAN),
        ("processes", 95.001, Outcome.UNKNOWN),
    ],
)
def test_a_rebalance_that_comes_later_was_not_forced(world: str, began_ms: float, expected: Outcome) -> None:
    """A live member may have stood still."""
    story = started(world)
    story.rebalances(began_ms, 200, "m1", by="create")
    found, why = outcome(story)
    assert found is expected
    assert (why == UNFORCED) is (expected is Outcome.VIOLATED)


def test_its_witness_is_the_last_step_and_the_rebalance() -> None:
    story = started()
    began = story.rebalances(100, 200, "m1", by="create")
    story.rest(1000)
    assert CHECK.judge(story.history()) == Finding(
        Outcome.VIOLATED, UNFORCED, (("m1", 6), began), {"count": 1, "members": 1}
    )


def test_a_fault_may_make_it_late() -> None:
    story = started()
    story.fault(40, "lag", "zookeeper")
    story.rebalances(500, 600, "m1", by="create")
    found, why = outcome(story)
    assert found is Outcome.UNKNOWN
    assert why.endswith("g_m1 stood still, or did not force its first rebalance")


def test_without_its_parameters_nobody_knows_what_is_late() -> None:
    story = started(tick_ms=None)
    story.rebalances(500, 600, "m1", by="create")
    assert outcome(story) == (Outcome.UNKNOWN, "the trial's parameters lack tick_ms")


@pytest.mark.parametrize("world", ["simulated", "processes"])
def test_a_rebalance_that_a_watch_asked_for_is_not_forced(world: str) -> None:
    story = started(world)
    story.triggers(40, "m1")
    story.rebalances(40, 50, "m1")
    assert outcome(story) == (Outcome.VIOLATED, UNFORCED)


def test_a_rebalance_that_a_watch_asked_for_may_come_before_the_forced_one() -> None:
    story = started()
    story.triggers(31, "m1")
    story.rebalances(31, 400, "m1")
    story.rebalances(401, 500, "m1", by="create")
    assert outcome(story)[0] is Outcome.CLEAN


def test_who_leaves_meanwhile_may_have_been_about_to_force_it() -> None:
    story = started()
    story.triggers(31, "m1")
    story.rebalances(31, 400, "m1")
    story.member(401, "m1", Kind.MEMBER_CLOSING)
    assert outcome(story)[0] is Outcome.CLEAN


def test_a_request_without_an_answer_is_no_step() -> None:
    story = GroupStory(latency_max_us=1000)
    story.comes(0, "m1")
    for number, (op, path) in enumerate((ID, IDS), 1):
        story.asks(10 * number, "m1", op, path, watch=op != "create")
    story.add(30, "m1", Kind.INVOKED, group=None, detail={"op": BROKERS[0], "path": BROKERS[1], "watch": True})
    story.rebalances(31, 40, "m1", by="create")
    assert outcome(story) == (Outcome.VIOLATED, "g_m1 did not watch the brokers before its first rebalance")


@pytest.mark.parametrize("missing", [IDS, BROKERS])
def test_a_watch_that_is_missing(missing: tuple[str, str]) -> None:
    assert judge([step for step in TOLD if step != missing]).outcome is Outcome.VIOLATED


def test_a_read_that_sets_no_watch_is_no_step() -> None:
    story = GroupStory(latency_max_us=1000)
    story.comes(0, "m1")
    for ms, (op, path) in enumerate(TOLD[:3], 1):
        story.asks(ms, "m1", op, path, watch=path == IDS[1])
    story.rebalances(10, 15, "m1", by="create")
    story.rest(1000)
    assert CHECK.judge(story.history()).why == "g_m1 did not watch the brokers before its first rebalance"


def test_a_process_may_live_twice() -> None:
    """With restart.after.failure: the watches of the first life are not the second's."""
    story, _ = story_of(TOLD)
    story.closed(100, "m1")
    story.comes(200, "m1", group="g_again")
    for ms, (op, path) in enumerate(TOLD[:3], 201):
        story.asks(ms, "m1", op, path.replace("/g/", "/g_again/").replace("g_m1", "g_again_m1"), watch=op != "create")
    story.rebalances(210, 215, "m1", by="create", group="g_again")
    finding = CHECK.judge(story.history())
    assert (finding.outcome, finding.measures) == (Outcome.CLEAN, {"count": 0, "members": 2})


def test_who_never_rebalanced_shows_nothing() -> None:
    finding = judge([ID, IDS, BROKERS])
    assert (finding.outcome, finding.why) == (Outcome.UNKNOWN, "no member rebalanced")


def test_who_rebalanced_without_registering_did_not_start_in_order() -> None:
    finding = judge([IDS, BROKERS, REBALANCE])
    assert (finding.outcome, finding.why) == (
        Outcome.VIOLATED,
        "g_m1 did not register before its first rebalance",
    )


@pytest.mark.parametrize("path", [IDS[1], BROKERS[1]])
def test_a_watch_of_exists_does_not_hear_of_children(path: str) -> None:
    steps = [("exists" if step[1] == path else step[0], step[1]) for step in TOLD]
    assert judge(steps).outcome is Outcome.VIOLATED


def test_a_create_that_was_refused_registers_nobody() -> None:
    """As when the id of the member's last session still stands: it registers later than it watches."""
    story = GroupStory(latency_max_us=1000)
    story.comes(0, "m1", pattern="static")
    detail = {"op": "create", "path": ID[1]}
    asked = story.add(1, "m1", Kind.INVOKED, group=None, detail=detail)
    story.add(2, "m1", Kind.FAILED_OP, group=None, detail={**detail, "of": asked[1], "error": "NodeExists"})
    for ms, (op, path) in enumerate([IDS, BROKERS, ID], 3):
        story.asks(ms, "m1", op, path, watch=op != "create")
    story.rebalances(10, 15, "m1", by="create")
    story.rest(1000)
    assert CHECK.judge(story.history()).why == "g_m1 started in the wrong order: watch the ids, then register"


def test_a_recorder_that_does_not_tell_of_watches_tells_no_order() -> None:
    story = GroupStory(latency_max_us=1000)
    story.comes(0, "m1")
    for ms, (op, path) in enumerate(TOLD[:3], 1):
        story.asks(ms, "m1", op, path)
    story.rebalances(10, 15, "m1", by="create")
    story.asks(20, "runner", "children", "/brokers/ids", watch=True)
    assert not CHECK.applies(story.history())


def test_operations_that_are_only_counted_tell_no_order() -> None:
    story = GroupStory(latency_max_us=1000)
    story.comes(0, "m1")
    story.counted(100, "m1", create=1, exists=2, children=2)
    story.rebalances(110, 120, "m1")
    story.asks(900, "m1", "close", "")
    assert not CHECK.applies(story.history())
    assert CHECK.applies(story_of(TOLD)[0].history())


def test_the_registration_is_the_last_before_the_rebalance() -> None:
    """What it created before, it has deleted again."""
    assert (
        judge([ID, IDS, BROKERS, ID, REBALANCE]).why == "g_m1 started in the wrong order: watch the ids, then register"
    )
    assert judge([ID, ID, IDS, BROKERS, REBALANCE, ID]).outcome is Outcome.CLEAN


@pytest.mark.parametrize(("session", "outcome"), [("0x1", Outcome.CLEAN), ("0x9", Outcome.VIOLATED)])
def test_a_watch_is_of_the_session_of_the_registration(session: str, outcome: Outcome) -> None:
    story, found = story_of(TOLD)
    watches = found[BROKERS[1]]
    story.events = [
        replace(event, session=session if event.id == watches else "0x1") if event.kind in ASKED else event
        for event in story.events
    ]
    finding = CHECK.judge(story.history())
    assert finding.outcome is outcome
    if outcome is Outcome.VIOLATED:
        assert finding.why == "g_m1 did not watch the brokers before its first rebalance"
