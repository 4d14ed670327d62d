"""Every counterfeit is convicted, and its honest twin acquitted."""

from __future__ import annotations

import pytest
from counterfeit import Counterfeit, counterfeits

ALL = dict(counterfeits())


@pytest.fixture(params=list(ALL))
def counterfeit(request: pytest.FixtureRequest) -> Counterfeit:
    return ALL[request.param]


def test_the_counterfeit_is_convicted(counterfeit: Counterfeit) -> None:
    for seed in range(counterfeit.seeds):
        assert counterfeit.outcome(counterfeit.false(seed)) is counterfeit.convicted, f"seed {seed}"


def test_the_honest_twin_is_acquitted(counterfeit: Counterfeit) -> None:
    for seed in range(counterfeit.seeds):
        assert counterfeit.outcome(counterfeit.honest(seed)) is counterfeit.acquitted, f"seed {seed}"
