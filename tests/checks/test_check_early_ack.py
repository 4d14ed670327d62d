"""early_ack, on histories written by hand: partition t-0, led by b1 in leader epoch 1."""

from __future__ import annotations

import pytest
from log_story import Logs

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.replicas import COMMITTED


class Acked(Logs):
    def wrote(self, ms: float, offset: int | None = 0, **more: object) -> tuple[EventId, EventId]:
        """A write that is acknowledged 10 ms later: the attempt, and its end."""
        began = self._of_client(ms, Kind.INVOKED, **more)
        return began, self._of_client(ms + 10, Kind.OK, of=began[1], offset=offset)

    def _of_client(self, ms: float, kind: Kind, **detail: object) -> EventId:
        return self.add(
            ms, "c1", kind, member="c1", topic="t", partition=0, detail={"op": "produce", "number": 7, **detail}
        )


def led(*, world: str = "simulated", high_watermark: int = 0) -> Acked:
    story = Acked(world=world)
    story.leads(30, 1, 1, 1, 2, end=high_watermark, high_watermark=high_watermark)
    return story


def found(story: Acked) -> Finding:
    return story.found("early_ack")


def test_a_record_that_is_committed_before() -> None:
    story = led()
    story.committed(109, 1, 1)
    story.wrote(100)
    assert found(story) == Finding(
        Outcome.CLEAN, "what was acknowledged had been committed, in 1 comparisons", (), {"count": 0, "compared": 1}
    )


def test_a_record_that_is_committed_a_moment_later() -> None:
    story = led()
    began, answer = story.wrote(100)
    story.committed(111, 1, 1)
    assert found(story) == Finding(
        Outcome.VIOLATED,
        "t-0: c1 got an acknowledgement of number 7 at offset 0, which no leader had committed",
        (began, answer),
        {"count": 1, "compared": 1},
    )


def test_the_records_before_it_are_not_the_record() -> None:
    story = led()
    story.committed(105, 1, 1)
    story.wrote(100, 1)
    assert found(story).outcome is Outcome.VIOLATED


def test_a_leader_may_begin_with_what_is_committed() -> None:
    """An idempotent producer sends again what the leader before has committed."""
    story = led(high_watermark=1)
    story.wrote(100)
    assert found(story).outcome is Outcome.CLEAN


def test_what_is_committed_of_another_partition_says_nothing() -> None:
    story = led()
    story.broker(40, 1, COMMITTED, partition=1, offset=1, leader_epoch=1)
    story.wrote(100)
    assert found(story).outcome is Outcome.VIOLATED


@pytest.mark.parametrize(("committed_ms", "outcome"), [(210, Outcome.CLEAN), (211, Outcome.VIOLATED)])
def test_a_leader_of_a_live_trial_may_note_its_commit_late(committed_ms: float, outcome: Outcome) -> None:
    story = led(world="live")
    story.wrote(100)
    story.committed(committed_ms, 1, 1)
    assert found(story).outcome is outcome


@pytest.mark.parametrize("more", [{"offset": None}, {"acks": 1}])
def test_an_acknowledgement_that_names_no_offset_or_asks_the_leader_alone(more: dict[str, int | None]) -> None:
    story = led()
    story.wrote(100, **more)
    assert not CHECKS["early_ack"].applies(story.history())
