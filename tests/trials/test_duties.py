"""duties: each duty of a controller, which is killed at one of its operations (E4)."""

from __future__ import annotations

import pytest
from thorough import usual

from rebalance_lab.checks import Finding, Outcome, judge
from rebalance_lab.faults.duty import PEACEFUL, Duty
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.writes import REPORTED
from rebalance_lab.scenarios.duties import ANY, DRAWN_FROM, OPERATIONS, duty_of, killed_at
from rebalance_lab.trials.plan import PlanError
from rebalance_lab.trials.scenario import make_plan, scenario
from rebalance_lab.trials.stages.simulated.stage import simulate


def play(duty: Duty, kill_at: int, *, seed: int = 1, plant: str | None = None) -> tuple[History, dict[str, Finding]]:
    plan = make_plan("duties", seed=seed, plant=plant, settings={"duty": duty.value, "kill_at": str(kill_at)})
    history, _ = simulate(plan)
    return history, judge(history)


def operations(history: History) -> list[str]:
    """What the controller has carried out of its duty, until the inspector leaves; and what it has not any more."""
    (end,) = [each for each in history.events if each.kind is Kind.FAULT_BEGAN and each.of("target") == "i1"]
    return [
        str(each.of("message"))
        for each in history.events
        if each.kind is REPORTED and each.of("event") in ("operation", "halts") and each.at_us < end.at_us
    ]


def as_expected(found: dict[str, Finding]) -> None:
    expected = scenario("duties").expects(make_plan("duties"))
    odd = {name: each.why for name, each in found.items() if expected[name] not in (None, each.outcome)}
    assert odd == {}
    assert found["duty_target"].outcome is Outcome.CLEAN


#: How many operations less a duty has in some trials, if not one, because nobody else asks the controller meanwhile: a
#: broker that shuts down may have gone before it is told of two changes.
FEWER = {Duty.SHUTDOWN: 2}


@pytest.mark.parametrize("duty", Duty)
def test_without_a_kill_each_duty_is_done_with_so_many_operations(duty: Duty) -> None:
    history, found = play(duty, 0)
    as_expected(found)
    assert OPERATIONS[duty] - FEWER.get(duty, 0) <= len(operations(history)) <= OPERATIONS[duty]


@pytest.mark.parametrize(
    ("duty", "kill_at", "operation"),
    [
        (Duty.CREATE, 5, "multi: check /controller_epoch, create /brokers/topics/t2/partitions/0/state"),
        (Duty.DELETE, 6, "StopReplica to broker"),
        (Duty.DELETE, 19, "multi: check /controller_epoch, delete /brokers/topics/t2"),
        (Duty.DELETE, 21, "multi: check /controller_epoch, delete /config/topics/t2"),
        (Duty.GROW, 8, "UpdateMetadata to broker"),
        (Duty.PREFERRED, 3, "multi: check /controller_epoch, set /brokers/topics/t2/partitions/0/state"),
        (Duty.JOINS, 5, "UpdateMetadata to broker"),
        (Duty.SHUTDOWN, 2, "multi: check /controller_epoch, set /brokers/topics/t2/partitions/1/state"),
        (Duty.FAILS, 4, "multi: check /controller_epoch, set /brokers/topics/t1/partitions/0/state"),
    ],
)
def test_the_controller_dies_before_an_operation_and_the_duty_is_done(duty: Duty, kill_at: int, operation: str) -> None:
    history, found = play(duty, kill_at)
    as_expected(found)
    assert len(operations(history)) == kill_at
    assert operations(history)[-1].startswith(operation)


@pytest.mark.slow
@pytest.mark.parametrize("duty", DRAWN_FROM)
def test_each_duty_is_done_wherever_the_controller_dies(duty: Duty) -> None:
    for kill_at in range(1, OPERATIONS[duty] + 1):
        history, found = play(duty, kill_at)
        as_expected(found)
        least = min(kill_at, OPERATIONS[duty] - FEWER.get(duty, 1))
        assert least <= len(operations(history)) <= kill_at
    _, found = play(duty, OPERATIONS[duty] + 10)  # when it is done
    as_expected(found)


def deleted(kill_at: int, form: str) -> Finding:
    """What becomes of a deletion, with controllers of this form."""
    settings = {"duty": "delete-topic", "kill_at": str(kill_at), "form": form}
    plan = make_plan("duties", settings=settings)
    found = judge(simulate(plan)[0])
    expected = scenario("duties").expects(plan)
    odd = {name: each.why for name, each in found.items() if expected[name] not in (None, each.outcome)}
    assert odd == {}
    return found["duty_target"]


@pytest.mark.parametrize(
    ("form", "first", "without_topic"), [("0.8.2", 16, Outcome.VIOLATED), ("1.1", 19, Outcome.CLEAN)]
)
def test_up_to_1_1_a_deletion_that_has_begun_to_remove_states_never_ends(
    form: str, first: int, without_topic: Outcome
) -> None:
    """KAFKA-6650. Before these operations all states are there. After them the topic is gone; in 0.8.2 its settings and
    the request stay. `first`: in 1.1 there are three StopReplica requests more than in 0.8.2 (KAFKA-8294)."""
    found = {each: deleted(first + each, form) for each in (-1, 0, 6, 7, 11)}
    assert {each: finding.outcome for each, finding in found.items()} == {
        -1: Outcome.CLEAN,
        0: Outcome.VIOLATED,
        6: Outcome.VIOLATED,
        7: without_topic,
        11: Outcome.CLEAN,
    }
    assert found[0].why == "delete-topic: the request to delete t2 is still there"


def moved(kill_at: int, *, seed: int = 1, awaits_deletion: bool = True) -> tuple[History, dict[str, Finding]]:
    settings = {"duty": "reassign-partitions", "kill_at": str(kill_at), "awaits_deletion": str(awaits_deletion).lower()}
    history, _ = simulate(make_plan("duties", seed=seed, settings=settings))
    return history, judge(history)


@pytest.mark.parametrize(
    ("kill_at", "operation"),
    [
        (3, "multi: check /controller_epoch, set /brokers/topics/t2"),
        (5, "multi: check /controller_epoch, set /brokers/topics/t2/partitions/0/state"),
        (27, "StopReplica to broker"),
        # the leader of t2-1 moves while t2-0 ends: what is written of the topic must still name the old replica
        (44, "UpdateMetadata to broker"),
    ],
)
def test_a_reassignment_that_awaits_deletion_is_done(kill_at: int, operation: str) -> None:
    history, found = moved(kill_at)
    as_expected(found)
    assert operations(history)[-1].startswith(operation)


@pytest.mark.slow
@pytest.mark.parametrize("seed", usual([1], [1, 2, 3]))
def test_a_reassignment_that_awaits_deletion_is_done_wherever_the_controller_dies(seed: int) -> None:
    for kill_at in range(1, OPERATIONS[Duty.REASSIGN] + 10):
        _, found = moved(kill_at, seed=seed)
        as_expected(found)


@pytest.mark.parametrize(("seed", "kill_at", "is_its_own"), [(1, 48, True), (3, 50, False)])
def test_as_in_kafka_a_log_stays_if_the_controller_dies_first(seed: int, kill_at: int, is_its_own: bool) -> None:
    """It dies before it has asked the broker to delete it, or its own broker holds it and is dead when it is asked."""
    history, found = moved(kill_at, seed=seed, awaits_deletion=False)
    assert found["duty_target"].outcome is Outcome.VIOLATED
    assert "still has a log of t2-1" in found["duty_target"].why
    (killed,) = [each for each in history.events if each.kind is Kind.FAULT_BEGAN and each.of("fault") == "kill"]
    assert (f"{killed.of('target')} still has" in found["duty_target"].why) is is_its_own
    settings = {"duty": "reassign-partitions", "kill_at": str(kill_at)}
    expected = scenario("duties").expects(make_plan("duties", settings=settings))
    assert {name: each.why for name, each in found.items() if expected[name] not in (None, each.outcome)} == {}
    _, found = moved(kill_at, seed=seed)  # the cure
    as_expected(found)


def test_half_done_duties_that_a_successor_forgets_are_found() -> None:
    for plant, duty, kill_at in (
        ("forgets-deletions", Duty.DELETE, 22),
        ("forgets-new-partitions", Duty.CREATE, 3),
        ("forgets-new-partitions", Duty.GROW, 4),
    ):
        _, found = play(duty, kill_at, plant=plant)
        assert found["duty_target"].outcome is Outcome.VIOLATED, plant


def test_the_seed_draws_the_duty_and_the_operation() -> None:
    plans = [make_plan("duties", seed=seed) for seed in range(1, 300)]
    assert {duty_of(each) for each in plans} == set(DRAWN_FROM) == set(Duty) - {Duty.REASSIGN}
    for duty in DRAWN_FROM:
        drawn = {killed_at(each) for each in plans if duty_of(each) is duty}
        assert drawn <= set(range(1, OPERATIONS[duty] + 2))
        assert len(drawn) > OPERATIONS[duty] / 2
    assert all(each.number("kill_at") == ANY for each in plans)


def test_in_the_control_no_broker_goes() -> None:
    plans = [make_plan("duties", seed=seed, control=True) for seed in range(1, 20)]
    assert {duty_of(each) for each in plans} == set(PEACEFUL) & set(DRAWN_FROM)
    assert {killed_at(each) for each in plans} == {0}
    history, _ = simulate(plans[0])
    found = judge(history)
    as_expected(found)
    with pytest.raises(PlanError, match="duty=broker-fails: in a control no broker goes"):
        make_plan("duties", control=True, settings={"duty": "broker-fails"})


#: What is found if nobody sees the second request, or writes over it.
LOST = "t2 has the replicas {0: (2, 3), 1: (2, 3)}, and should have {0: (2, 3), 1: (3, 1)}"
ASKED = "/admin/reassign_partitions is still there"


@pytest.mark.parametrize(
    ("meanwhile", "form", "cure", "wrong"),
    [
        ("rewritten-early", "1.1", {}, LOST),
        ("rewritten-early", "2.1", {}, ASKED),
        ("rewritten-early", "1.1", {"keeps_requests": "true"}, None),
        ("rewritten-late", "0.8.2", {}, LOST),
        ("rewritten-late", "0.8.2", {"keeps_requests": "true"}, None),
        ("dead-target", "2.1", {}, ASKED),
        ("growth", "1.1", {}, "the request to delete t2 is still there"),
    ],
)
def test_what_else_happens_keeps_a_duty_from_being_done(
    meanwhile: str, form: str, cure: dict[str, str], wrong: str | None
) -> None:
    """What becomes of a reassignment's request: KAFKA-6193 and KAFKA-9478. Growth: KAFKA-6612. docs/defects.md has the
    commands that show the cures."""
    plan = make_plan("duties", settings={"meanwhile": meanwhile, "form": form, **cure})
    found = judge(simulate(plan)[0])
    expected = scenario("duties").expects(plan)
    assert {name: each.why for name, each in found.items() if expected[name] not in (None, each.outcome)} == {}
    assert expected["duty_target"] is (Outcome.CLEAN if wrong is None else Outcome.VIOLATED)
    assert wrong is None or found["duty_target"].why.endswith(f": {wrong}")


@pytest.mark.parametrize("meanwhile", ["rewritten-early", "growth"])
def test_in_the_control_nothing_else_happens(meanwhile: str) -> None:
    plan = make_plan("duties", control=True, settings={"meanwhile": meanwhile})
    as_expected(judge(simulate(plan)[0]))


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"duty": "create-topic"}, "meanwhile=growth: the duty is delete-topic; leave out duty=create-topic"),
        ({"kill_at": "3"}, "meanwhile=growth: the controller is not killed at an operation; leave out kill_at"),
    ],
)
def test_what_else_happens_names_the_duty(settings: dict[str, str], error: str) -> None:
    with pytest.raises(PlanError, match=error):
        make_plan("duties", settings={"meanwhile": "growth", **settings})


def test_another_number_of_brokers() -> None:
    with pytest.raises(PlanError, match="brokers=4: must be 3"):
        make_plan("duties", settings={"brokers": "4"})
