"""Every counterfeit is convicted, and its honest twin acquitted."""

from __future__ import annotations

import pytest
from counterfeit import Counterfeit, counterfeits

from rebalance_lab.history.events import Kind

ALL = dict(counterfeits())


@pytest.fixture(params=list(ALL))
def counterfeit(request: pytest.FixtureRequest) -> Counterfeit:
    return ALL[request.param]


def test_the_counterfeit_is_convicted(counterfeit: Counterfeit) -> None:
    for seed in range(counterfeit.seeds):
        assert counterfeit.outcome(counterfeit.false(seed)) is counterfeit.convicted, f"seed {seed}"


def test_the_counterfeit_is_no_wreck(counterfeit: Counterfeit) -> None:
    """An error in what was forged would be convicted too, for the wrong reason."""
    failed = [event for event in counterfeit.false(0).events if event.kind is Kind.ATTEMPT_FAILED]
    assert [event.of("why") for event in failed if event.of("reason") == "error"] == []


def test_the_honest_twin_is_acquitted(counterfeit: Counterfeit) -> None:
    for seed in range(counterfeit.seeds):
        assert counterfeit.outcome(counterfeit.honest(seed)) is counterfeit.acquitted, f"seed {seed}"
