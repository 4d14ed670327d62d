"""zombie-controller: what a controller does that wakes after its successor's election (claim E3)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from thorough import usual

from controller.forms import ControllerForm
from rebalance_lab.checks import Finding, Outcome, judge
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History, load
from rebalance_lab.history.replicas import CONTROLS, CONTROLS_NO_MORE
from rebalance_lab.history.views import events_of
from rebalance_lab.scenarios.zombie_controller import TOPIC_AGAIN, Moment
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import PlanError
from rebalance_lab.trials.scenario import make_plan, scenario
from rebalance_lab.trials.stages.simulated.stage import simulate
from rebalance_lab.wire.cluster import read_assignment
from rebalance_lab.wire.paths import CONTROLLER, partition_state_path, topic_path

OLD = [ControllerForm.V1_1, ControllerForm.V0_8_2]


def play(moment: Moment, form: ControllerForm = ControllerForm.V2_1, seed: int = 1, **settings: str) -> History:
    plan = make_plan("zombie-controller", seed=seed, settings={"moment": moment, "form": form, **settings})
    return simulate(plan)[0]


def wrong(found: Mapping[str, Finding]) -> set[str]:
    return {name for name, finding in found.items() if finding.outcome is not Outcome.CLEAN}


def by_itself(moment: Moment) -> set[str]:
    """What a moment shows without a zombie: a reassignment elects by the order of the new replicas (E5b)."""
    return {"isr_order"} if moment is Moment.REASSIGNMENT else set()


def topics_deleted(history: History) -> int:
    return sum(event.of("path") == topic_path(TOPIC_AGAIN) for event in events_of(history, Kind.DELETED))


@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("seed", range(1, 4))
def test_a_zombie_of_2_1_does_nothing(moment: Moment, seed: int) -> None:
    history = play(moment, seed=seed)
    assert wrong(judge(history)) == by_itself(moment)
    assert any(event.of("fault") == "pause" for event in events_of(history, Kind.FAULT_BIT))


@pytest.mark.parametrize(("form", "fences_writes"), [*((form, "true") for form in OLD), (ControllerForm.V2_1, "false")])
def test_without_a_fence_it_deletes_a_topic_that_was_created_anew(form: ControllerForm, fences_writes: str) -> None:
    history = play(Moment.DELETION, form, fences_writes=fences_writes)
    assert judge(history)["stale_controller"].outcome is Outcome.VIOLATED
    assert topics_deleted(history) == 2
    assert topics_deleted(play(Moment.DELETION)) == 1


@pytest.mark.parametrize(("form", "fences_writes"), [*((form, "true") for form in OLD), (ControllerForm.V2_1, "false")])
def test_without_a_fence_it_finishes_a_reassignment_that_is_over(form: ControllerForm, fences_writes: str) -> None:
    history = play(Moment.REASSIGNMENT, form, fences_writes=fences_writes)
    finding = judge(history)["stale_controller"]
    assert finding.outcome is Outcome.VIOLATED
    path, replicas = topic_path(TOPIC_AGAIN), []
    for event in events_of(history, Kind.CHANGED):
        if event.of("path") == path:
            replicas.append(read_assignment(TOPIC_AGAIN, str(event.of("data")).encode()).replicas[0])
    second, third = replicas[1]
    assert replicas[-1] == (second, third)
    assert replicas[-2][0] == third
    assert set(replicas[-2]) != {second, third}


@pytest.mark.parametrize("form", OLD)
def test_a_zombie_that_reads_the_epoch_late_raises_that_of_its_successor(form: ControllerForm) -> None:
    history = play(Moment.EPOCH, form)
    found = judge(history)
    assert "after its /controller had gone" in found["two_controllers"].why
    assert found["stale_controller"].outcome is Outcome.VIOLATED
    reigns = [(event.actor, int(str(event.of("epoch")))) for event in events_of(history, CONTROLS)]
    (zombie,) = {event.of("target") for event in events_of(history, Kind.FAULT_BIT) if event.of("fault") == "pause"}
    late = next(epoch for actor, epoch in reigns if actor == zombie)
    assert any(actor != zombie and epoch == late - 1 for actor, epoch in reigns)


@pytest.mark.parametrize("moment", [Moment.DELETION, Moment.REASSIGNMENT])
@pytest.mark.parametrize("form", ControllerForm)
def test_only_0_8_2_goes_on_when_its_session_has_expired(form: ControllerForm, moment: Moment) -> None:
    history = play(moment, form, expires="true")
    (expired,) = [event for event in events_of(history, Kind.EXPIRED) if event.actor == "b4"]
    (end,) = [event for event in events_of(history, CONTROLS_NO_MORE) if event.actor == "b4"]
    finding = judge(history)["stale_controller"]
    if form is ControllerForm.V0_8_2:
        assert finding.outcome is Outcome.VIOLATED
        (written,) = [event for event in history.events if event.id == finding.witness[1]]
        assert written.session not in {None, expired.session}
        assert end.of("why") == "its session has expired"
    else:
        assert finding.outcome is Outcome.CLEAN
        assert end.of("why") == "its session or its broker ends"


@pytest.mark.parametrize("form", ControllerForm)
def test_only_0_8_2_does_not_resign_to_its_successor(form: ControllerForm) -> None:
    history = play(Moment.ORDER, form)
    finding = judge(history)["handover"]
    (end,) = [event for event in events_of(history, CONTROLS_NO_MORE) if event.actor == "b4"]
    if form is ControllerForm.V0_8_2:
        assert finding.outcome is Outcome.VIOLATED
        assert end.of("why") == "its session or its broker ends"
    else:
        assert finding.outcome is Outcome.CLEAN
        assert "/controller is not of this session" in str(end.of("why"))


def _after_the_expiry(form: ControllerForm, **settings: str) -> tuple[set[str], list[object]]:
    """What is wrong when the session of a controller has expired that was to look for leaders out of place, and why it
    resigned."""
    history = play(Moment.REBALANCE, form, 1, expires="true", **settings)
    ends = [event.of("why") for event in events_of(history, CONTROLS_NO_MORE) if event.actor == "b4"]
    return wrong(judge(history)), ends


def test_0_8_2_waits_for_a_thread_that_waits_for_it() -> None:
    assert _after_the_expiry(ControllerForm.V0_8_2) == ({"handover", "lost_registration"}, [])


@pytest.mark.parametrize(
    ("form", "settings", "why"),
    [
        (ControllerForm.V0_8_2, {"resigns_unlocked": "true"}, "its session has expired"),
        (ControllerForm.V1_1, {}, "its session or its broker ends"),
    ],
)
def test_without_the_lock_it_resigns(form: ControllerForm, settings: dict[str, str], why: str) -> None:
    assert _after_the_expiry(form, **settings) == (set(), [why])


def test_an_expired_session_matters_to_what_is_written() -> None:
    with pytest.raises(PlanError, match="expires=true: only with moment=deletion, reassignment, rebalance, not"):
        make_plan("zombie-controller", settings={"moment": Moment.ORDER, "expires": "true"})


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("form", usual([ControllerForm.V0_8_2], list(ControllerForm)))
def test_live_an_expired_session_ends_only_later_forms(tmp_path: Path, form: ControllerForm) -> None:
    plan = make_plan("zombie-controller", world="processes", settings={"form": form, "expires": "true"})
    assert api.run(plan, tmp_path).status is api.TrialStatus.AS_EXPECTED


def test_a_broker_that_does_not_fence_obeys_it() -> None:
    found = judge(play(Moment.ORDER, fences_orders="false"))
    assert found["stale_order"].outcome is Outcome.VIOLATED


@pytest.mark.parametrize("form", OLD)
def test_one_that_gives_up_deletes_the_znode_of_its_successor(form: ControllerForm) -> None:
    history = play(Moment.FAILOVER, form)
    finding = judge(history)["deposed_successor"]
    assert finding.outcome is Outcome.VIOLATED
    deleted = next(event for event in history.events if event.id == finding.witness[1])
    assert (deleted.kind, deleted.of("path")) == (Kind.DELETED, CONTROLLER)


def test_0_8_2_reigns_with_an_epoch_that_it_has_not_raised() -> None:
    found = judge(play(Moment.ELECTION, ControllerForm.V0_8_2))
    assert found["two_controllers"].outcome is Outcome.VIOLATED
    assert found["deposed_successor"].outcome is Outcome.CLEAN


def test_1_1_deletes_the_znode_of_the_broker_that_has_raised_the_epoch() -> None:
    found = judge(play(Moment.ELECTION, ControllerForm.V1_1))
    assert found["deposed_successor"].outcome is Outcome.VIOLATED


@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("form", ControllerForm)
def test_the_control_shows_nothing_in_any_form(form: ControllerForm, moment: Moment) -> None:
    history, _ = simulate(make_plan("zombie-controller", control=True, settings={"moment": moment, "form": form}))
    assert wrong(judge(history)) == by_itself(moment)


@pytest.mark.parametrize("brokers", ["3", "5"])
def test_a_reassignment_needs_three_brokers_beside_the_controller(brokers: str) -> None:
    with pytest.raises(PlanError, match=f"brokers={brokers}: must be 4"):
        make_plan("zombie-controller", settings={"moment": Moment.REASSIGNMENT, "brokers": brokers})


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("moment", usual([Moment.DELETION, Moment.REBALANCE], list(Moment)))
@pytest.mark.parametrize("form", ControllerForm)
def test_live_as_expected(tmp_path: Path, form: ControllerForm, moment: Moment) -> None:
    plan = make_plan("zombie-controller", world="processes", settings={"moment": moment, "form": form})
    result = api.run(plan, tmp_path)
    expected = scenario("zombie-controller").expects(plan)
    history = load(result.folder)
    reports = [event.detail for event in events_of(history, CONTROLS_NO_MORE, Kind.FAULT_BIT)]
    found = {name: each for name, each in result.findings.items() if expected.get(name) not in (None, each.outcome)}
    assert found == {}, reports
    (woken,) = [event for event in events_of(history, Kind.FAULT_ENDED) if event.of("fault") == "pause"]
    if moment in {Moment.DELETION, Moment.ORDER}:
        path = partition_state_path(TOPIC_AGAIN, 0)
        created = [event for event in events_of(history, Kind.CREATED) if event.of("path") == path]
        assert len([event for event in created if event.at_us < woken.at_us]) == 2  # the zombie finds the new one
