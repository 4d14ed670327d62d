"""What a sweep says when a trial in another process fails, or the process is ended."""

from __future__ import annotations

import os
import signal

import pytest

from rebalance_lab.trials import api
from rebalance_lab.trials.plan import Plan
from rebalance_lab.world.errors import ConnectionLoss

PLAN = api.make_plan("leave", seed=7)


def lose_the_connection(plan: Plan) -> int:
    error = ConnectionLoss("get", "/controller")
    error.add_note(f"again: seed {plan.seed}")
    raise error


def refuse(plan: Plan) -> int:
    raise LookupError(plan.seed)


def end_by_force(_plan: Plan) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def test_an_error_that_cannot_be_sent_between_processes_keeps_its_text() -> None:
    """Its constructor takes other arguments than it keeps, so that the waiting process cannot build it again."""
    with pytest.raises(api.TrialFailed, match="ConnectionLoss: get /controller") as failed:
        list(api.each_of([PLAN], lose_the_connection, 1))
    assert failed.value.__notes__ == ["again: seed 7"]


def test_any_other_error_comes_as_it_is() -> None:
    with pytest.raises(LookupError, match="7"):
        list(api.each_of([PLAN], refuse, 1))


def test_a_process_that_is_killed_is_reported_with_the_trials_it_had() -> None:
    plans = [api.make_plan("leave", world="processes", seed=seed) for seed in (1, 2, 3)]
    with pytest.raises(api.WorkerKilled, match=r"ended from outside.*, leave-processes-\S+; run the command again"):
        list(api.each_of(plans, end_by_force, 1))
