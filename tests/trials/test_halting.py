"""A replay that stops at one event: where it stops, and what its tasks are said to wait for."""

from __future__ import annotations

import msgspec
import pytest

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.kernel import Kernel
from rebalance_lab.trials.halting import halt_at
from rebalance_lab.trials.lab import TrialError
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate

PLAN = make_plan("zombie", settings={"members": "2", "partitions": "2"})


@pytest.fixture(scope="module")
def history() -> History:
    return simulate(PLAN)[0]


def number_of(history: History, kind: Kind, actor: str) -> int:
    return 1 + next(n for n, event in enumerate(history.events) if (event.kind, event.actor) == (kind, actor))


def test_every_event_is_told_once_when_it_is_recorded(history: History) -> None:
    told: list[Event] = []

    def on_event(kernel: Kernel, event: Event) -> None:
        assert event.at_us <= kernel.now_us()
        told.append(event)

    assert simulate(PLAN, on_event)[0].events == history.events
    assert sorted(told, key=lambda event: event.id) == sorted(history.events, key=lambda event: event.id)


def test_it_stops_at_every_kind_of_event(history: History) -> None:
    first = {event.kind: number for number, event in reversed(list(enumerate(history.events, 1)))}
    for number in first.values():
        halt = halt_at(PLAN, history, number)
        assert (halt.number, halt.event) == (number, history.events[number - 1])
        assert halt.tasks[0][0] == "scenario zombie"


def test_the_task_that_recorded_it_runs_now(history: History) -> None:
    halt = halt_at(PLAN, history, number_of(history, Kind.ATTEMPT_BEGAN, "m2"))
    (running,) = [name for name, state in halt.tasks if state == "runs now"]
    assert running.startswith("m2/")


def test_a_paused_member_is_said_to_be_paused(history: History) -> None:
    tasks = dict(halt_at(PLAN, history, number_of(history, Kind.FAULT_BIT, "runner")).tasks)
    assert tasks["scenario zombie"] == "runs now"
    assert tasks["m1/member m1"].startswith("paused, waits for first of flag close m1")
    assert tasks["m2/member m2"].startswith("waits for first of flag close m2")


@pytest.mark.parametrize("number", [0, -1, 1_000_000])
def test_there_must_be_such_an_event(history: History, number: int) -> None:
    with pytest.raises(TrialError, match=f"has events 1 to {len(history.events)}; there is no event {number}"):
        halt_at(PLAN, history, number)


def test_another_history_than_the_stored_one_is_told(history: History) -> None:
    changed = msgspec.structs.replace(history.events[49], at_us=history.events[49].at_us + 1)
    stored = History(history.trial, (*history.events[:49], changed, *history.events[50:]))
    with pytest.raises(TrialError, match=f"left the stored history at event {changed.n} of {changed.actor}"):
        halt_at(PLAN, stored, 100)
    shorter = History(history.trial, (*history.events, msgspec.structs.replace(history.events[-1], n=9_999)))
    with pytest.raises(TrialError, match="left the stored history at its end"):
        halt_at(PLAN, shorter, len(shorter.events))


def test_a_live_trial_cannot_be_stopped(history: History) -> None:
    with pytest.raises(TrialError, match=r"no seed chose its schedule.*SIGUSR1"):
        halt_at(msgspec.structs.replace(PLAN, world="processes"), history, 1)
