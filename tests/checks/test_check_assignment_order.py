"""assignment_order, on histories written by hand: partition t-0 with the replicas 1, 2, 3."""

from __future__ import annotations

from test_check_leader_outside_isr import States

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.events import Kind


def found(story: States) -> Finding:
    story.add(900, "runner", Kind.REST_REACHED, detail={"phase": "recovered"})
    return CHECKS["assignment_order"].judge(story.history())


def test_the_first_of_the_assignment_leads_though_the_isr_begins_with_another() -> None:
    story = States()
    story.state(1, 0, 1, 3, 2)
    story.state(2, 1, 3, 2)
    finding = found(story)
    assert (finding.outcome, finding.measures) == (Outcome.CLEAN, {"count": 0, "deciding": 1})


def test_the_first_of_the_isr_leads_though_it_stands_last_in_the_assignment() -> None:
    story = States()
    before, after = story.state(1, 0, 1, 3, 2), story.state(3, 1, 3, 2)
    finding = found(story)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (before, after))


def test_an_election_after_a_time_without_a_leader_counts() -> None:
    story = States()
    story.state(1, 0, 1, 3, 2)
    story.state(-1, 1, 3, 2)
    story.state(3, 2, 3, 2)
    assert found(story).outcome is Outcome.VIOLATED


def test_elections_in_which_both_orders_agree_are_not_looked_at() -> None:
    story = States()
    story.state(1, 0, 1, 2, 3)
    story.state(2, 1, 2, 3)
    assert not CHECKS["assignment_order"].applies(story.history())


def test_a_leader_that_neither_order_names() -> None:
    story = States()
    before, after = story.state(1, 0, 1, 2, 3), story.state(3, 1, 2, 3)
    finding = found(story)
    assert CHECKS["assignment_order"].applies(story.history())
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (before, after))
