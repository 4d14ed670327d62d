"""Clients, and brokers that start, go on with another ZooKeeper session if theirs expires: it holds nothing of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rebalance_lab.checks import Outcome, judge
from rebalance_lab.faults.expire import expire
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.restart import restart
from rebalance_lab.history.events import Kind
from rebalance_lab.history.views import events_of
from rebalance_lab.history.writes import REPORTED
from rebalance_lab.scenarios import broker_crash
from rebalance_lab.subjects.broker_log.subject import BrokerOptions, ClientOptions, LogLab
from rebalance_lab.trials import scenario
from rebalance_lab.trials.stages.simulated.stage import simulate


async def expired_client(lab: LogLab) -> None:
    """The client's session expires, and a crash of the broker makes it look the broker up again."""
    await lab.connected()
    broker = lab.start("b1", BrokerOptions())
    await lab.registered(1)
    client = lab.start("c1", ClientOptions())
    await lab.written(10)
    await expire(lab, client)
    await kill(lab, broker)
    await lab.unregistered(broker)
    await restart(lab, broker)
    await lab.all_read()
    await lab.recover()


async def expired_start(lab: LogLab) -> None:
    """The broker's session expires as soon as it has begun."""
    await lab.connected()
    broker = lab.start("b1", BrokerOptions())
    await lab.until(lambda: broker.started, "the broker's session")
    await expire(lab, broker)
    lab.start("c1", ClientOptions())
    await lab.all_read()
    await lab.recover()


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario.scenario_names()  # the lab's own are there before ours
    monkeypatch.setattr(scenario, "_SCENARIOS", dict(scenario._SCENARIOS))
    for name, script in (("expired-client", expired_client), ("expired-start", expired_start)):
        scenario.register(replace(broker_crash.SCENARIO, name=name, script=script))


def test_a_client_opens_another_session_once_its_own_has_expired() -> None:
    history = simulate(scenario.make_plan("expired-client", settings={"messages": "50"}))[0]
    found = judge(history)["lost_write"]
    assert (found.outcome, found.measures["acknowledged"]) == (Outcome.CLEAN, 50)
    sessions = {event.session for event in events_of(history, Kind.CONNECTED) if event.actor == "c1"}
    assert len(sessions) == 2


def test_a_broker_opens_another_session_if_its_first_expires_before_it_has_started() -> None:
    history = simulate(scenario.make_plan("expired-start", settings={"messages": "50"}))[0]
    assert judge(history)["lost_write"].measures["acknowledged"] == 50
    told = [event.of("event") for event in events_of(history, REPORTED) if event.actor == "b1"]
    assert told.index("session lost") < told.index("registered")
    assert told.count("registered") == 1
