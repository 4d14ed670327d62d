"""unsettled_write, on histories written by hand: client c1. After a fault the cluster has 13.5 s."""

from __future__ import annotations

from typing import Any

import pytest
from write_story import Writes

from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.checks.unsettled_write import bound_us
from rebalance_lab.history.events import EventId

PARAMETERS: dict[str, Any] = {"lag_ms": 2000, "request_timeout_ms": 3000, "session_timeout_ms": 2000, "tick_ms": 500}
BOUND_MS = 13_500


def story() -> Writes:
    return Writes(**PARAMETERS)


def found(story: Writes, at_ms: float = 60_000) -> Finding:
    story.rest(at_ms)
    return CHECKS["unsettled_write"].judge(story.history())


def cut(story: Writes, ms: float, until_ms: float) -> EventId:
    began = story.fault(ms, "cut", "b1")
    story.bit(ms, "cut", "b1", began)
    story.ended(until_ms, "cut", "b1", began)
    return began


def test_the_bound() -> None:
    assert bound_us(PARAMETERS) == BOUND_MS * 1000


def test_every_write_is_settled() -> None:
    writes = story()
    writes.wrote(10, 1, None)
    writes.wrote(500, 1, 0)
    writes.refused(700, 2)
    finding = found(writes)
    measures = {"count": 0, "writes": 2, "unknown": 1, "longest_us": 491_000}
    assert (finding.outcome, finding.why, finding.measures) == (
        Outcome.CLEAN,
        "2 writes were acknowledged or refused",
        measures,
    )


def test_a_write_that_is_never_answered() -> None:
    writes = story()
    writes.wrote(10, 1, 0)
    asked = writes.asked(20, 2)
    finding = found(writes)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (asked,))
    assert finding.why == "number 2 was asked for at 0.020 s and never answered"


def test_an_outcome_that_stays_unknown() -> None:
    writes = story()
    writes.wrote(20, 1, None)
    finding = found(writes)
    assert (finding.outcome, finding.witness) == (Outcome.VIOLATED, (("c1", 0), ("c1", 1)))
    assert finding.why == "number 1 was asked for at 0.020 s and never settled: reset"


def test_an_attempt_shortly_before_the_end_had_no_time() -> None:
    for before_ms, outcome in ((BOUND_MS - 1, Outcome.CLEAN), (BOUND_MS, Outcome.VIOLATED)):
        writes = story()
        writes.asked(60_000 - before_ms, 1)
        assert found(writes).outcome is outcome


def test_asking_again_and_again_is_no_answer() -> None:
    writes = story()
    first = writes.asked(60_000 - BOUND_MS, 1)
    for ms in range(50_000, 60_000, 3000):
        last = writes.asked(ms, 1)
    assert found(writes).witness == (first, last)


@pytest.mark.parametrize(("until_ms", "outcome"), [(30_000, Outcome.VIOLATED), (50_000, Outcome.CLEAN)])
def test_a_fault_may_leave_an_outcome_unknown(until_ms: float, outcome: Outcome) -> None:
    writes = story()
    cut(writes, 20_000, until_ms)
    writes.asked(25_000, 1)
    writes.wrote(until_ms + BOUND_MS + (1 if outcome is Outcome.VIOLATED else -2), 2, None)
    writes.wrote(59_000, 1, 1)
    assert found(writes).outcome is outcome


def test_a_kill_counts_as_a_disturbance_though_it_is_over() -> None:
    for ms, outcome in ((10_000, Outcome.VIOLATED), (30_000, Outcome.CLEAN)):
        writes = story()
        writes.killed(ms, "b1")
        writes.wrote(40_000, 1, None)
        assert found(writes).outcome is outcome


def test_without_writes_the_check_does_not_apply() -> None:
    assert not CHECKS["unsettled_write"].applies(story().history())
