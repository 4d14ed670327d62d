"""What the runner's own session reads of a group: at each rest, and when all have left."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest

from rebalance_lab.checks import CHECKS, Outcome
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.transactions import RegistryTracker, Transaction
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate

_MARKS = (Kind.PHASE, Kind.OBSERVED, Kind.REST_REACHED, Kind.TRIAL_ENDED)


def run(scenario: str, **settings: str) -> History:
    history, _ = simulate(make_plan(scenario, seed=1, settings=settings))
    return history


def observed(history: History, part: str) -> list[Event]:
    return [event for event in history.events if event.kind is Kind.OBSERVED and f"/{part}" in str(event.of("path"))]


@pytest.mark.parametrize("servers", ["1", "3"])
def test_owners_are_seen_with_the_session_and_data_of_their_creation(servers: str) -> None:
    history = run("crash", servers=servers)
    created = {
        (event.of("path"), event.session): event.of("data") for event in history.events if event.kind is Kind.CREATED
    }
    looks = observed(history, "owners/")
    assert len(looks) >= 3
    seen = 0
    for look in looks:
        owners, sessions, zxid = look.of("owners"), look.of("sessions"), look.of("owners_zxid")
        assert isinstance(owners, dict)
        assert isinstance(sessions, dict)
        assert isinstance(zxid, int)
        assert look.zxid is not None
        assert zxid >= look.zxid
        for partition, thread in owners.items():
            assert created[f"{look.of('path')}/{partition}", sessions[partition]] == thread
            seen += 1
    assert seen > 0


def test_the_last_look_is_taken_when_all_have_left() -> None:
    history = run("crash")
    runner = [event for event in history.events if event.actor == "runner" and event.kind in _MARKS]
    assert [event.kind for event in runner[-4:]] == [Kind.PHASE, Kind.OBSERVED, Kind.OBSERVED, Kind.TRIAL_ENDED]
    assert runner[-4].of("name") == "closing"
    assert [event.of("children") for event in runner[-3:-1]] == [[], []]  # ids, and owners of the one topic


def test_a_log_that_does_not_list_what_goes_needs_these_looks() -> None:
    """A server before ZooKeeper 3.6: its log is enough only together with what the runner saw."""
    feed = RegistryTracker.feed

    def blind(tracker: RegistryTracker, transaction: Transaction) -> list[Event]:
        return feed(tracker, replace(transaction, removed=None))

    with patch.object(RegistryTracker, "feed", blind):
        history = run("crash")
    check = CHECKS["registration"]
    finding = check.judge(history)
    assert (finding.outcome, finding.measures["longest_us"]) == (Outcome.CLEAN, 0)
    assert finding.measures["sampled"] > 0
    events = list(history.events)
    last = max(index for index, event in enumerate(events) if event.kind is Kind.OBSERVED)
    assert check.judge(History(history.trial, (*events[:last], *events[last + 1 :]))).outcome is Outcome.UNKNOWN
