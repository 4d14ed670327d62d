"""Many crashes of a live broker in one trial: killed, and killed with a loss of power."""

from __future__ import annotations

from pathlib import Path

import pytest
from thorough import usual

from rebalance_lab.broker.log.names import LOG
from rebalance_lab.checks import Outcome
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import load
from rebalance_lab.history.views import events_of
from rebalance_lab.trials import api
from rebalance_lab.trials.scenario import make_plan

pytestmark = [pytest.mark.slow, pytest.mark.timeout(560)]

CRASHES = usual(20, 100)
MESSAGES = 50 * CRASHES

#: Short sessions, because the next life waits for the end of the last one's.
SETTINGS = {
    "kills": str(CRASHES),
    "messages": str(MESSAGES),
    "pause_us": "5000",
    "session_timeout_ms": "600",
    "tick_ms": "200",
}

POWER = {"power_loss": "true", "flush_messages": "1"}


def lost_by(event: Event) -> dict[str, int]:
    """How many bytes a loss of power took from each file."""
    lost = event.of("bytes_lost")
    assert isinstance(lost, dict)
    return lost


@pytest.mark.parametrize(("more", "fault", "least"), [({}, "kill", CRASHES), (POWER, "power-loss", CRASHES * 9 // 10)])
def test_what_was_acknowledged_survives(tmp_path: Path, more: dict[str, str], fault: str, least: int) -> None:
    """With power losses the broker syncs each record. A loss that takes no byte of a log is no proof; few do not,
    because the client also writes what is never synced. Between two crashes the broker must have recovered, as the
    client goes on writing."""
    ended = api.run(make_plan("broker-crash", world="processes", settings=SETTINGS | more), tmp_path)
    finding = ended.findings["lost_write"]
    assert (finding.measures["count"], finding.measures["acknowledged"]) == (0, MESSAGES)
    history = load(ended.folder)
    effective = [event for event in events_of(history, Kind.FAULT_BIT) if event.of("fault") == fault]
    assert least <= len(effective) <= CRASHES
    if len(effective) < CRASHES:
        assert finding.outcome is Outcome.UNKNOWN
        assert all("has no proof that it took effect" in each for each in finding.why.split("; "))
    else:
        assert finding.outcome is Outcome.CLEAN, finding.why
    if fault == "power-loss":
        assert all(any(path.endswith(LOG) for path in lost_by(event)) for event in effective)
    lives = {event.session for event in events_of(history, Kind.CONNECTED) if event.actor == "b1"}
    assert len(lives) > CRASHES


def test_a_live_disk_takes_acknowledged_records_that_were_not_synced(tmp_path: Path) -> None:
    """The control of the test above: the same losses of power, without a sync of each record."""
    few = {**SETTINGS, "kills": "5", "messages": "500", "power_loss": "true", "flush_messages": "0"}
    ended = api.run(make_plan("broker-crash", world="processes", settings=few), tmp_path)
    finding = ended.findings["lost_write"]
    assert finding.outcome is Outcome.VIOLATED
    assert finding.measures["count"] > 0
    bitten = [each for each in events_of(load(ended.folder), Kind.FAULT_BIT) if each.of("fault") == "power-loss"]
    assert any(path.startswith("t1-0/") and path.endswith(LOG) for each in bitten for path in lost_by(each))
