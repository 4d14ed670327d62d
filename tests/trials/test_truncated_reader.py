"""A reader whose log is truncated below its position, and written anew."""

from __future__ import annotations

import pytest
from as_expected import played

from rebalance_lab.checks import Finding, Outcome, judge
from rebalance_lab.history.files import History
from rebalance_lab.history.reads import MOVED
from rebalance_lab.history.views import events_of
from rebalance_lab.trials.plan import PlanError
from rebalance_lab.trials.scenario import make_plan


def run(seed: int = 1, *, name: str = "truncated-reader", control: bool = False, **settings: str) -> History:
    """A trial in which everything comes out as expected."""
    history, _ = played(make_plan(name, seed=seed, control=control, settings=settings))
    return history


def found(history: History, check: str) -> Finding:
    return judge(history)[check]


def moves(history: History) -> list[object]:
    return [event.of("cause") for event in events_of(history, MOVED)]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_reader_without_epochs_reads_on_as_if_nothing_had_happened(seed: int) -> None:
    history = run(seed)
    assert moves(history) == []
    assert found(history, "poll_skip").measures["count"] >= 60
    assert found(history, "changed_read").measures["count"] >= 60


@pytest.mark.parametrize("wakes", ["late", "early"])
def test_one_with_epochs_goes_back_once_and_reads_all_that_is_there(wakes: str) -> None:
    history = run(epochs="true", wakes=wakes)
    assert moves(history) == ["truncated"]
    assert found(history, "nonmonotonic_poll").measures["again"] == 0
    assert found(history, "changed_read").outcome is Outcome.VIOLATED, "it had read what was lost"


@pytest.mark.parametrize(("reset", "outcome"), [("latest", Outcome.VIOLATED), ("earliest", Outcome.CLEAN)])
def test_a_position_out_of_range_is_set_to_an_end_of_the_log(reset: str, outcome: Outcome) -> None:
    history = run(wakes="early", reset=reset)
    assert moves(history) == ["out-of-range"]
    assert found(history, "poll_skip").outcome is outcome
    again = found(history, "nonmonotonic_poll").measures["again"]
    assert (again > 0) == (reset == "earliest")


def test_where_the_leader_is_waited_for_nothing_changes() -> None:
    history = run(unclean="false")
    assert moves(history) == []
    assert found(history, "changed_read").outcome is Outcome.CLEAN


def test_the_control() -> None:
    outcomes = {finding.outcome for finding in judge(run(control=True)).values()}
    assert outcomes == {Outcome.CLEAN}


def test_what_is_read_while_brokers_fail_stays() -> None:
    history = run(name="committed-data", reader="true", fault="kill", victims="2")
    assert found(history, "changed_read").outcome is Outcome.CLEAN
    assert found(history, "poll_skip").measures["read"] >= 200


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"brokers": "1"}, "brokers=1: must be at least 2"),
        ({"min_isr": "2"}, "min_isr=2: must be 1"),
        ({"wakes": "early", "unclean": "false"}, "wakes=early: needs unclean=true"),
        ({"messages": "180"}, "messages=180: must be 186 at least"),
    ],
)
def test_settings_with_which_nothing_would_happen(settings: dict[str, str], why: str) -> None:
    with pytest.raises(PlanError, match=why):
        make_plan("truncated-reader", settings=settings)
