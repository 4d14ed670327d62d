"""placement: topics whose replicas brokers place, and topics with too many replicas (P1, P2)."""

from __future__ import annotations

import pytest

from rebalance_lab.checks import Finding, Outcome, judge
from rebalance_lab.history.creations import creations
from rebalance_lab.trials.plan import PlanError
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate


def play(*, control: bool = False, **settings: str) -> tuple[dict[str, Finding], list[str | None]]:
    """What the checks find, and the error of each topic."""
    history, _ = simulate(make_plan("placement", control=control, settings=settings))
    return judge(history), [each.error for each in creations(history)]


def test_too_many_replicas_are_refused_and_the_others_are_placed_by_the_rule() -> None:
    found, errors = play()
    assert errors == ([None] * 9 + ["INVALID_REPLICATION_FACTOR"]) * 2
    assert found["replication_limit"].measures == {"count": 0, "refused": 2, "created": 18, "undecided": 0}
    assert found["placement_rule"].measures["wrapped"] == 18
    assert {each.outcome for each in found.values()} == {Outcome.CLEAN}


def test_the_control_does_not_try_the_limit() -> None:
    found, errors = play(control=True)
    assert errors == [None] * 20
    assert "replication_limit" not in found
    assert found["placement_rule"].outcome is Outcome.CLEAN


def test_too_few_brokers_for_the_topics() -> None:
    with pytest.raises(PlanError, match="brokers=2: must be at least 3"):
        make_plan("placement", settings={"brokers": "2"})
