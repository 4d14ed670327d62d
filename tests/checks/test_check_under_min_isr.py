"""under_min_isr, on histories written by hand: partition t-0 of brokers 1, 2 and 3, led by b1 in leader epoch 1. Two
must be in sync, unless a test says otherwise."""

from __future__ import annotations

from typing import Any

import pytest
from log_story import Logs

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind

UP_TO_3_6 = {"commits_under_min_isr": True}

#: b1's LEADS, with the ISR (1, 2, 3).
LEADS = ("b1", 0)


class Led(Logs):
    """`options`: those of a Story."""

    def __init__(self, *replicas: int, min_isr: int = 2, **options: Any) -> None:
        super().__init__(min_isr=min_isr, **options)
        isr = replicas or (1, 2, 3)
        self.assigned(10, *isr)
        self.state(20, 1, 1, *isr)
        self.leads(30, 1, 1, *isr)

    def wrote(self, ms: float, offset: int | None, *, took_ms: float = 10, **more: object) -> tuple[EventId, EventId]:
        """A write that is acknowledged after that time: the attempt, and its end."""
        began = self._of_client(ms, Kind.INVOKED, **more)
        return began, self._of_client(ms + took_ms, Kind.OK, of=began[1], offset=offset)

    def _of_client(self, ms: float, kind: Kind, **detail: object) -> EventId:
        return self.add(
            ms, "c1", kind, member="c1", topic="t", partition=0, detail={"op": "produce", "number": 7, **detail}
        )


def found(story: Logs) -> Finding:
    return story.found("under_min_isr")


def test_enough_are_in_sync() -> None:
    story = Led()
    story.assumes(40, 1, 1, 2)
    story.committed(105, 1, 1)
    story.wrote(100, 0)
    finding = found(story)
    assert finding == Finding(
        Outcome.CLEAN,
        "enough replicas were in sync at each of 2 commits and acknowledgements",
        (),
        {"count": 0, "acknowledged": 0, "compared": 2, "least": 2},
    )


def test_a_high_watermark_that_rises_while_too_few_are_in_sync() -> None:
    story = Led()
    view = story.assumes(40, 1, 1)
    rise = story.committed(105, 1, 1)
    assert found(story) == Finding(
        Outcome.VIOLATED,
        "t-0: b1 committed up to offset 1 in leader epoch 1 with 1 in sync, and 2 must be",
        (view, rise),
        {"count": 1, "acknowledged": 0, "compared": 1, "least": 1},
    )


def test_what_it_has_asked_for_does_not_count_when_it_commits() -> None:
    story = Led()
    story.assumes(40, 1, 1)
    asked = story.assumes(50, 1, 1, proposed=(1, 2))
    rise = story.committed(60, 1, 1)
    assert found(story).witness == (asked, rise)


def test_what_it_is_to_lose_counts_until_it_knows() -> None:
    story = Led()
    story.assumes(40, 1, 1, 2)
    story.assumes(50, 1, 1, 2, proposed=(1,))
    story.committed(60, 1, 1)
    story.assumes(60, 1, 1)
    assert found(story).outcome is Outcome.CLEAN


def test_a_state_of_which_the_leader_has_not_heard_says_nothing() -> None:
    story = Led()
    story.state(40, 1, 1, 1)
    story.committed(500, 1, 1)
    assert found(story).outcome is Outcome.CLEAN


def test_up_to_3_6_it_may_rise_and_an_acknowledgement_may_not_follow() -> None:
    story = Led(**UP_TO_3_6)
    view = story.assumes(40, 1, 1)
    story.committed(105, 1, 1)
    assert not CHECKS["under_min_isr"].applies(story.history())
    began, answer = story.wrote(100, 0)
    assert found(story) == Finding(
        Outcome.VIOLATED,
        "t-0: c1 got an acknowledgement of number 7 at offset 0 from b1, which had 1 in sync, and 2 must be",
        (began, view, answer),
        {"count": 1, "acknowledged": 1, "compared": 1, "least": 1},
    )


@pytest.mark.parametrize(("shrunk_ms", "outcome"), [(104, Outcome.VIOLATED), (106, Outcome.CLEAN)])
def test_an_isr_that_shrinks_while_the_acknowledgement_is_on_its_way(shrunk_ms: float, outcome: Outcome) -> None:
    """The record is committed at 105 ms, and acknowledged at 110 ms."""
    story = Led(**UP_TO_3_6)
    story.committed(105, 1, 1)
    story.assumes(shrunk_ms, 1, 1)
    story.wrote(100, 0)
    assert found(story).outcome is outcome


def test_a_shrink_and_a_commit_at_one_time_have_an_order() -> None:
    for shrinks_first, outcome in ((True, Outcome.VIOLATED), (False, Outcome.CLEAN)):
        story = Led(**UP_TO_3_6)
        if not shrinks_first:
            story.committed(105, 1, 1)
        story.assumes(105, 1, 1)
        if shrinks_first:
            story.committed(105, 1, 1)
        story.wrote(100, 0)
        assert found(story).outcome is outcome


def test_an_acknowledgement_counts_whom_the_leader_has_asked_for() -> None:
    """`Partition.checkEnoughReplicasReachOffset` looks at the maximal ISR."""
    story = Led(**UP_TO_3_6)
    story.assumes(40, 1, 1)
    story.committed(105, 1, 1)
    story.assumes(107, 1, 1, proposed=(1, 2))
    story.wrote(100, 0)
    assert found(story).outcome is Outcome.CLEAN


def test_a_record_that_nobody_has_committed() -> None:
    story = Led()
    story.assumes(40, 1, 1)
    story.appended(101, 1, 0)
    story.wrote(100, 0)
    finding = found(story)
    assert (finding.outcome, finding.measures["acknowledged"]) == (Outcome.VIOLATED, 1)


def test_it_may_be_the_answer_of_any_leader_that_has_committed_it() -> None:
    """An idempotent producer repeats a batch, and the next leader recognizes it."""
    story = Led(**UP_TO_3_6)
    story.assumes(40, 1, 1)
    story.committed(50, 1, 1)
    story.state(60, 2, 2, 2, 3)
    story.leads(70, 2, 2, 2, 3, end=1, high_watermark=1)
    story.wrote(100, 0)
    assert found(story).outcome is Outcome.CLEAN


def test_another_leader_that_has_not_committed_it_did_not_answer() -> None:
    story = Led(**UP_TO_3_6)
    story.assumes(40, 1, 1)
    story.committed(105, 1, 1)
    story.state(60, 2, 2, 2, 3)
    story.leads(70, 2, 2, 2, 3)
    story.wrote(100, 0)
    assert found(story).outcome is Outcome.VIOLATED


@pytest.mark.parametrize("more", [{"offset": None}, {"offset": 0, "acks": 1}])
def test_an_acknowledgement_that_names_no_offset_or_asks_the_leader_alone(more: dict[str, Any]) -> None:
    story = Led(**UP_TO_3_6)
    story.assumes(40, 1, 1)
    story.committed(105, 1, 1)
    story.wrote(100, more.pop("offset"), **more)
    finding = found(story)
    assert (finding.outcome, finding.why) == (
        Outcome.UNKNOWN,
        "nothing was committed or acknowledged by a leader that needs more than itself",
    )


def test_no_more_need_be_in_sync_than_there_are_replicas() -> None:
    """`Partition.effectiveMinIsr`, from 3.7 on."""
    story = Led(1, 2, min_isr=3)
    story.committed(105, 1, 1)
    story.wrote(100, 0)
    finding = found(story)
    assert (finding.outcome, finding.measures["least"]) == (Outcome.CLEAN, 2)


def test_up_to_3_6_all_that_the_setting_says_need_be() -> None:
    story = Led(1, 2, min_isr=3, **UP_TO_3_6)
    story.committed(105, 1, 1)
    story.wrote(100, 0)
    finding = found(story)
    assert finding.outcome is Outcome.VIOLATED
    assert finding.why.endswith("which had 2 in sync, and 3 must be")


def test_a_leader_need_not_know_a_larger_assignment_yet() -> None:
    for told, outcome in ((False, Outcome.CLEAN), (True, Outcome.VIOLATED)):
        story = Led(1, 2, min_isr=3)
        story.assigned(50, 1, 2, 3)
        if told:
            story.state(60, 1, 2, 1, 2)
            story.leads(70, 1, 2, 1, 2)
        story.committed(105, 1, 1, leader_epoch=2 if told else 1)
        assert found(story).outcome is outcome


@pytest.mark.parametrize("set_ms", [5, 5000])
def test_a_topic_may_ask_for_more_than_brokers_do(set_ms: float) -> None:
    """Since its creation, or for longer than a broker needs to hear of it (4.5 s)."""
    story = Led(min_isr=1)
    story.assumes(40, 1, 1)
    story.committed(50, 1, 1)
    assert not CHECKS["under_min_isr"].applies(story.history())
    story.configured(set_ms, Kind.CREATED, min_insync_replicas="2")
    story.state(9990, 1, 2, 1)
    story.leads(10_000, 1, 2, 1)
    story.committed(10_100, 1, 2, leader_epoch=2)
    finding = story.found("under_min_isr", 10_200)
    assert (finding.outcome, finding.measures["count"]) == (Outcome.VIOLATED, 2 if set_ms == 5 else 1)


def test_a_leader_may_not_have_heard_of_the_topic_s_setting_yet() -> None:
    story = Led(min_isr=1)
    story.configured(25, Kind.CREATED, min_insync_replicas="2")
    story.assumes(40, 1, 1)
    story.committed(50, 1, 1)
    assert not CHECKS["under_min_isr"].applies(story.history())


def test_a_topic_may_ask_for_less_from_any_time_on() -> None:
    story = Led()
    story.assumes(40, 1, 1)
    story.configured(50, Kind.CREATED, min_insync_replicas="1")
    story.committed(60, 1, 1)
    assert not CHECKS["under_min_isr"].applies(story.history())


def test_a_leader_epoch_that_the_registry_does_not_have() -> None:
    story = Logs(min_isr=2)
    story.assigned(10, 1, 2, 3)
    story.leads(30, 1, 1, 1)
    story.committed(40, 1, 1)
    assert not CHECKS["under_min_isr"].applies(story.history())


def test_a_leader_that_is_dead_commits_nothing() -> None:
    story = Led()
    story.assumes(40, 1, 1)
    story.killed(50, "b1")
    story.committed(60, 1, 1)
    assert not CHECKS["under_min_isr"].applies(story.history())
