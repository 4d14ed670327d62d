"""Every counterfeit is convicted, and its honest twin acquitted."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from counterfeit import Counterfeit, counterfeits
from thorough import only_thorough

from rebalance_lab.analysis.ledger import read_ledger, run_of
from rebalance_lab.checks import CHECKS, Outcome
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.world import errors as zookeeper_errors
from scripts.counterfeits import PAGE, page, row

ALL = dict(counterfeits())


# One of a module: its tests run one after the other, and share what `forged` makes.
@pytest.fixture(scope="module", params=list(ALL))
def counterfeit(request: pytest.FixtureRequest) -> Counterfeit:
    return ALL[request.param]


@pytest.fixture(scope="module")
def forged(counterfeit: Counterfeit) -> Callable[[int], History]:
    """The counterfeit's history with a seed, made once."""
    return cache(counterfeit.false)


@pytest.fixture(scope="module")
def twin(counterfeit: Counterfeit) -> History:
    """The history of the honest twin with seed 0."""
    return counterfeit.honest(0)


def test_the_counterfeit_is_convicted(counterfeit: Counterfeit, forged: Callable[[int], History]) -> None:
    assert counterfeit.outcome(forged(0)) is counterfeit.convicted


def test_the_counterfeit_is_no_wreck(forged: Callable[[int], History]) -> None:
    """A mistake in what was forged would be convicted too, for the wrong reason. What ZooKeeper answers is none."""
    failed = [event for event in forged(0).events if event.kind is Kind.ATTEMPT_FAILED]
    errors = [str(event.of("why")) for event in failed if event.of("reason") == "error"]
    assert [why for why in errors if not hasattr(zookeeper_errors, why.partition(":")[0])] == []


def test_the_honest_twin_is_acquitted(counterfeit: Counterfeit, twin: History) -> None:
    assert counterfeit.outcome(twin) is counterfeit.acquitted


def test_the_page_quotes_what_is_said_of_both(
    counterfeit: Counterfeit, forged: Callable[[int], History], twin: History
) -> None:
    name = next(name for name, one in ALL.items() if one is counterfeit)
    line = row(name, counterfeit, counterfeit.finding(forged(0)), counterfeit.finding(twin))
    assert line in PAGE.read_text("utf-8").splitlines(), "run: python scripts/counterfeits.py"


def test_the_page_says_nothing_else() -> None:
    text = PAGE.read_text("utf-8")
    rows = {name: next((line for line in text.splitlines() if f"| `{name}` |" in line), "") for name in ALL}
    assert page(rows) == text, "run: python scripts/counterfeits.py"


@pytest.mark.slow
@only_thorough
def test_so_they_are_with_other_seeds(counterfeit: Counterfeit) -> None:
    for seed in range(1, counterfeit.seeds):
        assert counterfeit.outcome(counterfeit.false(seed)) is counterfeit.convicted, f"seed {seed}"
        assert counterfeit.outcome(counterfeit.honest(seed)) is counterfeit.acquitted, f"seed {seed}"


def test_no_claim_that_is_run_is_without_a_counterfeit() -> None:
    """Each check of each of its runs has one, as a verdict stands on all of them. A premise says nothing of the
    claim: a counterfeit of its check alone will do."""
    needed = {
        (None if reading.premise else name, check)
        for name, claim, reading in read_ledger().readings()
        if (run := run_of(claim, reading)) is not None
        for check in run.checks
    }
    assert needed - {(one.claim, one.check) for one in ALL.values()} == set(), "write one: see counterfeit.py"


def test_a_check_that_must_be_clean_to_show_a_claim_has_been_violated() -> None:
    needed = {
        check
        for _, claim, reading in read_ledger().readings()
        if (run := run_of(claim, reading)) is not None
        for check in run.clean
    }
    assert needed - {one.check for one in ALL.values() if one.convicted is Outcome.VIOLATED} == set()


def test_no_check_is_without_a_counterfeit() -> None:
    assert set(CHECKS) - {one.check for one in ALL.values()} == set(), "write one: see counterfeit.py"
