"""Plans are checked before anything starts."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from rebalance_lab.assignors import ASSIGNORS, register
from rebalance_lab.checks import judge
from rebalance_lab.history.files import History
from rebalance_lab.trials import api
from rebalance_lab.trials.api import TrialResult
from rebalance_lab.trials.plan import Parameter, Plan, PlanError, run_command
from rebalance_lab.trials.scenario import make_plan, plan_like, scenario, scenario_names
from rebalance_lab.trials.stages.simulated.stage import simulate


def test_scenarios_are_found_by_registration() -> None:
    assert {"crash", "leave", "zombie"} <= set(scenario_names())
    assert scenario("zombie").claims == ("Z10",)


def test_a_plan_holds_every_parameter() -> None:
    plan = make_plan("zombie", seed=7, settings={"pause_ms": "500"})
    assert set(plan.parameters) == {each.name for each in scenario("zombie").parameters}
    assert plan.number("pause_ms") == 500
    assert plan.changed == ("pause_ms",)


def test_the_same_plan_has_the_same_id_and_another_another() -> None:
    plans = [
        make_plan("zombie"),
        make_plan("zombie", seed=2),
        make_plan("zombie", control=True),
        make_plan("zombie", rules="shipped"),
        make_plan("zombie", world="processes"),
        make_plan("zombie", plant="ignore-claim-conflict"),
        make_plan("zombie", settings={"pause_ms": "500"}),
        make_plan("zombie", settings={"pause_ms": "501"}),
    ]
    assert len({plan.trial_id for plan in plans}) == len(plans)
    assert make_plan("zombie", settings={"pause_ms": "5000"}).trial_id == plans[0].trial_id


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "zombi"}, "there is no scenario zombi; did you mean zombie[?] All: rebalance-lab scenarios$"),
        ({"world": "moon"}, "there is no world moon; there are: simulated, processes"),
        ({"rules": "mine"}, "there is no rule set mine; there are: described, shipped"),
        ({"plant": "oops"}, "there is no planted bug oops; there are: "),
        (
            {"settings": {"pause": "1"}},
            "scenario zombie has no parameter pause; did you mean pause_ms[?] All: rebalance-lab scenarios zombie$",
        ),
        ({"settings": {"pause_ms": "long"}}, "pause_ms=long: must be a whole number"),
        ({"settings": {"pause_ms": "0"}}, "pause_ms=0: must be 1 or more"),
        ({"settings": {"members": "100000000"}}, "members=100000000: must be 5000 or less"),
        ({"settings": {"pause_ms": "10800001"}}, "pause_ms=10800001: must be 10800000 or less"),
        ({"settings": {"latency_min_us": "9", "latency_max_us": "8"}}, "latency_min_us is above"),
        (
            {"settings": {"session_timeout_ms": "999"}},
            "a server with tick_ms=500 grants 1000 to 10000 ms",
        ),
        ({"settings": {"tick_ms": "50"}}, "a server with tick_ms=50 grants 100 to 1000 ms"),
        ({"plant": "two-owners", "world": "processes"}, "plant two-owners is a bug of the simulated server"),
    ],
)
def test_what_is_wrong_is_said(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(PlanError, match=message.replace("(", r"\(")):
        make_plan(**{"name": "zombie", **arguments})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("plan", "command"),
    [
        (
            make_plan("zombie", rules="shipped", seed=7, control=True),
            "--world simulated --rules shipped --seed 7 --control",
        ),
        (make_plan("zombie", world="processes", implementation="mixed"), "--world processes --members mixed --seed 1"),
        (
            make_plan("zombie", plant="two-owners"),
            "--world simulated --rules described --seed 1 --set plant=two-owners",
        ),
    ],
)
def test_a_plan_can_be_typed(plan: Plan, command: str) -> None:
    assert run_command(plan) == f"rebalance-lab run zombie {command}"
    assert run_command(plan, Path("my trials")) == f"rebalance-lab run zombie {command} --store 'my trials'"


@pytest.mark.parametrize("name", scenario_names())
def test_every_number_has_a_maximum_and_its_default_is_within(name: str) -> None:
    for each in scenario(name).parameters:
        if isinstance(each.default, (bool, str)):
            assert each.maximum is None
            continue
        assert each.maximum is not None and (each.minimum or 0) <= each.default <= each.maximum
        assert each.parse(str(each.maximum)) == each.maximum
        with pytest.raises(PlanError, match=f"^{each.name}={each.maximum + 1}: must be {each.maximum} or less$"):
            each.parse(str(each.maximum + 1))


def test_a_number_without_a_maximum_is_refused() -> None:
    with pytest.raises(ValueError, match="parameter quota: give it a maximum that is not below its default 7"):
        Parameter("quota", 7, "", "how many")
    with pytest.raises(ValueError, match="parameter members: give it a maximum"):
        Parameter("members", 7, "members", "how many", maximum=6)


def test_a_stored_trial_may_have_values_above_the_maximum(tmp_path: Path) -> None:
    history, _ = simulate(make_plan("crash"))
    parameters = {**history.trial.parameters, "rebalance_max_retries": 1_000_000}
    trial = msgspec.structs.replace(history.trial, parameters=parameters)
    assert plan_like(trial).number("rebalance_max_retries") == 1_000_000
    assert TrialResult(tmp_path, trial, judge(History(trial, history.events))).status == "as expected"


def test_a_parameter_a_scenario_lacks_is_named() -> None:
    plan: Plan = make_plan("crash")
    with pytest.raises(PlanError, match="scenario crash has no whole-number parameter pause_ms"):
        plan.number("pause_ms")


def test_a_scenario_that_was_imported_first_hides_no_other() -> None:
    code = (
        "from rebalance_lab.scenarios import split_brain; "
        "from rebalance_lab.trials.scenario import scenario_names; "
        "assert len(scenario_names()) > 20"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("deadlock", {"partitions": "1"}, r"partitions=1 with streams=1: .* its share is \[\]; set partitions to 4 or"),
        ("deadlock", {"partitions": "3"}, r"its share is \[2\]; set partitions to 4 or more"),
        ("deadlock", {"streams": "3"}, r"partitions=4 with streams=3: .* set partitions to 12 or more"),
        ("deadlock", {"servers": "1"}, "servers=1: deadlock makes one server lag .* set servers to 3 or 5"),
        ("split-brain", {"servers": "1"}, "servers=1: split-brain makes one server lag .* set servers to 3 or 5"),
        (
            "deadlock",
            {"session_timeout_ms": "4500"},
            "lag_ms=3000: with session_timeout_ms=4500 .* after 3000 ms .* set lag_ms below .* above 4500",
        ),
        ("split-brain", {"session_timeout_ms": "2000"}, "lag_ms=1500: with session_timeout_ms=2000"),
        ("drill", {"members": "3"}, "members=3: two leave and two are killed; set members to 4 or more"),
        ("servers", {"servers": "1", "target": "follower"}, "servers=1: a single server has no follower; set servers"),
        (
            "servers",
            {"fault": "pause", "tick_ms": "299", "session_timeout_ms": "5000"},
            "tick_ms=299: the runner's session .* set tick_ms to 300",
        ),
        ("walkthrough", {"brokers": "0"}, "brokers=0: must be 1 or more"),
        ("lost-reply", {"session_timeout_ms": "1999"}, "up to 2000 ms to reconnect, .* set session_timeout_ms to 2000"),
        ("group-scope", {"assignor": "roundrobin"}, "those of group-scope read different ones; take another assignor"),
        ("leftover-claims", {"assignor": "roundrobin"}, "those of leftover-claims read different ones"),
        ("mixed-settings", {"second": "sticky"}, "second=sticky: must be one of ceil, range, roundrobin"),
    ],
)
def test_settings_that_defeat_a_scenario_are_refused(name: str, settings: dict[str, str], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        make_plan(name, settings=settings)


def test_a_control_has_no_such_demands() -> None:
    for name, settings in (
        ("deadlock", {"partitions": "1"}),
        ("split-brain", {"servers": "1"}),
        ("drill", {"members": "1"}),
        ("servers", {"servers": "1", "target": "follower"}),
    ):
        assert make_plan(name, control=True, settings=settings).control


def test_plans_are_every_combination_the_last_setting_fastest_each_with_every_seed() -> None:
    found = api.plans("zombie", {"pause_ms": ["500", "600"], "plant": ["ignore-watch", ""]}, [4, 2], control=True)
    assert [(plan.number("pause_ms"), plan.plant, plan.seed) for plan in found] == [
        (pause_ms, plant, seed) for pause_ms in (500, 600) for plant in ("ignore-watch", None) for seed in (4, 2)
    ]
    assert all(plan.control for plan in found)
    assert api.plans("zombie", {}, [1]) == [make_plan("zombie")]


def test_an_assignor_of_this_program_is_for_simulated_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ASSIGNORS, "mine", ASSIGNORS["range"])
    assert make_plan("walkthrough", settings={"assignor": "mine"}).text("assignor") == "mine"
    with pytest.raises(PlanError, match=r"assignor mine is this program's; .* which know ceil, range, roundrobin"):
        make_plan("walkthrough", world="processes", settings={"assignor": "mine"})
    register("range", ASSIGNORS["range"])
    with pytest.raises(ValueError, match="another assignor is named 'range'"):
        register("range", ASSIGNORS["ceil"])


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_that_no_table_could_hold_is_refused(seed: int) -> None:
    with pytest.raises(PlanError, match=f"seed {seed}: must be 0 to 9223372036854775807"):
        api.make_plan("zombie", seed=seed)
    assert api.make_plan("zombie", seed=2**63 - 1).seed == 2**63 - 1
