"""The verdict of each measure: do live trials agree with simulated ones?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from statistics import median, median_low

from rebalance_lab.analysis.agreement.causes import CAUSES, SLOWED, Cause, Explained, Live, explained
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

#: The share of a world's trials (without those left out) that must have a value of a measure. It is not known what the
#: others would show: a check may be unknown exactly where the worlds differ.
LEAST_SHARE = 0.9


class Agreement(StrEnum):
    """The verdict of one measure.

    - AGREES: the samples show that no more than the tolerated share of live trials lies beyond the margin.
    - EXPLAINED: they do not show this, but they show it for the margin plus what the declared causes explain.
    - DIFFERS: more live trials lie beyond the margin plus what the causes explain than chance allows.
    - UNDECIDED: the samples show none of these; there are too few trials, or too many without a value.
    """

    AGREES = "agrees"
    EXPLAINED = "differs, explained"
    DIFFERS = "differs"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Sample:
    """The sorted values of one world. `quantiles`: as in `statistics.QUANTILES`, empty without values. `trials`: the
    number of trials that could have a value."""

    values: Values | None
    quantiles: tuple[float, ...]
    trials: int

    @property
    def n(self) -> int:
        return 0 if self.values is None else len(self.values)

    @property
    def whole(self) -> bool:
        """Whether (nearly) all trials that could have a value have one."""
        return self.n >= LEAST_SHARE * self.trials


@dataclass(frozen=True, slots=True)
class Compared:
    """One measure in two worlds.

    `margin`: the difference that does not count, in the measure's unit. `explained`: the causes that apply, and how far
    they reach beyond the margin. `repeated`: the live trials in which more attempts failed than in
    the median simulated one. `plain`: what lies beyond the margin; `beyond`: what lies beyond the margin and the
    causes. Both and `effect` are None if one world has no value. `p_value`: of
    `beyond`, corrected for the number of measures. `slowed`: the same measure compared with simulated trials whose
    operations are as slow as live ones, if that decides (`beside_slowed`).
    """

    measure: Measure
    live: Sample
    simulated: Sample
    effect: Effect | None
    margin: int
    explained: Explained
    repeated: int
    plain: Beyond | None
    beyond: Beyond | None
    p_value: float
    verdict: Agreement
    slowed: Compared | None = None

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
    """Compare every measure that one of the worlds has, in the order of presentation: steps and sessions, the table,
    and the share of trials left out. `parameters`: those of the trials."""
    work = _work(simulated)
    rows = []
    for measure in _measures(live, simulated):
        more = _failed_more(measure, live, simulated)
        found = explained(measure, world, parameters, _work_of(measure, work), causes, repeated=any(more))
        rows.append(_compared(measure, live, simulated, margin(measure, parameters), found, more))
    corrected = holm([row.beyond.p_value for row in rows if row.beyond is not None])
    p_values = iter(corrected)
    return tuple(row if row.beyond is None else _judged(replace(row, p_value=next(p_values))) for row in rows)


def asks_for_slowed(rows: Iterable[Compared]) -> bool:
    """Whether some measure differs that slow operations may change (`causes.SLOWED`)."""
    return any(row.verdict is Agreement.DIFFERS and row.measure.family in SLOWED for row in rows)


def beside_slowed(rows: Sequence[Compared], slowed: Sequence[Compared]) -> tuple[Compared, ...]:
    """The rows, in which all measures that slow operations may change get the verdict of the comparison with simulated
    trials whose operations are as slow as live ones. All of them get it, because one simulator must fit them all.
    `slowed`: the rows of that comparison."""
    verdicts = {row.measure: row for row in slowed if row.measure.family in SLOWED}
    return tuple(_slowed(row, verdicts[row.measure]) if row.measure in verdicts else row for row in rows)


def _slowed(row: Compared, slowed: Compared) -> Compared:
    agrees = {Agreement.AGREES: row.verdict if row.verdict is Agreement.AGREES else Agreement.EXPLAINED}
    return replace(row, slowed=slowed, verdict=agrees.get(slowed.verdict, slowed.verdict))


def overall(rows: Iterable[Compared]) -> Agreement:
    """The verdict of a whole comparison: the worst of its rows."""
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
        step: Work(*(round(median(getattr(work, each.name) for work in works)) for each in fields(Work)))
        for step, works in found.items()
    }


def _work_of(measure: Measure, work: Mapping[str, Work]) -> Work:
    """What was done in the time that a measure covers: in its step; in all steps if it is a sum; in the largest step if
    it is a length."""
    if measure.step is not None:
        return work.get(measure.step, Work())
    if measure.source is Source.CHANGES:
        return Work(*(sum(getattr(each, field.name) for each in work.values()) for field in fields(Work)))
    return max(work.values(), key=lambda each: each.operations, default=Work())


def _failed_more(measure: Measure, live: Sequence[Measured], simulated: Sequence[Measured]) -> list[int]:
    """For each live trial that has the measure: how many more attempts failed in the time that it covers than in the
    median simulated trial."""
    usual = median_low([trial.failed_in(measure) for trial in _having(measure, simulated)] or [0])
    return [max(0, trial.failed_in(measure) - usual) for trial in _having(measure, live)]


def _compared(
    measure: Measure,
    live: Sequence[Measured],
    simulated: Sequence[Measured],
    margin_: int,
    causes: Explained,
    more: Sequence[int],
) -> Compared:
    first, second = (_sample(measure, trials) for trials in (live, simulated))
    plain = widened = size = None
    if first.values is not None and second.values is not None:
        size = effect(first.values, second.values)
        plain = beyond(first.values, second.values, Band(-margin_, margin_))
        excused = first.values
        if causes.attempt:
            found = zip(_having(measure, live), more, strict=True)
            excused = as_values([trial.values[measure] - extra * causes.attempt for trial, extra in found])
        widened = beyond(first.values, second.values, _widened(margin_, causes.band), excused)
    repeated = sum(1 for each in more if each) if causes.attempt else 0
    return Compared(measure, first, second, size, margin_, causes, repeated, plain, widened, 1.0, Agreement.UNDECIDED)


def _having(measure: Measure, trials: Sequence[Measured]) -> list[Measured]:
    return [trial for trial in trials if measure in trial.values]


def _sample(measure: Measure, trials: Sequence[Measured]) -> Sample:
    if measure is LEFT_OUT:
        found = [int(trial.left_out is not None) for trial in trials]
        could = len(trials)
    else:
        found = [trial.values[measure] for trial in _having(measure, trials)]
        could = sum(trial.left_out is None for trial in trials)
    if not found:
        return Sample(None, (), could)
    values = as_values(found)
    return Sample(values, quantiles(values), could)


def _widened(margin_: int, band: Band) -> Band:
    return Band(band.low - margin_, band.high + margin_)


def _judged(row: Compared) -> Compared:
    """The row with its verdict, from its corrected p-value."""
    assert row.plain is not None and row.beyond is not None
    whole = row.live.whole and row.simulated.whole
    if whole and row.plain.holds:
        return replace(row, verdict=Agreement.AGREES)
    if whole and row.explained.causes and row.beyond.holds:
        return replace(row, verdict=Agreement.EXPLAINED)
    if row.p_value < SIGNIFICANT:
        return replace(row, verdict=Agreement.DIFFERS)
    return row
