"""Clients that others wrote, on three live brokers that fail: a short soak of each, and counterfeits that it catches.

The libraries run in processes of their own, as nodes of a trial: kafka-python leaves sockets open.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from thorough import usual

from rebalance_lab.checks import Finding, Outcome
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History, load
from rebalance_lab.history.views import events_of
from rebalance_lab.history.writes import PRODUCE, acknowledged, final_read, records_of
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import PlanError
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.world.outside.client import LIBRARIES

#: More than any fetch finds within its time.
LATE = str(1 << 20)

#: Above the usual limit of the tier, so that this long file is among the first (tests/conftest.py).
TIER = [pytest.mark.slow, pytest.mark.timeout(600)]


def soaked(
    store: Path, client: str, *, plant: str | None = None, **settings: str
) -> tuple[Mapping[str, Finding], History]:
    plan = make_plan("soak", world="processes", settings={"client": client, **settings}, plant=plant)
    result = api.run(plan, store)
    return result.findings, load(result.folder)


class TestSoak:
    """In a usual run each counterfeit meets one of the libraries."""

    pytestmark = TIER

    @pytest.mark.parametrize("client", LIBRARIES)
    def test_nothing_acknowledged_is_lost_repeated_or_out_of_order(self, tmp_path: Path, client: str) -> None:
        findings, history = soaked(tmp_path, client, seconds="30")
        wrong = {name: found.why for name, found in findings.items() if found.outcome is not Outcome.CLEAN}
        wrong.pop("isr_order", None)  # a statement that controllers since 0.10.1 contradict (E5b)
        assert wrong == {}
        faults = {event.of("fault") for event in events_of(history, Kind.FAULT_BIT)}
        assert faults & {"kill", "pause", "link-cut"}
        read = final_read(history)
        assert read is not None
        numbers = [number for _, number in records_of(read) if isinstance(number, int)]
        assert {event.of("number") for event in acknowledged(history)} <= set(numbers)
        assert numbers == sorted(set(numbers))
        assert len(numbers) > 500

    @pytest.mark.parametrize("client", usual(["kafka-python"], list(LIBRARIES)))
    @pytest.mark.parametrize(
        "plant", usual(["acks-before-replication"], ["acks-before-replication", "asks-for-one-ack"])
    )
    def test_records_acknowledged_before_the_followers_have_them_are_missed(
        self, tmp_path: Path, client: str, plant: str
    ) -> None:
        """The followers are half a second late, so each leader that dies has acknowledged what they lack."""
        settings = {"seconds": "30", "fault": "kill", "victims": "2", "fetch_min_bytes": LATE}
        findings, _ = soaked(tmp_path, client, plant=plant, **settings)
        assert findings["lost_write"].outcome is Outcome.VIOLATED

    @pytest.mark.parametrize("client", usual(["confluent-kafka"], list(LIBRARIES)))
    def test_what_unclean_elections_lose_is_counted_to_the_message(self, tmp_path: Path, client: str) -> None:
        findings, history = soaked(tmp_path, client, seconds="30", unclean="true", min_isr="1")
        read = final_read(history)
        assert read is not None
        there = set(records_of(read))
        numbers = {number for _, number in there}
        writes = acknowledged(history)
        lost = [
            each
            for each in writes
            if (each.of("offset"), each.of("number")) not in there
            and (each.of("offset") is not None or each.of("number") not in numbers)
        ]
        measures = findings["lost_write"].measures
        assert (measures["count"], measures["acknowledged"]) == (len(lost), len(writes))
        assert measures["count"] > 0


def test_every_write_has_one_outcome_at_most(tmp_path: Path) -> None:
    """In the control, where all are acknowledged."""
    plan = make_plan("soak", world="processes", control=True, settings={"seconds": "3"})
    history = load(api.run(plan, tmp_path).folder)
    begun = [event.n for event in events_of(history, Kind.INVOKED) if event.of("op") == PRODUCE]
    assert sorted(event.of("of") for event in acknowledged(history)) == begun  # type: ignore[type-var]
    assert len(begun) > 50


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"unclean": "true"}, "min_isr=2: must be 1 with unclean=true"),
        ({"flush_messages": "0"}, "flush_messages=0: must be 1"),
        ({"victims": "3"}, "victims=3: must be below brokers"),
        ({"client": "sarama"}, "client=sarama: must be one of confluent-kafka, kafka-python"),
    ],
)
def test_what_is_refused(settings: dict[str, str], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        make_plan("soak", world="processes", settings=settings)


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rebalance_lab.scenarios.soak.find_spec", lambda _module: None)
    with pytest.raises(PlanError, match="client=kafka-python is not installed: pip install kafka-python"):
        make_plan("soak", world="processes", settings={"client": "kafka-python"})
