"""Stand-ins for real members: what the simulator plays where a live trial has console consumers of 0.8.2.2."""

from __future__ import annotations

import msgspec
import pytest

from rebalance_lab.analysis.agreement.measures import Measured
from rebalance_lab.cli.agree_samples import measure_simulated, simulated_plan
from rebalance_lab.history.events import Kind
from rebalance_lab.history.views import events_of
from rebalance_lab.subjects.zk_group.lab import AS_PLANNED, MemberOptions, stand_in
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.trials.stages.simulated.stage import simulate
from rebalance_lab.wire.registration import read_registration

#: Reads, writes and notifications in the changes of live trials with real members (11 of each scenario; those in which
#: an attempt failed have more). A member with a white list asks for /brokers/topics once for each registration that it
#: reads, and six times when it starts (kafka.consumer.ZookeeperConsumerConnector, 0.8.2.2). Commits of offsets are not
#: among the writes.
REAL = {
    "crash": (44, 10, 2),
    "leave": (44, 10, 2),
    "cut": (162, 31, 9),
    "zombie": (162, 31, 9),
    "growth": (180, 34, 6),
    "rule": (135, 42, 3),
    "walkthrough": (348, 35, 12),
}


def real_plan(scenario: str, implementation: str = "real", seed: int = 1) -> Plan:
    return simulated_plan(
        make_plan(scenario, world="processes", rules="shipped", implementation=implementation, seed=seed)
    )


def costs(trial: Measured) -> tuple[int, ...]:
    by_key = {measure.key: value for measure, value in trial.values.items()}
    return tuple(by_key[f"changes.{name}"] for name in ("reads", "writes", "notifications"))


@pytest.mark.parametrize("scenario", REAL)
def test_stand_ins_ask_of_zookeeper_what_real_members_ask(scenario: str) -> None:
    assert costs(measure_simulated(real_plan(scenario))) == REAL[scenario]


def test_members_that_name_their_topic_ask_less() -> None:
    assert costs(measure_simulated(make_plan("zombie", rules="shipped"))) == (124, 31, 7)


def test_a_stand_in_is_one_of_ours_as_shipped_with_the_white_list_of_a_real_member() -> None:
    plan = real_plan("leave")
    for options, white_list in ((AS_PLANNED, "t1"), (MemberOptions(whitelist="t.*"), "t.*")):
        live = msgspec.structs.replace(plan, world="processes")
        spec = options.spec(live, "m1", connect="z", events="")
        assert (spec.rules, spec.real) == ("shipped", True)
        expected = msgspec.structs.replace(spec, real=False, streams={}, whitelist=white_list)
        assert options.spec(plan, "m1", connect="z", events="") == expected


@pytest.mark.parametrize("rules", ["described", "shipped"])
def test_members_of_ours_play_themselves(rules: str) -> None:
    spec = AS_PLANNED.spec(make_plan("leave", rules=rules), "m1", connect="z", events="")
    assert stand_in(spec) is spec


@pytest.mark.parametrize(
    "options",
    [
        MemberOptions(streams={"a": 1, "b": 1}),
        MemberOptions(streams={"a": 2}),
        MemberOptions(whitelist="a", filter_streams=2),
        MemberOptions(blacklist="a"),
    ],
)
def test_nobody_stands_in_for_what_no_real_member_can_be(options: MemberOptions) -> None:
    with pytest.raises(TrialError, match=r"^m1: a real member .* has one stream, of one topic or white list"):
        options.spec(real_plan("leave"), "m1", connect="z", events="")


def test_a_trial_shows_that_its_members_stand_in() -> None:
    history, _ = simulate(real_plan("leave"))
    started = events_of(history, Kind.MEMBER_STARTED)
    assert [(event.of("rules"), event.of("pattern")) for event in started] == [("shipped", "white_list")] * 3
    ids = [event for event in events_of(history, Kind.CREATED) if "/ids/g1_" in str(event.of("path"))]
    registered = [read_registration(str(event.of("data")).encode()) for event in ids]
    assert [(each.pattern, each.subscription) for each in registered] == [("white_list", (("t1", 1),))] * 3
    assert not [name for name in history.trial.versions if "kafka" in name], "no real Kafka took part"


def test_of_a_mixed_group_the_real_members_are_stood_in_for() -> None:
    for seed, patterns in ((1, ["static", "white_list", "static"]), (2, ["white_list", "static", "white_list"])):
        history, _ = simulate(real_plan("leave", "mixed", seed))
        assert [event.of("pattern") for event in events_of(history, Kind.MEMBER_STARTED)] == patterns


def test_the_script_is_that_of_real_members() -> None:
    """A console consumer without a group makes up one: group-scope starts such members only where all are ours."""
    phases = {
        whose: [event.of("name") for event in events_of(simulate(real_plan("group-scope", whose))[0], Kind.PHASE)]
        for whose in ("ours", "real")
    }
    assert set(phases["ours"]) - set(phases["real"]) == {"two without a group come"}


def test_a_failing_trial_of_stand_ins_is_told_with_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """No command runs it: `run --world simulated --members real` is refused."""
    monkeypatch.setattr("rebalance_lab.subjects.zk_group.lab.stand_in", lambda _spec: 1 / 0)
    plan = real_plan("leave", seed=7)
    with pytest.raises(ZeroDivisionError) as failed:
        simulate(plan)
    assert failed.value.__notes__[-1] == f"again: {plan}"
