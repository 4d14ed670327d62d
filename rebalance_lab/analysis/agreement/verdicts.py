"""What is said of each measure: do live trials agree with simulated ones?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import median

from rebalance_lab.analysis.agreement.causes import CAUSES, Cause, Explained, Live, explained
from rebalance_lab.analysis.agreement.measures import LEFT_OUT, MEASURES, Measure, Measured, Source, Work, margin
from rebalance_lab.analysis.agreement.statistics import (
    Band,
    Beyond,
    Effect,
    Values,
    as_values,
    beyond,
    effect,
    holm,
    quantiles,
)

#: The chance of at least one false *differs* among all measures of one comparison.
SIGNIFICANT = 0.05


class Agreement(StrEnum):
    """The verdict of one measure.

    - AGREES: it is shown that no more than the tolerated share of live trials lies beyond the margin.
    - EXPLAINED: that is not shown, but it is for the margin and what the declared causes explain.
    - DIFFERS: live trials lie beyond the margin and all that the causes explain, and by more than chance.
    - UNDECIDED: none of these is shown; there are too few trials to tell.
    """

    AGREES = "agrees"
    EXPLAINED = "differs, explained"
    DIFFERS = "differs"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Sample:
    """The values of one world, sorted; `quantiles`: as `statistics.QUANTILES`, empty without values."""

    values: Values | None
    quantiles: tuple[float, ...]

    @property
    def n(self) -> int:
        return 0 if self.values is None else len(self.values)


@dataclass(frozen=True, slots=True)
class Compared:
    """One measure in two worlds.

    `margin`: the difference that is none, in the measure's unit. `explained`: the causes at work, and
    how far they reach beyond the margin. `plain`: what lies beyond the margin; `beyond`: what lies beyond
    the margin and the causes. Both and `effect` are None where one world has no value. `p_value`: of
    `beyond`, corrected for the number of measures.
    """

    measure: Measure
    live: Sample
    simulated: Sample
    effect: Effect | None
    margin: int
    explained: Explained
    plain: Beyond | None
    beyond: Beyond | None
    p_value: float
    verdict: Agreement

    @property
    def constant(self) -> bool:
        """Whether every trial of both worlds has the same value."""
        values = {int(each) for sample in (self.live, self.simulated) for each in _ends(sample)}
        return len(values) == 1

    @property
    def band(self) -> Band:
        """How far live values may lie from simulated ones: the margin and what the causes explain."""
        return _widened(self.margin, self.explained.band)


def _ends(sample: Sample) -> Iterable[int]:
    return () if sample.values is None else (sample.values[0], sample.values[-1])


def compare(
    live: Sequence[Measured],
    simulated: Sequence[Measured],
    world: Live,
    parameters: Mapping[str, object],
    causes: Sequence[Cause] = CAUSES,
) -> tuple[Compared, ...]:
    """Every measure that one of the worlds has, in the order of people's reading: steps and sessions,
    the table, and the share of trials left out. `parameters`: those of the trials."""
    work = _work(simulated)
    rows = [
        _compared(measure, live, simulated, margin(measure, parameters), explained_)
        for measure in _measures(live, simulated)
        for explained_ in [explained(measure, world, parameters, _work_of(measure, work), causes)]
    ]
    corrected = holm([row.beyond.p_value for row in rows if row.beyond is not None])
    p_values = iter(corrected)
    return tuple(row if row.beyond is None else _judged(replace(row, p_value=next(p_values))) for row in rows)


def overall(rows: Iterable[Compared]) -> Agreement:
    """The verdict of a whole comparison: its worst."""
    verdicts = {row.verdict for row in rows}
    worst = (Agreement.DIFFERS, Agreement.UNDECIDED, Agreement.EXPLAINED)
    return next((verdict for verdict in worst if verdict in verdicts), Agreement.AGREES)


def _measures(live: Sequence[Measured], simulated: Sequence[Measured]) -> list[Measure]:
    found = {measure: None for trial in (*simulated, *live) for measure in trial.values}
    own = [measure for measure in found if measure.source in (Source.SETTLED, Source.SESSION)]
    return [*own, *(measure for measure in MEASURES if measure in found), LEFT_OUT]


def _work(simulated: Sequence[Measured]) -> dict[str, Work]:
    """What the median simulated trial did, by step."""
    found: dict[str, list[Work]] = {}
    for trial in simulated:
        for step, work in trial.work.items():
            found.setdefault(step, []).append(work)
    return {
        step: Work(*(round(median(getattr(work, name) for work in works)) for name in ("reads", "writes", "attempts")))
        for step, works in found.items()
    }


def _work_of(measure: Measure, work: Mapping[str, Work]) -> Work:
    """What was done in the time that a measure measures: in its step, in all of them where it is a
    sum, in the largest where it is a length."""
    if measure.step is not None:
        return work.get(measure.step, Work())
    if measure.source is Source.CHANGES:
        every = work.values()
        return Work(
            sum(each.reads for each in every),
            sum(each.writes for each in every),
            sum(each.attempts for each in every),
            steps=len(work),
        )
    return max(work.values(), key=lambda each: each.operations, default=Work())


def _compared(
    measure: Measure, live: Sequence[Measured], simulated: Sequence[Measured], margin_: int, causes: Explained
) -> Compared:
    samples = [_sample(measure, trials) for trials in (live, simulated)]
    first, second = samples
    plain = widened = size = None
    if first.values is not None and second.values is not None:
        size = effect(first.values, second.values)
        plain = beyond(first.values, second.values, Band(-margin_, margin_))
        widened = beyond(first.values, second.values, _widened(margin_, causes.band))
    return Compared(measure, first, second, size, margin_, causes, plain, widened, 1.0, Agreement.UNDECIDED)


def _sample(measure: Measure, trials: Sequence[Measured]) -> Sample:
    if measure is LEFT_OUT:
        found = [int(trial.left_out is not None) for trial in trials]
    else:
        found = [trial.values[measure] for trial in trials if measure in trial.values]
    if not found:
        return Sample(None, ())
    values = as_values(found)
    return Sample(values, quantiles(values))


def _widened(margin_: int, band: Band) -> Band:
    return Band(band.low - margin_, band.high + margin_)


def _judged(row: Compared) -> Compared:
    """The row with its verdict, once its p-value is corrected."""
    assert row.plain is not None and row.beyond is not None
    if row.plain.holds:
        return replace(row, verdict=Agreement.AGREES)
    if row.explained.causes and row.beyond.holds:
        return replace(row, verdict=Agreement.EXPLAINED)
    if row.p_value < SIGNIFICANT:
        return replace(row, verdict=Agreement.DIFFERS)
    return row
