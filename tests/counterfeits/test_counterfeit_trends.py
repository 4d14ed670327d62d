"""A trend is judged over many trials: the fit over a false population refutes it, that over an honest one does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import mean

import pytest
from z7c_members_share_a_cache import herd, sharing

from rebalance_lab.analysis.fitting import Fitted, Model, fit
from rebalance_lab.analysis.ledger import Trend, read_ledger
from rebalance_lab.analysis.trialwise.rows import herd_costs_of
from rebalance_lab.history.files import History

#: Whichever sizes are run, the verdict is the same.
CHOICES = ((4, 8, 16, 32), (2, 4, 6, 8, 10), (5, 7, 9, 11))


def trend_of(name: str) -> Trend:
    run = read_ledger().claims[name].run
    assert run is not None
    assert run.trend is not None
    return run.trend


def fitted(trend: Trend, world: Callable[[int, int], History], chosen: Iterable[int]) -> Fitted:
    """The trend's fit over a trial of each size, chosen and fitted as `analysis.tables.fits.trend_fits` does."""
    costs = [cost for size in chosen for cost in herd_costs_of(world(0, size))]
    points = [cost for cost in costs if cost.doubt is None and cost.retries == 0 and cost.change == trend.change]
    values: dict[int, list[int]] = {}
    for each in points:
        values.setdefault(getattr(each, trend.against), []).append(getattr(each, trend.measure))
    assert len(values) >= trend.sizes
    found = fit(Model(trend.model), list(values), [mean(each) for each in values.values()])
    assert found is not None
    return found


@pytest.mark.parametrize("chosen", CHOICES, ids=str)
def test_a_population_whose_cost_is_linear_refutes_the_quadratic(chosen: tuple[int, ...]) -> None:
    trend = trend_of("Z7c")
    found = fitted(trend, sharing, chosen)
    assert found.high < trend.between[0]


@pytest.mark.parametrize("chosen", CHOICES, ids=str)
def test_the_honest_population_agrees_with_it(chosen: tuple[int, ...]) -> None:
    trend = trend_of("Z7c")
    found = fitted(trend, herd, chosen)
    assert trend.between[0] <= found.low <= found.high <= trend.between[1]
    assert found.estimate == pytest.approx(1)
