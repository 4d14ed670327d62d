"""A topic with keys gets more partitions, and is to get fewer (P3); or it grows while a reassignment is written."""

from __future__ import annotations

import pytest

from rebalance_lab.checks import Finding, Outcome, judge
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.keyed import RESIZE
from rebalance_lab.trials.plan import PlanError
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate


def play(
    name: str = "grow-only", *, seed: int = 1, control: bool = False, **settings: str
) -> tuple[dict[str, Finding], list[Event]]:
    """What the checks find, and the answers to requests for another number of partitions."""
    history, _ = simulate(make_plan(name, seed=seed, control=control, settings=settings))
    return judge(history), [each for each in history.events if each.of("op") == RESIZE and each.of("of") is not None]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_growth_is_done_and_moves_keys_and_shrinking_is_refused(seed: int) -> None:
    found, answers = play(seed=seed)
    assert [(each.kind, each.of("partitions"), each.of("error")) for each in answers] == [
        (Kind.OK, 5, None),
        (Kind.FAILED_OP, 2, "INVALID_PARTITIONS"),
    ]
    assert answers[1].of("message") == "Topic currently has 5 partitions, which is higher than the requested 2."
    assert found["grow_only"].measures == {"count": 0, "moved": 9, "stayed": 3, "refused": 1}
    assert {each.outcome for each in found.values()} == {Outcome.CLEAN}


def test_in_the_control_no_key_moves() -> None:
    found, answers = play(control=True)
    assert answers == []
    assert found["grow_only"].measures == {"count": 0, "moved": 0, "stayed": 12, "refused": 0}
    assert {each.outcome for each in found.values()} == {Outcome.CLEAN}


def test_growth_that_moves_no_key_proves_nothing() -> None:
    found, _ = play(keys="2", partitions="2", grown="4")  # of both numbers these two keys have the same partition
    assert found["grow_only"].measures["moved"] == 0
    assert (found["grow_only"].outcome, found["grow_only"].why) == (Outcome.UNKNOWN, "no key has moved")


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"grown": "2"}, "grown=2: must be above partitions=2"),
        ({"keyed_messages": "71"}, "keyed_messages=71: must be at least 72"),
    ],
)
def test_settings_that_leave_nothing_to_see(settings: dict[str, str], error: str) -> None:
    with pytest.raises(PlanError, match=error):
        make_plan("grow-only", settings=settings)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_controller_that_writes_what_it_knows_takes_new_partitions_back(seed: int) -> None:
    found, answers = play("lost-growth", seed=seed)
    assert (found["grow_only"].outcome, found["grow_only"].why) == (
        Outcome.VIOLATED,
        "the topic had 5 partitions, and then 2",
    )
    assert [each.kind for each in answers] == [Kind.INFO, Kind.OK]  # no answer in time; then they are made


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_controller_that_keeps_what_it_does_not_know_takes_none_back(seed: int) -> None:
    found, answers = play("lost-growth", seed=seed, keeps_additions="true")
    assert found["grow_only"].outcome is Outcome.CLEAN
    assert [(each.kind, each.of("partitions")) for each in answers] == [(Kind.OK, 5)]


def test_in_the_control_of_lost_growth_the_partition_moves() -> None:
    found, answers = play("lost-growth", control=True)
    assert (found["grow_only"].outcome, answers) == (Outcome.CLEAN, [])


def test_lost_growth_names_each_broker() -> None:
    with pytest.raises(PlanError, match="brokers=3: must be 4"):
        make_plan("lost-growth", settings={"brokers": "3"})
