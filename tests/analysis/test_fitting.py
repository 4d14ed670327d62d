"""Fits with their intervals, beside another library's answer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rebalance_lab.analysis.fitting import Fitted, Model, fit

SIZES = [5, 5, 10, 10, 20, 40, 80]


def noisy(values: list[float], share: float = 0.05) -> list[float]:
    dice = np.random.Generator(np.random.PCG64(7))
    return [value * (1 + share * dice.standard_normal()) for value in values]


def test_an_exponent_is_linregress_of_the_logarithms() -> None:
    values = noisy([3 * size**1.7 for size in SIZES])
    found = fit(Model.EXPONENT, SIZES, values)
    other = stats.linregress(np.log(SIZES), np.log(values))
    half = stats.t.ppf(0.975, len(SIZES) - 2) * other.stderr
    assert found.estimate == pytest.approx(other.slope)
    assert (found.low, found.high) == pytest.approx((other.slope - half, other.slope + half))
    assert found.coefficients == pytest.approx((other.intercept, other.slope))
    assert found.low < 1.7 < found.high


def test_a_quadratic_is_polyfit() -> None:
    values = noisy([size**2 + 13 * size + 4 for size in SIZES])
    found = fit(Model.QUADRATIC, SIZES, values)
    other, covariance = np.polyfit(SIZES, values, 2, cov=True)
    half = stats.t.ppf(0.975, len(SIZES) - 3) * np.sqrt(covariance[0, 0])
    assert found.coefficients == pytest.approx(tuple(other[::-1]), rel=1e-6)
    assert (found.low, found.high) == pytest.approx((other[0] - half, other[0] + half), rel=1e-6)


def test_exact_points_have_a_point_as_interval() -> None:
    """The formula of the herd with three brokers: C² + 17C + 100, at sizes up to a thousand."""
    sizes = [2, 10, 50, 200, 1000]
    found = fit(Model.QUADRATIC, sizes, [size * (3 * 3 + size + 1 + 7) + 100 for size in sizes])
    assert found == Fitted(pytest.approx((100, 17, 1), rel=1e-6), pytest.approx(1), pytest.approx(1))  # type: ignore[arg-type]
    assert found.high - found.low < 1e-9


@pytest.mark.parametrize(
    ("model", "sizes", "values"),
    [
        (Model.EXPONENT, [], []),
        (Model.EXPONENT, [5, 10], [1, 2]),  # no point more than coefficients
        (Model.EXPONENT, [5, 5, 5, 5], [1, 2, 3, 4]),  # one size
        (Model.EXPONENT, [5, 10, 20], [0, 1, 2]),  # nothing grows from 0
        (Model.QUADRATIC, [5, 10, 10, 5], [1, 2, 3, 4]),  # two sizes
        (Model.QUADRATIC, [5, 10, 20], [1, 2, 3]),
    ],
)
def test_points_that_cannot_tell_give_no_fit(model: Model, sizes: list[float], values: list[float]) -> None:
    assert fit(model, sizes, values) is None
