"""The scenario `mixed-versions`: brokers of two releases, and a duty of the controller (claim E4)."""

from __future__ import annotations

import pytest

from rebalance_lab.checks import Finding, Outcome, judge
from rebalance_lab.faults.duty import Duty
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.scenarios.mixed_versions import DUTIES, duty_of
from rebalance_lab.trials.plan import PlanError
from rebalance_lab.trials.scenario import make_plan, scenario
from rebalance_lab.trials.stages.simulated.stage import simulate

#: What each duty lacks if the old broker hears of nothing.
LACKS = {
    Duty.CREATE: "create-topic: t2-0 has the ISR [1, 2], and [1, 2, 3] should be in sync",
    Duty.DELETE: "delete-topic: the request to delete t2 is still there",
    Duty.GROW: "add-partitions: t2-1 has the ISR [2, 1], and [1, 2, 3] should be in sync",
}


def play(*, control: bool = False, **settings: str) -> tuple[History, dict[str, Finding]]:
    """The trial and its findings, which are as expected."""
    plan = make_plan("mixed-versions", control=control, settings=settings)
    history, _ = simulate(plan)
    found = judge(history)
    expected = scenario("mixed-versions").expects(plan)
    odd = {name: each.why for name, each in found.items() if expected[name] not in (None, each.outcome)}
    assert odd == {}
    return history, found


def refused(history: History) -> set[str]:
    """Why brokers have closed connections."""
    said = [each for each in history.events if each.of("event") == "connection closed"]
    return {f"{each.member}: {each.of('why')}" for each in said}


def versions(history: History) -> dict[str | None, tuple[object, object]]:
    """What each broker says of its release and its protocol when it registers."""
    said = [each for each in history.events if each.of("event") == "registered"]
    return {each.member: (each.of("release"), each.of("protocol")) for each in said}


@pytest.mark.parametrize("duty", DUTIES)
def test_a_duty_is_not_done_at_a_broker_that_does_not_know_the_protocol(duty: Duty) -> None:
    history, found = play(duty=duty)
    assert found["duty_target"].outcome is Outcome.VIOLATED
    assert found["duty_target"].why == LACKS[duty]
    assert "b3: UPDATE_METADATA version 6 is not served here, 0 to 4 are" in refused(history)
    assert all(each.startswith("b3: ") for each in refused(history))
    assert versions(history) == {"b1": (None, None), "b2": (None, None), "b3": ("1.1", "1.1")}


@pytest.mark.parametrize("duty", DUTIES)
def test_in_a_protocol_that_all_know_it_is_done(duty: Duty) -> None:
    history, found = play(duty=duty, protocol="1.1")
    assert found["duty_target"].outcome is Outcome.CLEAN
    assert refused(history) == set()
    assert versions(history) == {"b1": (None, "1.1"), "b2": (None, "1.1"), "b3": ("1.1", "1.1")}


def test_in_the_protocol_1_1_leaders_write_their_isrs() -> None:
    """No check takes that for the write of a controller that has no right to."""
    history, _ = play(duty="create-topic", protocol="1.1", lag_ms="300")
    (by_leader, *_) = [
        each
        for each in history.events
        if each.kind is Kind.INVOKED and each.of("op") == "set" and str(each.of("path")).endswith("/state")
    ]
    assert by_leader.actor in ("b1", "b2", "b3")


@pytest.mark.parametrize(("protocol", "said"), [("2.7", None), ("1.1", "1.1")])
@pytest.mark.parametrize("duty", DUTIES)
def test_so_it_is_by_brokers_of_one_release(duty: Duty, protocol: str, said: str | None) -> None:
    """They ask in the protocol that the trial records: checks go by it."""
    history, found = play(duty=duty, protocol=protocol, control=True)
    assert found["duty_target"].outcome is Outcome.CLEAN
    assert refused(history) == set()
    assert versions(history) == dict.fromkeys(("b1", "b2", "b3"), (None, said))


def test_the_seed_draws_the_duty() -> None:
    plans = [make_plan("mixed-versions", seed=seed) for seed in range(1, 40)]
    assert {duty_of(each) for each in plans} == set(DUTIES)


@pytest.mark.parametrize(
    ("rules", "settings", "why"),
    [
        (None, {"brokers": "4"}, "brokers=4: must be 3; the last is of the old release"),
        ("kip-101", {"protocol": "1.1"}, "rules=kip-101, isr_writer=controller: leave both out; the protocol 1.1"),
        (None, {"protocol": "1.1", "isr_writer": "leader"}, "rules=kip-320, isr_writer=leader: leave both out"),
        (None, {"protocol": "0.8"}, "protocol"),
    ],
)
def test_what_cannot_be_played(rules: str | None, settings: dict[str, str], why: str) -> None:
    with pytest.raises(PlanError, match=why):
        make_plan("mixed-versions", rules=rules, settings=settings)
