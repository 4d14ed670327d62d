"""handover, on histories written by hand: brokers b1 and b2, which are registered from 10 ms on."""

from __future__ import annotations

from broker_story import Brokers

from rebalance_lab.checks import CHECKS, Outcome
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.replicas import STATE_KNOWN

EPOCH_OVER = ("zookeeper", 4)


class Reigns(Brokers):
    def expired(self, ms: float, number: int) -> EventId:
        return self.add(ms, f"b{number}", Kind.EXPIRED, session=f"0x{number}", group=None)

    def told(self, ms: float, number: int) -> EventId:
        """A notification that `/controller` is gone."""
        detail = {"path": "/controller", "event": "deleted"}
        return self.add(ms, f"b{number}", Kind.WATCH_FIRED, session=f"0x{number}", group=None, detail=detail)

    def knows(self, ms: float, number: int, epoch: int) -> EventId:
        return self.broker(ms, number, STATE_KNOWN, epoch=epoch, leader=1, leader_epoch=0, isr=[1])


def reign() -> Reigns:
    """b1 controls in epoch 1 from 20 ms on, and at 3000 ms (zookeeper/4) `/controller` goes."""
    story = Reigns()
    for number in (1, 2):
        story.registered(10, number)  # zookeeper/0 and zookeeper/1
    story.elected(20, 1, 1)
    story.controls(21, 1, 1)
    story.deposed(3000, 1)
    return story


def succession(at_ms: float = 3100, until_ms: float = 3200) -> Reigns:
    """b2 is elected, and b1 believes in itself for some time more."""
    story = reign()
    story.elected(at_ms, 2, 2)
    story.controls(at_ms + 1, 2, 2)
    story.controls_no_more(until_ms, 1)
    return story


def test_one_controller_follows_the_other() -> None:
    finding = succession().found("handover")
    measures = {"count": 0, "gap_us": 100_000, "overlap_us": 99_000, "overrun_us": 200_000, "handovers": 1}
    assert (finding.outcome, finding.why, finding.measures) == (
        Outcome.CLEAN,
        "one controller followed the other in time",
        measures,
    )


def test_nobody_follows_for_more_than_a_second() -> None:
    for at_ms, outcome in ((4000, Outcome.CLEAN), (4001, Outcome.VIOLATED)):
        finding = succession(at_ms).found("handover")
        assert finding.outcome is outcome
        if outcome is Outcome.VIOLATED:
            assert finding.witness == (EPOCH_OVER, ("zookeeper", 5))
            assert finding.why == "for 1.001 s after /controller went there was no controller, and b1 was in touch"


def test_who_is_not_in_touch_cannot_follow() -> None:
    story = succession(6000)
    for number in (1, 2):
        story.add(3500, f"b{number}", Kind.DISCONNECTED, session=f"0x{number}", group=None)
    assert story.found("handover").outcome is Outcome.CLEAN


def test_nobody_follows_until_the_end() -> None:
    story = reign()
    story.controls_no_more(3001, 1)
    finding = story.found("handover")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (EPOCH_OVER,))
    assert finding.measures["gap_us"] == 6_000_000


def test_the_first_election_comes_in_time_as_well() -> None:
    for at_ms, outcome in ((1000, Outcome.CLEAN), (1020, Outcome.VIOLATED)):
        story = Reigns()
        registered = story.registered(10, 1)
        elected = story.elected(at_ms, 1, 1)
        story.controls(at_ms, 1, 1)
        finding = story.found("handover")
        assert finding.outcome is outcome
        assert finding.measures["gap_us"] == 0
        if outcome is Outcome.VIOLATED:
            assert finding.witness == (registered, elected)


def test_a_controller_that_has_heard_and_goes_on() -> None:
    for until_ms, outcome in ((4050, Outcome.CLEAN), (4051, Outcome.VIOLATED)):
        story = reign()
        heard = story.expired(3050, 1)
        story.elected(3100, 2, 2)
        story.controls(3101, 2, 2)
        ended = story.controls_no_more(until_ms, 1)
        finding = story.found("handover")
        assert finding.outcome is outcome
        if outcome is Outcome.VIOLATED:
            assert finding.witness == (EPOCH_OVER, heard, ended)
            assert finding.why == "b1 went on as the controller for 1.001 s after it had heard of its reign's end"


def test_a_notification_is_news_as_well() -> None:
    story = succession(until_ms=5000)
    story.told(3050, 1)
    assert story.found("handover").outcome is Outcome.VIOLATED


def test_who_has_not_heard_goes_on() -> None:
    finding = succession(until_ms=8000).found("handover")
    assert (finding.outcome, finding.measures["overlap_us"]) == (Outcome.CLEAN, 4_899_000)


def test_what_another_broker_hears_does_not_count() -> None:
    story = succession(until_ms=5000)
    story.told(3050, 2)
    assert story.found("handover").outcome is Outcome.CLEAN


def test_a_broker_that_is_paused_again_cannot_stop() -> None:
    story = succession(until_ms=5000)
    story.told(3050, 1)
    story.paused(3060, 4990, "b1")
    assert story.found("handover").outcome is Outcome.CLEAN


def test_a_kill_ends_a_reign() -> None:
    story = reign()
    story.told(3050, 1)
    story.elected(3100, 2, 2)
    story.controls(3101, 2, 2)
    story.killed(3500, "b1")
    finding = story.found("handover")
    assert (finding.outcome, finding.measures["overrun_us"]) == (Outcome.CLEAN, 500_000)


def again(*, resigned: bool) -> Reigns:
    """b1 is elected again, for epoch 2."""
    story = reign()
    if resigned:
        story.controls_no_more(3050, 1)
    story.elected(3100, 1, 2)
    story.controls(3101, 1, 2)
    return story


def test_who_is_elected_again_has_resigned_before() -> None:
    assert again(resigned=True).found("handover").outcome is Outcome.CLEAN
    finding = again(resigned=False).found("handover")
    assert finding.outcome is Outcome.VIOLATED
    assert finding.why == "b1 is the controller of epoch 2, and has not resigned from epoch 1"
    assert finding.witness == (("b1", 2), ("b1", 3))


def test_a_controller_that_goes_on_with_its_former_reign() -> None:
    story = again(resigned=True)
    story.knows(3200, 1, 2)
    assert story.found("handover").outcome is Outcome.CLEAN
    story = again(resigned=True)
    wrong = story.knows(3200, 1, 1)
    finding = story.found("handover")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("b1", 4), wrong))
    assert finding.why == "the controller of b1 goes on with epoch 1, and it controls in epoch 2"


def test_a_controller_that_goes_on_without_a_reign() -> None:
    story = succession()
    wrong = story.knows(3300, 1, 1)
    finding = story.found("handover")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("b1", 3), wrong))
    assert finding.why == "the controller of b1 goes on with epoch 1, and it does not control"


def test_without_an_election_the_check_does_not_apply() -> None:
    story = Reigns()
    story.registered(10, 1)
    assert not CHECKS["handover"].applies(story.history())


def test_live_brokers_have_five_seconds() -> None:
    for world, outcome in (("simulated", Outcome.VIOLATED), ("processes", Outcome.CLEAN)):
        story = succession(at_ms=5000)
        story._world = world
        assert story.found("handover").outcome is outcome
    story = succession(at_ms=8001)
    story._world = "processes"
    assert story.found("handover").outcome is Outcome.VIOLATED
