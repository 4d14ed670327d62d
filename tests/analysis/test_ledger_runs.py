"""The ledger's runs, put to the test: a few simulated trials of each must give what it expects."""

from __future__ import annotations

import msgspec
import pytest

from rebalance_lab.analysis.analyse import analyse
from rebalance_lab.analysis.ledger import Claim, Ledger, Minimum, Reading, Run, read_ledger, run_of
from rebalance_lab.analysis.results import Verdict
from rebalance_lab.analysis.session import LocalSpark
from rebalance_lab.checks import CHECKS
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import REAL, Plan

LEDGER = read_ledger()
RUNNING = {(name, reading.name): run for name, claim, reading in LEDGER.readings() if (run := run_of(claim, reading))}

#: Real members cannot be simulated: tier `kafka` runs these.
SIMULATED = {
    (name, reading.name): run
    for name, _, reading in LEDGER.readings()
    if reading.rules != REAL and (run := RUNNING.get((name, reading.name)))
}

#: Of trials in earnest, and of controls.
SEEDS, CONTROLS = (1, 2), (1,)

#: rebalance.backoff.ms and zookeeper.session.timeout.ms where nobody sets them.
KAFKA_DEFAULTS = {"rebalance_backoff_ms": "2000", "session_timeout_ms": "6000"}

#: The seeds of readings that few trials decide. Of a thousand, 988 shows the last replica standing (docs/broker.md).
OTHER_SEEDS = {("E6", "nothing synced, and losses of power"): (1, 988), ("E4", "reassignment"): (1, 3)}

#: What a reading's `where` asks for beside the scenario's defaults.
SETTINGS = {
    ("Z5b", "against Z3, with seven members"): {"members": "7"},
    ("Z5b", "against range as shipped, with seven members"): {"members": "7"},
    ("Z6", "described, with a topic filter"): {"filter": "true"},
    ("Z9", "described, Kafka's defaults, a stop of 4 s"): KAFKA_DEFAULTS,
    ("Z9", "shipped, Kafka's defaults, a stop of 4 s"): KAFKA_DEFAULTS,
    ("Z9", "described, Kafka's defaults, a stop of 6.5 s"): KAFKA_DEFAULTS | {"slow_stop_ms": "6500"},
    ("Z9", "shipped, Kafka's defaults, a stop of 6.5 s"): KAFKA_DEFAULTS | {"slow_stop_ms": "6500"},
    ("Z7c", "shipped, without conflicts"): {"partitions": "64", "fetcher_stop_ms": "0"},
    ("Z7c", "shipped, fetchers stop in 100 ms"): {"partitions": "64"},
    ("E1", "its owner controls, other releases"): {"keeps_reign": "true"},
    ("E2", "brokers that do not watch again"): {"watch_again": "false"},
    ("E3", "writes of 1.1 and 0.8.2"): {"form": "1.1"},
    ("E3", "writes of 2.1 without the check"): {"fences_writes": "false"},
    ("E3", "orders, brokers that do not fence"): {"moment": "order", "fences_orders": "false"},
    ("E3", "orders, brokers that fence"): {"moment": "order"},
    ("E3", "giving up, 1.1 and 0.8.2"): {"moment": "failover", "form": "1.1"},
    ("E3", "giving up, 2.1"): {"moment": "failover"},
    ("E3", "a reassignment, 1.1 and 0.8.2"): {"moment": "reassignment", "form": "1.1"},
    ("E3", "a reassignment, 2.1"): {"moment": "reassignment"},
    ("E3", "after its session, 0.8.2"): {"expires": "true", "form": "0.8.2"},
    ("E3", "after its session, 1.1"): {"expires": "true", "form": "1.1"},
    ("E3", "an election in two steps, 1.1 and 0.8.2"): {"moment": "election", "form": "1.1"},
    ("E3", "an election in one transaction, 2.1"): {"moment": "election"},
    ("E3", "an epoch read late, 1.1 and 0.8.2"): {"moment": "epoch", "form": "1.1"},
    ("E3", "an epoch read late, 2.1"): {"moment": "epoch"},
    ("E4", "deletion, 1.1 and 0.8.2"): {"duty": "delete-topic", "form": "1.1", "kill_at": "21"},
    ("E4", "two releases, and a protocol that both know"): {"protocol": "1.1"},
    ("E4", "reassignment"): {"duty": "reassign-partitions", "kill_at": "50"},
    ("E4", "reassignment that awaits deletion"): {"duty": "reassign-partitions", "awaits_deletion": "true"},
    ("E5b", "controlled shutdown, 0.8.2"): {"leaves": "shuts-down", "selection": "0.8.2"},
    ("E5b", "controlled shutdown, from 0.10 on"): {"leaves": "shuts-down"},
    ("E5b", "after a failure, 0.8.0"): {"selection": "0.8.0"},
    ("E6", "every record synced"): {"flush_messages": "1"},
    ("E7", "the first to return leads"): {"unclean": "true", "wait_ms": "8000"},
    ("E7", "wait for one in sync"): {"wait_ms": "8000"},
    ("P2", "with racks"): {"racks": "3"},
    ("Z16", "described"): {"keep": "false"},
    ("Z16", "shipped"): {"keep": "false"},
}

#: Group sizes of a trend. Of 6 partitions, the default, the largest of these groups have too many members.
SIZES = (2, 4, 6, 8, 10)


def plans(name: str, reading: Reading, run: Run) -> list[Plan]:
    sizes = [{"members": str(size)} for size in SIZES] if run.trend else [{}]
    return [
        api.make_plan(
            run.scenario,
            rules=reading.rules,
            seed=seed,
            control=control,
            settings=SETTINGS.get((name, reading.name), {}) | size,
        )
        for size in sizes
        for control, seeds in ((False, OTHER_SEEDS.get((name, reading.name), SEEDS)), (True, CONTROLS))
        for seed in seeds
    ]


def asking_for_few(claim: Claim) -> Claim:
    """The claim, decided by two simulated trials."""
    few = Minimum(live=0, simulated=len(SEEDS))

    def of(run: Run | None) -> Run | None:
        return run and msgspec.structs.replace(run, minimum=few, to_refute=few)

    readings = tuple(msgspec.structs.replace(reading, run=of(reading.run)) for reading in claim.readings)
    return msgspec.structs.replace(claim, run=of(claim.run), readings=readings)


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory, local_spark: LocalSpark) -> dict[tuple[str, str], Verdict]:
    store = tmp_path_factory.mktemp("ledger")
    wanted = [
        plan
        for name, _, reading in LEDGER.readings()
        if (name, reading.name) in SIMULATED
        for plan in plans(name, reading, SIMULATED[name, reading.name])
    ]
    for plan in {plan.trial_id: plan for plan in wanted}.values():
        api.run(plan, store)
    ledger = Ledger({name: asking_for_few(claim) for name, claim in LEDGER.claims.items()})
    found = analyse(store, ledger=ledger, spark=local_spark.session, intervals_for=())
    return {(each.claim, each.reading): each for each in found.verdicts}


@pytest.mark.slow
@pytest.mark.parametrize("which", list(SIMULATED), ids=str)
def test_simulated_trials_give_the_verdict_that_is_expected(
    which: tuple[str, str], verdicts: dict[tuple[str, str], Verdict]
) -> None:
    found = verdicts[which]
    status = found.expected if found.expected == "does not apply" else "as expected"
    assert (found.verdict, found.status) == (found.expected, status), found.why
    assert found.simulated >= len(SEEDS)


@pytest.mark.parametrize("which", list(RUNNING), ids=str)
def test_runs_name_checks_scenarios_and_parameters_that_exist(which: tuple[str, str]) -> None:
    name, run = which[0], RUNNING[which]
    (reading,) = [each for each in LEDGER.claims[name].readings if each.name == which[1]]
    scenario = api.scenario(run.scenario)
    assert name in scenario.claims
    assert {*run.checks, *run.clean} <= set(CHECKS)
    assert {each.removesuffix("_longest_us").removesuffix("_count") for each in run.measures} <= set(CHECKS)
    known = {parameter.name for parameter in scenario.parameters}
    assert {condition.parameter for condition in (*run.conditions, *reading.conditions)} <= known


def test_these_claims_are_run() -> None:
    running = {name for name, _ in RUNNING}
    assert {"Z1", "Z3", "Z5a", "Z5b", "Z6", "Z7a", "Z7b", "Z7c", "Z8", "Z9", "Z10", "Z14", "Z15a", "Z16"} <= running
