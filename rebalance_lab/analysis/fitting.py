"""Least squares with an interval: how a number grows with a size.

The intervals are those of ordinary least squares, with Student's t. They show how well the model is known if it holds,
not whether it holds: points on a curve of another kind give an interval, too, so draw them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.special import stdtrit

#: The interval's confidence, two-sided.
CONFIDENCE = 0.95


class Model(StrEnum):
    """What is fitted, and which of its coefficients is the estimate (the last of them)."""

    EXPONENT = "exponent"  # ln measure = ln a + b·ln size: b
    QUADRATIC = "quadratic"  # measure = c0 + c1·size + c2·size²: c2


@dataclass(frozen=True, slots=True)
class Fitted:
    """`coefficients`, lowest first; the last is the estimate, its interval from `low` to `high`."""

    coefficients: tuple[float, ...]
    low: float
    high: float

    @property
    def estimate(self) -> float:
        return self.coefficients[-1]


def fit(model: Model, sizes: Sequence[float], measures: Sequence[float]) -> Fitted | None:
    """Fit `measures` against `sizes`, of equal length. None if there are too few different sizes, no more points than
    coefficients, or, for an exponent, a value that is not positive."""
    x, y = np.asarray(sizes, dtype=float), np.asarray(measures, dtype=float)
    if model is Model.EXPONENT:
        if np.any(x <= 0) or np.any(y <= 0):
            return None
        x, y = np.log(x), np.log(y)
    degree = 1 if model is Model.EXPONENT else 2
    free = len(x) - degree - 1
    if len(np.unique(x)) <= degree or free < 1:
        return None
    # Columns are scaled to length 1, because squared sizes would cost digits otherwise.
    columns = np.vander(x, degree + 1, increasing=True)
    scale = np.linalg.norm(columns, axis=0)
    scaled, *_ = np.linalg.lstsq(columns / scale, y)
    residuals = y - columns / scale @ scaled
    variance = float(residuals @ residuals) / free
    covariance = variance * np.linalg.inv((columns / scale).T @ (columns / scale))
    coefficients = scaled / scale
    half = stdtrit(free, (1 + CONFIDENCE) / 2) * np.sqrt(covariance[-1, -1]) / scale[-1]
    return Fitted(tuple(float(each) for each in coefficients), *(float(coefficients[-1] + d) for d in (-half, half)))
