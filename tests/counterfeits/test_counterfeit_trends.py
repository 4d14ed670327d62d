"""A trend is judged over many trials: the fit over a false population refutes it, that over an honest one does not."""

from __future__ import annotations

from collections.abc import Callable

from z7c_members_share_a_cache import herd, sharing

from rebalance_lab.analysis.fitting import Fitted, Model, fit
from rebalance_lab.analysis.ledger import Trend, read_ledger
from rebalance_lab.analysis.trialwise.herd_costs import herd_costs
from rebalance_lab.history.files import History

SIZES = (4, 8, 16, 24)


def trend_of(name: str) -> Trend:
    run = read_ledger().claims[name].run
    assert run is not None
    assert run.trend is not None
    return run.trend


def fitted(trend: Trend, world: Callable[[int, int], History]) -> Fitted:
    """The trend's fit over a trial of each size, chosen and fitted as `analysis.tables.trend_fits` does."""
    costs = [cost for size in SIZES for cost in herd_costs(world(0, size))]
    points = [cost for cost in costs if cost.doubt is None and cost.retries == 0 and cost.change == trend.change]
    sizes, measures = ([getattr(each, name) for each in points] for name in (trend.against, trend.measure))
    assert len(set(sizes)) >= trend.sizes
    found = fit(Model(trend.model), sizes, measures)
    assert found is not None
    return found


def test_a_population_whose_cost_is_linear_refutes_the_quadratic() -> None:
    trend = trend_of("Z7c")
    found = fitted(trend, sharing)
    assert found.high < trend.between[0]


def test_the_honest_population_agrees_with_it() -> None:
    trend = trend_of("Z7c")
    found = fitted(trend, herd)
    assert trend.between[0] <= found.low <= found.high <= trend.between[1]
