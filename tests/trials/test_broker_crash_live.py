"""A hundred crashes of a live broker in one trial: killed, and killed with a loss of power."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebalance_lab.checks import Outcome
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import load
from rebalance_lab.history.views import events_of
from rebalance_lab.trials import api
from rebalance_lab.trials.scenario import make_plan

pytestmark = [pytest.mark.slow, pytest.mark.timeout(560)]

CRASHES = 100

#: Short sessions, because the next life waits for the end of the last one's.
SETTINGS = {
    "kills": str(CRASHES),
    "messages": "5000",
    "pause_us": "5000",
    "session_timeout_ms": "600",
    "tick_ms": "200",
}

POWER = {"power_loss": "true", "flush_messages": "1"}


@pytest.mark.parametrize(("more", "fault", "least"), [({}, "kill", CRASHES), (POWER, "power-loss", CRASHES // 2)])
def test_what_was_acknowledged_survives(tmp_path: Path, more: dict[str, str], fault: str, least: int) -> None:
    """With power losses the broker syncs each record. A loss that finds all synced takes nothing, and the check has no
    proof of it. Between two crashes the broker must have recovered, as the client goes on writing."""
    ended = api.run(make_plan("broker-crash", world="processes", settings=SETTINGS | more), tmp_path)
    finding = ended.findings["lost_write"]
    assert (finding.measures["count"], finding.measures["acknowledged"]) == (0, 5000)
    history = load(ended.folder)
    effective = [event for event in events_of(history, Kind.FAULT_BIT) if event.of("fault") == fault]
    assert least <= len(effective) <= CRASHES
    if len(effective) < CRASHES:
        assert finding.outcome is Outcome.UNKNOWN
        assert all("has no proof that it took effect" in each for each in finding.why.split("; "))
    else:
        assert finding.outcome is Outcome.CLEAN, finding.why
    lives = {event.session for event in events_of(history, Kind.CONNECTED) if event.actor == "b1"}
    assert len(lives) > CRASHES
