"""stale_order, on histories written by hand: brokers b1 to b3, and controllers of the epochs 1 and 2."""

from __future__ import annotations

import pytest
from broker_story import Brokers

from rebalance_lab.checks import CHECKS, Outcome


def two_elections() -> Brokers:
    """b1 controls in epoch 1 and b2, from 1000 ms on, in epoch 2. The broker epoch of b3 is 3."""
    story = Brokers()
    for number in (1, 2, 3):
        story.registered(10, number)  # zookeeper/0 to zookeeper/2
    story.elected(20, 1, 1)
    story.deposed(999, 1)
    story.elected(1000, 2, 2)
    return story


def test_orders_of_one_controller_after_the_other() -> None:
    story = two_elections()
    story.obeys(30, 3, 1, 1, broker_epoch=3)
    story.obeys(1010, 3, 2, 2)
    finding = story.found("stale_order")
    assert (finding.outcome, finding.measures) == (Outcome.CLEAN, {"count": 0, "orders": 2, "fenced": 1})
    assert finding.why == "2 orders were of the newest controller that was heard of"


def test_a_deposed_controller_is_obeyed_after_its_successor() -> None:
    story = two_elections()
    newer = story.obeys(1010, 3, 2, 2)
    stale = story.obeys(1020, 3, 1, 1)
    finding = story.found("stale_order")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (newer, stale))
    assert finding.why == "b3 obeys stop-replica of controller epoch 1, and has obeyed epoch 2"


def test_who_has_heard_of_no_other_controller_cannot_know_better() -> None:
    story = two_elections()
    story.obeys(1010, 2, 2, 2)
    story.obeys(1020, 3, 1, 1)
    assert story.found("stale_order").outcome is Outcome.CLEAN


def test_the_newest_controller_counts_and_not_the_last() -> None:
    story = two_elections()
    newer = story.obeys(1010, 3, 2, 2)
    story.obeys(1020, 3, 1, 1)
    story.obeys(1030, 3, 1, 1)
    finding = story.found("stale_order")
    assert (finding.measures["count"], finding.witness[0]) == (2, newer)


def test_a_new_process_has_heard_nothing() -> None:
    story = two_elections()
    story.obeys(1010, 3, 2, 2)
    story.killed(1020, "b3")
    story.restarted(1030, 3)
    story.obeys(1040, 3, 1, 1)
    assert story.found("stale_order").outcome is Outcome.CLEAN


def test_an_order_for_a_former_life() -> None:
    story = two_elections()
    story.killed(1020, "b3")
    story.restarted(1030, 3)
    story.unregistered(1035, 3)
    again = story.registered(1040, 3, "0x33")
    stale = story.obeys(1050, 3, 2, 2, broker_epoch=3)
    finding = story.found("stale_order")
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (again, stale))
    assert finding.why == (
        "b3 obeys stop-replica of controller epoch 2, which is for broker epoch 3, and it has registered in 8"
    )


def test_a_broker_that_has_not_heard_of_its_registration_yet() -> None:
    story = two_elections()
    story.obeys(5, 3, 1, 1, broker_epoch=1)
    finding = story.found("stale_order")
    assert "broker epoch" not in finding.why


@pytest.mark.parametrize(
    ("controller", "epoch", "why"),
    [
        (3, 2, "b1 obeys stop-replica of broker 3 as the controller of epoch 2, which broker 2 has won"),
        (2, 3, "b1 obeys stop-replica of broker 2 as the controller of epoch 3, which no election has"),
    ],
)
def test_an_order_of_no_controller(controller: int, epoch: int, why: str) -> None:
    story = two_elections()
    order = story.obeys(1010, 1, controller, epoch)
    finding = story.found("stale_order")
    assert (finding.outcome, finding.witness[-1], finding.why) == (Outcome.VIOLATED, order, why)


def test_without_all_of_the_registry_nobody_is_called_an_impostor() -> None:
    story = two_elections()
    story.elsewhere(1005, 8)
    story.obeys(1010, 1, 2, 3)
    story.events = [each for each in story.events if each.zxid != 7]
    assert story.found("stale_order").outcome is Outcome.UNKNOWN


def test_without_orders_the_check_does_not_apply() -> None:
    assert not CHECKS["stale_order"].applies(two_elections().history())
