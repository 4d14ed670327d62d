"""Scenarios on several servers: what is meant to happen in them does happen."""

from __future__ import annotations

import pytest

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate

SEEDS = range(1, 11)


def decisions(seed: int, rules: str, *, control: bool = False) -> list[Event]:
    """What members of `split-brain` decided, from the change on."""
    history, _ = simulate(make_plan("split-brain", seed=seed, rules=rules, control=control))
    (joined, *_) = (event for event in history.events if event.kind is Kind.REST_REACHED)
    return [event for event in history.events if event.kind is Kind.DECIDED and event.at_us > joined.at_us]


@pytest.mark.parametrize("rules", ["described", "shipped"])
def test_a_member_on_a_lagging_server_deals_from_an_older_list_than_the_others(rules: str) -> None:
    for seed in SEEDS:
        decided = decisions(seed, rules)
        newest = next(event for event in decided if event.of("members") == 6)
        assert any(
            event.actor == "m1" and event.of("members") == 5 and event.at_us > newest.at_us for event in decided
        ), seed


@pytest.mark.parametrize("rules", ["described", "shipped"])
def test_without_lag_lists_only_grow(rules: str) -> None:
    for seed in SEEDS:
        sizes = [event.of("members") for event in decisions(seed, rules, control=True)]
        assert sizes == sorted(sizes, key=str), seed
        assert set(sizes) == {5, 6}, seed
