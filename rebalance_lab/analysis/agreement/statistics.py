"""Do two samples come from distributions that agree, within a margin that is stated beforehand?

A *band* says how far live values may lie from simulated ones: from `low` to `high`, in the measure's
unit. Live values are *beyond* the band to the extent that the live distribution cannot be obtained from the
simulated one by moving each value by `low` to `high`:

    above = max over x of F_simulated(x - high) - F_live(x)
    below = max over x of F_live(x) - F_simulated(x - low)

Both are shares of trials (Strassen's theorem: `above` is the least share of live trials that lie above
the band, however live and simulated trials are paired). For a band of width 0 they are the one-sided
statistics of Kolmogorov and Smirnov. They need no assumption about the shape, and detect a difference in spread, or in
how often something happens, as well as one in location.

There are two questions about a band, and neither is the negation of the other:

- *Does it hold?* `at_most` is an upper confidence bound of the share beyond. The band holds if it is at most TOLERATED.
  That must be so at every x, so each x is tested at its own level (intersection-union test): the bound at x is that of
  a difference of two shares, from Clopper's and Pearson's limits of each (MOVER). With few trials the bound is high, so
  they never show that a band holds.
- *Is it broken?* `p_value` is that of the two one-sided tests of Kolmogorov and Smirnov, the smaller one
  doubled. It is exact for up to about 100 live trials against 1,000 simulated ones, where scipy changes to the
  asymptotic distribution, and errs to the safe side with ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: The share of trials that may lie beyond a band. 30 live trials bound a share that is 0 to 16 percentage
#: points (Clopper and Pearson, 15 of 30 on either side of a value), and the sampling error of the rest comes on
#: top: two samples of one distribution with a wide spread agree in 40 to 80 % of cases with 30 live trials, and
#: in 99 % with 100. A smaller share would need more live trials than are practical.
TOLERATED = 0.25

#: The confidence of the one-sided upper bound of the share beyond, and of the interval of the difference of medians.
CONFIDENCE = 0.95

#: With fewer trials than this in a sample no band can be shown to hold, even if none lies beyond it:
#: 1 - (1 - CONFIDENCE)^(1/n) is above TOLERATED.
LEAST_TRIALS = 11

#: The number of samples drawn for the interval of the difference of medians. The generator is seeded, so the same
#: samples give the same interval.
RESAMPLES = 999

#: The quantiles that are shown of each sample.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

Values = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Band:
    """How far live values may lie from simulated ones, in the measure's unit; `low` ≤ 0 ≤ `high`."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if not self.low <= 0 <= self.high:
            raise ValueError(f"a band holds 0; this one goes from {self.low} to {self.high}")


@dataclass(frozen=True, slots=True)
class Beyond:
    """The share of live trials beyond a band: as found, its upper bound, and the p-value of the hypothesis that it is
    zero."""

    share: float
    at_most: float
    p_value: float

    @property
    def holds(self) -> bool:
        """Whether the samples show that no more than the tolerated share is beyond."""
        return self.at_most <= TOLERATED


@dataclass(frozen=True, slots=True)
class Effect:
    """How large a difference is, live minus simulated.

    `median`: of medians, in the measure's unit, with its 95 % bootstrap interval `low` to `high`.
    `delta`: Cliff's, from -1 (every live value below every simulated one) to 1.
    """

    median: float
    low: float
    high: float
    delta: float


def as_values(sample: Sequence[int]) -> Values:
    """A sample, sorted. Raises ValueError for an empty one."""
    if not sample:
        raise ValueError("a sample needs at least one value")
    return np.sort(np.asarray(sample, dtype=np.int64))


def quantiles(sample: Values) -> tuple[float, ...]:
    """QUANTILES of a sample, each a value that was measured (no interpolation)."""
    return tuple(float(each) for each in np.quantile(sample, QUANTILES, method="inverted_cdf"))


def beyond(live: Values, simulated: Values, band: Band, excused: Values | None = None) -> Beyond:
    """How much of `live` lies beyond the band around `simulated`. `excused`: the live values, minus the delay that each
    trial may have for a reason of its own."""
    above = _one_side(live if excused is None else excused, simulated + band.high)
    # Mirrored, "below" is "above".
    below = _one_side(np.sort(-live), np.sort(-(simulated + band.low)))
    sides = (above, below)
    return Beyond(
        share=max(side.share for side in sides),
        at_most=max(side.at_most for side in sides),
        p_value=min(1.0, 2 * min(side.p_value for side in sides)),
    )


def _one_side(live: Values, limit: Values) -> Beyond:
    """How much of `live` lies above `limit`: the simulated values, moved to the band's upper end."""
    from scipy.stats import ks_2samp  # noqa: PLC0415 - every command would import it: a second

    at = np.unique(np.concatenate([live, limit]))
    at = np.concatenate([at[:1] - 1, at])  # below every value, too: no value was seen there, of so many
    count_live = np.searchsorted(live, at, side="right")
    count_limit = np.searchsorted(limit, at, side="right")
    share_live, share_limit = count_live / len(live), count_limit / len(limit)
    least = _clopper_pearson_low(count_live, len(live))
    most = 1 - _clopper_pearson_low(len(limit) - count_limit, len(limit))
    bounds = share_limit - share_live + np.hypot(most - share_limit, share_live - least)
    return Beyond(
        share=max(0.0, float(np.max(share_limit - share_live))),
        at_most=float(np.clip(np.max(bounds), 0.0, 1.0)),
        p_value=float(ks_2samp(live, limit, alternative="less").pvalue),
    )


def _clopper_pearson_low(count: NDArray[np.int64], number: int) -> NDArray[np.float64]:
    """The one-sided lower limit of a share, if `count` of `number` were seen."""
    from scipy.special import betaincinv  # noqa: PLC0415 - as above

    low: NDArray[np.float64] = betaincinv(np.maximum(count, 1), number - count + 1, 1 - CONFIDENCE)
    return np.where(count == 0, 0.0, low)


def effect(live: Values, simulated: Values) -> Effect:
    """The sizes of the difference between two samples."""
    generator = np.random.default_rng(0)
    drawn = [_median(generator.choice(each, (RESAMPLES, len(each))), axis=1) for each in (live, simulated)]
    ends = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
    low, high = np.quantile(drawn[0] - drawn[1], ends, method="inverted_cdf")
    below = np.searchsorted(simulated, live, side="left")
    above = len(simulated) - np.searchsorted(simulated, live, side="right")
    delta = (int(below.sum()) - int(above.sum())) / (len(live) * len(simulated))
    return Effect(float(_median(live) - _median(simulated)), float(low), float(high), delta)


def _median(sample: Values, axis: int | None = None) -> NDArray[np.float64]:
    """The medians. Each is a value that was measured, because half a count makes no sense."""
    return np.asarray(np.quantile(sample, 0.5, axis=axis, method="inverted_cdf"))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values, corrected for their number (Holm). If those below a level count as alarms, the chance of at least
    one false alarm is at most this level."""
    corrected = [0.0] * len(p_values)
    reached = 0.0
    for nth, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        reached = max(reached, min(1.0, (len(p_values) - nth) * p_values[index]))
        corrected[index] = reached
    return corrected
