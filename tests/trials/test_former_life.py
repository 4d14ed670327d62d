"""Orders for a former life of a broker: obeyed without the fence by broker epoch, refused with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from as_expected import played
from thorough import usual

from rebalance_lab.checks import Finding, Outcome
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import METADATA_KNOWN, OBEYS, REPLICA_ENDED
from rebalance_lab.history.views import events_of
from rebalance_lab.scenarios.former_life import OTHER, LateOrder
from rebalance_lab.trials import api
from rebalance_lab.trials.plan import PlanError
from rebalance_lab.trials.scenario import make_plan

SEEDS = range(1, 5)


def play(seed: int, *, control: bool = False, **settings: str) -> tuple[History, dict[str, Finding]]:
    """The history and what the checks find; everything comes out as expected."""
    return played(make_plan("former-life", seed=seed, control=control, settings=settings))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_deletion_for_the_former_life_takes_a_replica_of_the_new_topic(seed: int) -> None:
    history, found = play(seed)
    assert found["stale_order"].measures["count"] == 1
    assert "has no role" in found["stale_role"].why
    late = next(event for event in history.events if event.id == found["stale_order"].witness[1])
    assert late.of("order") == "stop-replica"
    ended = [event for event in events_of(history, REPLICA_ENDED) if event.actor == late.actor]
    assert [(each.topic, each.n > late.n) for each in ended][-1] == (OTHER, True)


@pytest.mark.parametrize("seed", SEEDS)
def test_metadata_for_the_former_life_bring_back_the_old_leader(seed: int) -> None:
    history, found = play(seed, order="metadata")
    late = next(event for event in history.events if event.id == found["stale_order"].witness[1])
    told = [
        (int(str(event.of("leader_epoch"))), event.at_us >= late.at_us)
        for event in events_of(history, METADATA_KNOWN)
        if (event.actor, event.topic) == (late.actor, OTHER)
    ]
    assert told[-1] == (0, True)
    assert max(epoch for epoch, _ in told) > 0
    assert "in leader epoch 0" in found["unequal_views"].why


@pytest.mark.parametrize("order", LateOrder)
@pytest.mark.parametrize("seed", SEEDS)
def test_with_the_fence_the_same_order_is_refused(order: LateOrder, seed: int) -> None:
    obeyed = {}
    for fences in ("false", "true"):
        history, found = play(seed, order=order, fences_lives=fences)
        late = found["stale_order"].measures["count"]
        assert late == (fences == "false")
        obeyed[fences] = len(events_of(history, OBEYS)) - late
    if order is LateOrder.METADATA:  # a replica that is deleted leaves an ISR, of which more orders tell
        assert obeyed["true"] == obeyed["false"]


@pytest.mark.parametrize("order", LateOrder)
def test_the_control_is_clean(order: LateOrder) -> None:
    _, found = play(1, control=True, order=order)
    assert {each.outcome for each in found.values()} == {Outcome.CLEAN}


@pytest.mark.slow
@pytest.mark.parametrize("order", LateOrder)
@pytest.mark.parametrize("fences", usual(["false"], ["false", "true"]))
def test_live(tmp_path: Path, order: LateOrder, fences: str) -> None:
    plan = make_plan("former-life", world="processes", settings={"order": order, "fences_lives": fences})
    assert api.run(plan, tmp_path).status is api.TrialStatus.AS_EXPECTED


def test_it_needs_a_controller_and_three_replicas() -> None:
    with pytest.raises(PlanError, match="brokers=3: must be 4"):
        make_plan("former-life", settings={"brokers": "3"})
