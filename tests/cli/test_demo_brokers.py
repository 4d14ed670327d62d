"""What the demo shows of brokers: for each of its titles the trial that the title speaks of."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebalance_lab.cli import demo
from rebalance_lab.history.files import load
from rebalance_lab.report.trial_page import story_of
from rebalance_lab.trials import api

SAYS = {
    "A leader dies": "all 200 that were acknowledged are there",
    "All replicas die, and the partition waits for one in sync": "all 200 that were acknowledged are there",
    "All replicas die, and the first to return leads": "was not in the ISR when elected",
}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[api.TrialResult]]:
    store = tmp_path_factory.mktemp("store")
    plans = [plan for batch in demo.BROKERS.values() for plan in batch.plans("simulated")]
    return store, [api.run(plan, store) for plan in plans]


@pytest.mark.parametrize("title", demo.BROKERS)
def test_each_title_has_its_trial(title: str, ended: tuple[Path, list[api.TrialResult]]) -> None:
    store, results = ended
    trials = [result.trial for result in results]
    found = demo._first(trials, demo.BROKERS[title], "simulated")
    assert found is not None
    result = next(each for each in results if each.trial.id == found.id)
    assert SAYS[title] in " ".join(story_of(load(result.folder), store / found.id))
    assert demo._first(trials, demo.BROKERS[title], "processes") is None


def test_titles_are_of_different_trials(ended: tuple[Path, list[api.TrialResult]]) -> None:
    _, results = ended
    found = [demo._first([each.trial for each in results], batch, "simulated") for batch in demo.BROKERS.values()]
    assert len({each.id for each in found if each is not None}) == len(SAYS) == len(found)
