"""isr_order, on histories written by hand: partition t-0 with the replicas 1, 2, 3."""

from __future__ import annotations

from test_check_leader_outside_isr import States

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import Kind


def found(story: States) -> Finding:
    story.add(900, "runner", Kind.REST_REACHED, detail={"phase": "recovered"})
    return CHECKS["isr_order"].judge(story.history())


def test_the_first_of_the_isr_leads_though_it_stands_last_in_the_assignment() -> None:
    story = States()
    story.state(1, 0, 1, 3, 2)
    story.state(3, 1, 3, 2)
    finding = found(story)
    assert (finding.outcome, finding.measures) == (Outcome.CLEAN, {"count": 0, "deciding": 1})


def test_the_first_of_the_assignment_leads_though_the_isr_begins_with_another() -> None:
    story = States()
    before, after = story.state(1, 0, 1, 3, 2), story.state(2, 1, 3, 2)
    finding = found(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (before, after))
    assert finding.why == "t-0: broker 2 leads, and of the ISR before, 3 comes first"


def test_then_the_next() -> None:
    story = States()
    story.state(1, 0, 1, 3, 2)
    story.state(3, 1, 3, 2)
    before, after = story.state(3, 1, 3, 2, 1), story.state(1, 2, 2, 1)
    assert found(story).witness == (before, after)


def test_elections_in_which_both_orders_agree_are_not_looked_at() -> None:
    story = States()
    story.state(1, 0, 1, 2, 3)
    story.state(2, 1, 2, 3)
    assert not CHECKS["isr_order"].applies(story.history())


def test_a_history_without_rest_is_unknown() -> None:
    story = States()
    story.state(1, 0, 1, 3, 2)
    story.state(3, 1, 3, 2)
    assert CHECKS["isr_order"].judge(story.history()).outcome is Outcome.UNKNOWN


def test_an_isr_that_is_written_anew_with_the_new_leader_in_front_proves_nothing() -> None:
    """The order is that of the ISR before the election: afterwards a controller may write what it likes."""
    story = States()
    before, after = story.state(1, 0, 1, 2, 3), story.state(3, 1, 3, 2)
    finding = found(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (before, after))
    assert finding.why == "t-0: broker 3 leads, and of the ISR before, 2 comes first"


def test_an_isr_that_is_put_in_order_while_nobody_leads_proves_nothing() -> None:
    story = States()
    story.state(1, 0, 1, 2, 3)
    story.state(-1, 1, 3, 2)
    story.state(3, 2, 3, 2)
    assert found(story).outcome is Outcome.VIOLATED


def test_an_election_from_outside_the_isr_has_no_order() -> None:
    story = States(unclean=True)
    story.state(1, 0, 1)
    story.state(3, 1, 3)
    assert not CHECKS["isr_order"].applies(story.history())


def test_a_leader_that_neither_order_names() -> None:
    story = States()
    before, after = story.state(1, 0, 1, 2, 3), story.state(3, 1, 2, 3)
    finding = found(story)
    assert CHECKS["isr_order"].applies(story.history())
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (before, after))
