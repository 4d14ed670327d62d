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


def test_replicas_are_spread_over_racks() -> None:
    found, errors = play(racks="3", brokers="6")
    assert errors == ([None] * 9 + ["INVALID_REPLICATION_FACTOR"]) * 2
    assert found["rack_spread"].measures == {"count": 0, "topics": 18, "partitions": 72, "racks": 3}
    assert "placement_rule" not in found
    assert {each.outcome for each in found.values()} == {Outcome.CLEAN}


def test_more_replicas_than_racks() -> None:
    found, _ = play(racks="2", brokers="5")
    assert found["rack_spread"].outcome is Outcome.CLEAN


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"brokers": "2"}, "brokers=2: must be at least 3"),
        ({"racks": "1"}, "racks=1: must be 0, or 2 to brokers=5"),
        ({"racks": "6"}, "racks=6: must be 0, or 2 to brokers=5"),
    ],
)
def test_what_is_refused(settings: dict[str, str], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        make_plan("placement", settings=settings)
