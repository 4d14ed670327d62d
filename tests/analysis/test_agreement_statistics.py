"""Two samples and a band, on samples whose distributions are known: what is shown, and what is not."""

from __future__ import annotations

import numpy as np
import pytest

from rebalance_lab.analysis.agreement.statistics import (
    LEAST_TRIALS,
    TOLERATED,
    Band,
    Beyond,
    Values,
    as_values,
    beyond,
    effect,
    holm,
    quantiles,
)

MARGIN = 100_000
BAND = Band(-MARGIN, MARGIN)
LIVE, SIMULATED = 30, 1000


def uniform(seed: int, number: int, low: int = 1_000_000, high: int = 2_000_000) -> Values:
    return as_values(np.random.default_rng(seed).integers(low, high, number).tolist())


def test_samples_of_one_distribution_agree() -> None:
    """A margin of a tenth of the spread: 30 trials show it in most cases, 100 in all of these."""
    found = [beyond(uniform(seed, LIVE), uniform(100 + seed, SIMULATED), BAND) for seed in range(40)]
    assert all(each.p_value > 0.05 for each in found)
    assert sum(each.holds for each in found) >= 30
    assert all(beyond(uniform(seed, 100), uniform(100 + seed, SIMULATED), BAND).holds for seed in range(40))


def test_false_alarms_are_no_more_than_the_p_value_says() -> None:
    """Without a margin, and with samples of one distribution: 5 % of p-values at most are below 5 %."""
    alarms = [beyond(uniform(seed, LIVE), uniform(1000 + seed, 300), Band(0, 0)).p_value < 0.05 for seed in range(200)]
    assert sum(alarms) <= 16  # the upper 1 % of a binomial with 200 and 5 %


def test_a_shift_of_more_than_the_margin_is_seen() -> None:
    for seed in range(10):
        late = beyond(uniform(seed, LIVE) + 6 * MARGIN, uniform(100 + seed, SIMULATED), BAND)
        assert late.p_value < 0.001
        assert not late.holds
        early = beyond(uniform(seed, LIVE) - 6 * MARGIN, uniform(100 + seed, SIMULATED), BAND)
        assert (early.p_value < 0.001, early.holds) == (True, False)


def test_a_shift_by_the_margin_is_no_difference_but_is_rarely_shown_to_be_none() -> None:
    found = [beyond(uniform(seed, LIVE) + MARGIN, uniform(100 + seed, SIMULATED), BAND) for seed in range(40)]
    assert sum(each.p_value < 0.05 for each in found) <= 4
    assert any(not each.holds for each in found)


def test_a_shift_within_a_one_sided_band_is_allowed_and_its_opposite_is_not() -> None:
    late = Band(-MARGIN, 10 * MARGIN)
    sample = uniform(1, SIMULATED)
    assert beyond(uniform(2, LIVE) + 5 * MARGIN, sample, late).holds
    assert beyond(uniform(2, LIVE) - 5 * MARGIN, sample, late).p_value < 0.001


def test_equal_medians_with_another_spread_differ() -> None:
    wide = uniform(3, LIVE, -4_000_000, 7_000_000)
    assert beyond(wide, uniform(4, SIMULATED), BAND).p_value < 0.01


def test_how_often_something_happens_is_seen() -> None:
    """Item 5 of the audit: a zombie in every trial, where the simulator had one in 39 of 100."""
    simulated = as_values([1] * 390 + [0] * 610)
    found = beyond(as_values([1] * LIVE), simulated, Band(0, 0))
    assert found.share == pytest.approx(0.61)
    assert found.p_value < 0.001


def test_too_few_trials_show_nothing_even_if_they_are_all_alike() -> None:
    few, enough = as_values([42] * (LEAST_TRIALS - 1)), as_values([42] * LEAST_TRIALS)
    many = as_values([42] * SIMULATED)
    assert beyond(few, many, Band(0, 0)).at_most > TOLERATED
    assert beyond(few, many, Band(0, 0)).p_value == 1
    assert beyond(enough, many, Band(0, 0)).holds
    assert beyond(as_values([42] * 5), many, Band(0, 0)) == Beyond(0.0, pytest.approx(0.4507, abs=1e-3), 1.0)  # type: ignore[arg-type]


def test_few_simulated_trials_show_nothing_either() -> None:
    assert not beyond(as_values([42] * SIMULATED), as_values([42] * 5), Band(0, 0)).holds


def test_the_bound_is_that_of_clopper_and_pearson_where_the_other_sample_is_certain() -> None:
    """3 of 30 live trials are above all simulated ones: at most 23.9 % are, with 95 % confidence."""
    live = as_values([0] * 27 + [10] * 3)
    found = beyond(live, as_values([0] * 1_000_000), Band(0, 0))
    assert found.share == pytest.approx(0.1)
    assert found.at_most == pytest.approx(0.2386, abs=1e-3)


def test_beyond_is_the_same_looked_at_from_the_other_side() -> None:
    one, other = uniform(5, 40), uniform(6, 50)
    assert beyond(one, other, Band(-300, 700)) == beyond(np.sort(-one), np.sort(-other), Band(-700, 300))


def test_the_effect_sizes() -> None:
    found = effect(as_values([11, 12, 13]), as_values([1, 2, 3]))
    assert (found.median, found.delta) == (10, 1)
    assert 8 <= found.low <= 10 <= found.high <= 12
    assert effect(as_values([1, 2, 3]), as_values([1, 2, 3])).delta == 0
    assert effect(as_values([1, 2]), as_values([2, 3])).delta == -0.75
    same = uniform(7, 50)
    assert effect(same, same) == effect(same, same), "the interval's draws are seeded"


def test_quantiles_are_values_that_were_measured() -> None:
    assert quantiles(as_values([40, 10, 30, 20])) == (10, 10, 20, 30, 40)


def test_holm() -> None:
    assert holm([]) == []
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1, 1]


def test_what_cannot_be() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        as_values([])
    with pytest.raises(ValueError, match="a band holds 0"):
        Band(1, 2)
