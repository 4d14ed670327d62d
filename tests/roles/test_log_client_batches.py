"""The client that writes several numbers in one request: each number has events of its own."""

from __future__ import annotations

import pytest

from rebalance_lab.checks import Outcome, judge
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import APPENDED
from rebalance_lab.history.views import events_of
from rebalance_lab.history.writes import PRODUCE
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate

BURST, MESSAGES = 5, 42


def written(**settings: str) -> History:
    plan = make_plan("message-lag", settings={"burst": str(BURST), "messages": str(MESSAGES), **settings})
    return simulate(plan)[0]


def produce_events(history: History, kind: Kind) -> list[Event]:
    return [each for each in events_of(history, kind) if each.of("op") == PRODUCE]


def test_a_request_carries_so_many_numbers_and_the_last_one_the_rest() -> None:
    history = written(lag_messages="0")
    sizes = [int(str(each.of("last"))) - int(str(each.of("first"))) + 1 for each in events_of(history, APPENDED)]
    assert sizes == [5, 5, 5, 5, 5, 5, 5, 5, 2]


def test_each_number_has_its_offset() -> None:
    history = written(lag_messages="0")
    answers = produce_events(history, Kind.OK)
    assert [(each.of("number"), each.of("offset")) for each in answers] == [(n + 1, n) for n in range(MESSAGES)]
    asked = {each.n: each.of("number") for each in produce_events(history, Kind.INVOKED)}
    assert all(asked[int(str(each.of("of")))] == each.of("number") for each in answers)


@pytest.mark.parametrize("seed", range(1, 4))
def test_the_numbers_of_a_request_are_refused_together_and_sent_again(seed: int) -> None:
    settings = {"messages": "500", "idempotent": "true"}
    history, _ = simulate(make_plan("message-lag", seed=seed, settings=settings))
    refused = [int(str(each.of("number"))) for each in produce_events(history, Kind.FAILED_OP)]
    assert refused
    groups = [refused[at : at + BURST] for at in range(0, len(refused), BURST)]
    assert all(group == list(range(group[0], group[0] + BURST)) for group in groups)
    found = judge(history)
    for check in ("lost_write", "duplicate", "reordered", "aborted_read"):
        assert found[check].outcome is Outcome.CLEAN


def test_an_idempotent_producer_gives_each_record_a_sequence_number() -> None:
    asked = produce_events(written(lag_messages="0", idempotent="true"), Kind.INVOKED)
    sequences = [each.of("sequence") for each in asked]
    assert [each[2] for each in sequences if isinstance(each, list | tuple)] == list(range(MESSAGES))
