"""Plans with real members or brokers: what they can ask for, and who is what."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from rebalance_lab.analysis.results import of_trial
from rebalance_lab.broker.settings import kafka_properties
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import read_trial
from rebalance_lab.report.story import rules_in_words
from rebalance_lab.subjects.replication.subject import ReaderOptions, ReplicaOptions
from rebalance_lab.subjects.zk_group.lab import MemberOptions
from rebalance_lab.subjects.zk_group.real import MembersLists
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP
from rebalance_lab.trials.api import expectation
from rebalance_lab.trials.plan import PlanError, run_command
from rebalance_lab.trials.record import trial_record
from rebalance_lab.trials.scenario import make_plan, plan_like, scenario, scenario_names


def test_mixed_members_are_ours_and_real_in_turn_and_the_seed_says_who_is_first() -> None:
    kinds = {}
    for seed in (1, 2):
        plan = make_plan("drill", world="processes", implementation="mixed", seed=seed)
        assert plan.has_real_nodes
        assert plan.rules == "shipped"
        kinds[seed] = [plan.is_real(f"m{number}") for number in (1, 2, 3, 10)]
    assert kinds == {1: [False, True, False, True], 2: [True, False, True, False]}


def test_one_member_may_be_real_by_its_options() -> None:
    plan = make_plan("drill", world="processes", implementation="mixed")
    spec = MemberOptions(real=True).spec(plan, "m1", connect="here", events="")
    assert spec.real
    assert not MemberOptions().spec(plan, "m1", connect="here", events="").real


@pytest.mark.parametrize("implementation", ["real", "mixed"])
@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"world": "simulated"}, "--world processes"),
        ({"plant": "ignore-watch"}, "plant ignore-watch is a bug of our members"),
        ({"settings": {"streams": "2"}}, "streams=2"),
        ({"settings": {"brokers": "3"}}, "brokers=3"),
        ({"settings": {"ops": "counts"}}, "ops=all"),
        ({"settings": {"assignor": "ceil"}}, "range and roundrobin"),
    ],
)
def test_what_real_members_cannot_do_is_said_before_anything_starts(
    implementation: str, more: Mapping[str, object], told: str
) -> None:
    with pytest.raises(PlanError, match=told):
        make_plan("zombie", implementation=implementation, **{"world": "processes", **more})  # type: ignore[arg-type]


def test_real_members_follow_the_shipped_rules() -> None:
    assert make_plan("zombie").rules == "described"
    for implementation in ("real", "mixed"):
        for rules in (None, "shipped"):
            plan = make_plan("zombie", world="processes", rules=rules, implementation=implementation)
            assert (plan.rules, plan.implementation, plan.variant) == ("shipped", implementation, implementation)
        with pytest.raises(PlanError, match="--rules described is not what real members follow; leave it out"):
            make_plan("zombie", world="processes", rules="described", implementation=implementation)


def test_only_a_subject_with_real_nodes_takes_them() -> None:
    plain = dataclasses.replace(ZK_GROUP, real=None)
    with pytest.raises(PlanError, match="there is no kind of nodes real; there are: ours"):
        plain.rules_with("real", None)


def test_real_brokers_are_those_of_kafka_and_never_mixed_with_ours() -> None:
    plan = make_plan("controller-race", world="processes", implementation="real")
    assert (plan.rules, plan.variant) == ("kip-320", "real")
    assert "--brokers real" in run_command(plan)
    trial = trial_record(plan, plan.trial_id, "", boot_ids=(), wall_offset_us=0)
    assert rules_in_words(trial) == "brokers of Kafka 3.9.1"
    assert {name: version for name, version in trial.versions.items() if name.startswith("kafka")} == {
        "kafka broker": "3.9.1"
    }
    with pytest.raises(PlanError, match="there is no kind of brokers mixed"):
        make_plan("controller-race", world="processes", implementation="mixed")


@pytest.mark.parametrize(
    ("name", "more", "told"),
    [
        ("controller-race", {"world": "simulated"}, "--world processes"),
        ("controller-race", {"plant": "elects-unclean"}, "plant elects-unclean is a bug of our brokers"),
        ("controller-race", {"rules": "high-watermark"}, "--rules high-watermark is not what real brokers follow"),
        ("controller-race", {"settings": {"isr_writer": "leader"}}, "isr_writer=leader"),
        ("isr-election", {"settings": {"selection": "0.8.2"}}, "selection=0.8.2"),
        ("controller-failover", {"settings": {"watch_again": "false"}}, "watch_again=false"),
        ("committed-data", {}, "fault=any"),
        ("committed-data", {"settings": {"fault": "power-loss"}}, "fault=power-loss"),
        ("missed-bounce", {}, "broker_epochs=false"),
        ("idle-controller", {}, "keeps_reign=false"),
        ("idle-controller", {"settings": {"cause": "lost-reply"}}, "cause=lost-reply"),
        ("zombie-controller", {"settings": {"moment": "order"}}, "moment=order"),
        ("zombie-controller", {"settings": {"form": "1.1"}}, "form=1.1"),
        ("zombie-controller", {"settings": {"fences_writes": "false"}}, "fences_writes=false"),
        ("lost-growth", {}, "cannot be played with real brokers: they cannot be halted"),
        ("isr-flap", {"settings": {"caught_up": "true"}}, "caught_up=true: Kafka 3.9.1 does not have this cure"),
        (
            "isr-flap",
            {"settings": {"commits_under_min_isr": "true"}},
            "commits_under_min_isr=true: Kafka 3.9.1 does not",
        ),
        ("message-lag", {}, "lag_messages=4: Kafka 3.9.1 does not have this setting"),
        (
            "all-replicas-down",
            {"settings": {"min_isr": "1", "lag_ms": "499"}},
            "lag_ms=499: must be at least 500 with real brokers, their replica.fetch.wait.max.ms",
        ),
        ("truncation", {}, "scenario truncation cannot be played with real brokers: its rule sets"),
        ("frozen-isr", {}, "cannot be played with real brokers: it cuts"),
        ("isr-per-partition", {}, "cannot be played with real brokers: it cuts"),
        ("leader-start", {}, "cannot be played with real brokers: it cuts"),
        ("last-replica-standing", {}, "cannot be played with real brokers: it needs a loss"),
        ("elected-again", {}, "isr_writer=leader"),
        ("newer-epoch", {}, "cannot be played with real brokers: those of 3.9.1 have the cure"),
        ("former-life", {}, "cannot be played with real brokers: it slows"),
        ("early-order", {}, "cannot be played with real brokers: those of 3.9.1 have the cure"),
        ("soak", {}, "cannot be played with real brokers: its faults"),
    ],
)
def test_what_real_brokers_cannot_do_is_said_before_anything_starts(
    name: str, more: Mapping[str, object], told: str
) -> None:
    with pytest.raises(PlanError, match=told):
        make_plan(name, implementation="real", **{"world": "processes", **more})  # type: ignore[arg-type]


def test_the_option_that_a_plan_names_is_that_of_its_subject() -> None:
    kinds = {}
    for name in scenario_names():
        real = scenario(name).subject.real
        if real is not None:
            kinds[name] = (make_plan(name, world=scenario(name).worlds[-1]).kind_of_nodes, real.name)
    assert len(kinds) > 20
    assert {name: each for name, each in kinds.items() if each[0] != each[1]} == {}


def test_a_broker_of_kafka_gets_the_settings_of_the_trial() -> None:
    settings = {"min_isr": "1", "unclean": "true", "lag_ms": "500", "flush_messages": "1", "segment_bytes": "4096"}
    plan = make_plan("all-replicas-down", world="processes", implementation="real", settings=settings)
    spec = ReplicaOptions(port=9, more={}).spec(plan, "b2", connect="here", events="/trial/b2.jsonl")
    properties = kafka_properties(spec.settings.log_defaults, spec.settings.config, spec.settings)
    assert properties == {
        "auto.leader.rebalance.enable": "false",
        "broker.id": "2",
        "controlled.shutdown.enable": "false",
        "log.flush.interval.messages": "1",
        "log.segment.bytes": "4096",
        "replica.lag.time.max.ms": "500",
        "unclean.leader.election.enable": "true",
        "zookeeper.connect": "here",
        "zookeeper.session.timeout.ms": "2000",
    }
    reader = ReaderOptions(brokers=(1, 2)).spec(plan, "r1", connect="here", events="/trial/r1.jsonl")
    assert reader.folders == {1: "/trial/b1.files", 2: str(spec.files)}


@pytest.mark.parametrize("implementation", ["real", "mixed"])
def test_a_trial_of_schema_1_had_both_settings_in_its_rules(tmp_path: Path, implementation: str) -> None:
    plan = make_plan("zombie", world="processes", implementation=implementation, seed=2, control=True)
    now = trial_record(plan, plan.trial_id, "", boot_ids=(), wall_offset_us=0)
    fields = {**msgspec.to_builtins(now), "rules": implementation, "schema_version": 1}
    del fields["implementation"]
    sealed = hashlib.sha256(msgspec.json.encode(fields, order="deterministic")).hexdigest()
    (tmp_path / "trial.json").write_bytes(msgspec.json.encode({**fields, "trial_sha256": sealed}))
    then = read_trial(tmp_path)
    assert msgspec.structs.replace(then, schema_version=now.schema_version) == now
    assert plan_like(then) == msgspec.structs.replace(plan, changed=plan_like(then).changed)
    assert of_trial(then)["rules"] == implementation
    assert expectation(then) == expectation(now)


def test_a_list_of_members_is_as_old_as_its_last_change_that_the_server_had_seen() -> None:
    lists = MembersLists()

    def registry(kind: Kind, path: str, zxid: int, group: str | None = "g1") -> None:
        lists.feed(Event("zookeeper", zxid, zxid, Layer.REGISTRY, kind, group=group, zxid=zxid, detail={"path": path}))

    registry(Kind.CREATED, "/consumers/g1/ids", 3)
    registry(Kind.CREATED, "/consumers/g1/ids/g1_a", 4)
    registry(Kind.CREATED, "/consumers/g1/owners/t1/0", 5)
    registry(Kind.CREATED, "/consumers/g2/ids/g2_a", 6, "g2")
    registry(Kind.DELETED, "/consumers/g1/ids/g1_a", 8)
    registry(Kind.CREATED, "/brokers/ids/0", 9, None)
    assert [lists.zxid("g1", reached) for reached in (2, 3, 5, 7, 8, 20)] == [-1, 3, 4, 4, 8, 8]
    assert lists.zxid("g2", 20) == 6
    assert lists.zxid("g3", 20) == -1
