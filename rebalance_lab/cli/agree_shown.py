"""What `agree` found, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.analysis.agreement.causes import Live
from rebalance_lab.analysis.agreement.measures import Measured, Unit
from rebalance_lab.analysis.agreement.statistics import LEAST_TRIALS, QUANTILES, TOLERATED
from rebalance_lab.analysis.agreement.verdicts import Agreement, Compared, Sample, overall
from rebalance_lab.cli.agree_samples import LiveSample
from rebalance_lab.cli.terminal import answer, say, styled, table, whole
from rebalance_lab.trials.plan import Plan, run_command

#: Shorter times are shown in milliseconds.
_SECOND_US = 1_000_000

_WORLD = {Live.PROCESSES: "processes", Live.REAL: "real members"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One live sample beside the simulated one. `slowed`: the plan of the simulated trials with operations as slow
    as live ones; None if they were not run."""

    live: LiveSample
    simulated: Sequence[Measured]
    rows: tuple[Compared, ...]
    slowed: Plan | None = None

    @property
    def title(self) -> str:
        plan = self.live.plan
        settings = [f"{name}={plan.parameters[name]}" for name in plan.changed]
        facts = [plan.scenario, plan.variant, *(["control"] if plan.control else []), *settings]
        return " · ".join([*facts, f"{_WORLD[self.live.world]} against simulated"])


def show(comparison: Comparison) -> None:
    """One comparison on the terminal. It fits 80 columns."""
    say(f"[bold]{comparison.title}[/]")
    for name, trials in (("live", comparison.live.trials), ("simulated", comparison.simulated)):
        say(sample_line(trials), lead=f"{name:9} ", markup=False)
    told = [row for row in comparison.rows if not row.constant]
    if told:
        shown = [
            (name_of(row), quantile_text(row, row.live), quantile_text(row, row.simulated), _short(row.verdict))
            for row in told
        ]
        columns = ("measure", "live", "simulated", "verdict")
        answer().print(table("", columns, shown, numbers=("live", "simulated")))
        say("Numbers are the 5 %, 50 % and 95 % quantiles of each sample.")
    _show_reasons(comparison.rows)
    for failed in comparison.live.failed:
        why = failed.why.splitlines()[0]
        whole(f"failed: seed {failed.plan.seed}: {why}: {run_command(failed.plan)}")
    say(styled(overall(comparison.rows)), lead="verdict  ")


def sample_line(trials: Sequence[Measured]) -> str:
    """`30 trials, 2 left out: rest was missed (2)`."""
    why = Counter(trial.left_out for trial in trials if trial.left_out is not None)
    told = f"{len(trials)} trials, {sum(why.values())} left out"
    return told + (f": {'; '.join(f'{reason} ({number})' for reason, number in why.most_common(3))}" if why else "")


def name_of(row: Compared) -> str:
    """The measure with its unit: `settling: paused, s`."""
    return ", ".join(filter(None, (row.measure.name, _unit(row))))


def _unit(row: Compared) -> str:
    """s or ms for times and partition-times, so that the numbers are short; empty for counts and shares."""
    if row.measure.unit in (Unit.COUNT, Unit.SHARE):
        return ""
    values = (*row.live.quantiles, *row.simulated.quantiles)
    return "s" if max(values, default=0) >= _SECOND_US else "ms"


def _short(verdict: Agreement) -> str:
    return styled("explained" if verdict is Agreement.EXPLAINED else verdict)


def quantile_text(row: Compared, sample: Sample) -> str:
    """The 5 %, 50 % and 95 % quantiles."""
    if not sample.n:
        return "none"
    return " ".join(number(row, value) for value in sample.quantiles[::2])


def number(row: Compared, value: float) -> str:
    """A value of a measure, in the unit that is shown."""
    match _unit(row):
        case "s":
            return f"{value / 1e6:.2f}"
        case "ms":
            return f"{value / 1e3:.0f}" if abs(value) >= 10_000 or not value else f"{value / 1e3:.1f}"
        case _:
            return f"{value:g}"


def _show_reasons(rows: Sequence[Compared]) -> None:
    """Why measures have their verdicts, the worst verdict first; then measures that are the same in every trial."""
    few = [row for row in rows if row.verdict is Agreement.UNDECIDED and _is_small(row)]
    for verdict in (Agreement.DIFFERS, Agreement.UNDECIDED, Agreement.EXPLAINED):
        reasons = [f"{row.measure.name}: {reason(row)}" for row in rows if row.verdict is verdict and row not in few]
        if few and verdict is Agreement.UNDECIDED:
            least = min(min(row.live.n, row.simulated.n) for row in few)
            reasons.append(
                f"{len(few)} measures: the smaller sample has {least} trials; "
                f"nothing can be shown to agree with fewer than {LEAST_TRIALS}"
            )
        if reasons:
            say(styled(verdict))
        for each in reasons:
            say(each, lead="  ", markup=False)
    same = [row for row in rows if row.constant and row.simulated.n]
    none = [row.measure.name for row in same if not row.simulated.quantiles[0]]
    some = [f"{row.measure.name} {_value(row)}" for row in same if row.simulated.quantiles[0]]
    for heading, names in (("the same in every trial", some), ("none in any trial", none)):
        if names:
            say(heading)
            say("; ".join(names), lead="  ", markup=False)


def _is_small(row: Compared) -> bool:
    return min(row.live.n, row.simulated.n) < LEAST_TRIALS


def _value(row: Compared) -> str:
    return " ".join(filter(None, (number(row, row.simulated.quantiles[0]), _unit(row))))


def reason(row: Compared) -> str:
    """Why a measure has its verdict, in one sentence."""
    if row.slowed is not None:
        beside = (
            f"beside simulated trials with operations as slow as live ones ({quantile_text(row, row.slowed.simulated)})"
        )
        return f"{beside}: {reason(row.slowed)}"
    if row.effect is None or row.beyond is None or row.plain is None:
        return f"{row.live.n} live and {row.simulated.n} simulated trials have it"
    if row.verdict is Agreement.UNDECIDED and not (row.live.whole and row.simulated.whole):
        missing = [
            f"{sample.trials - sample.n} of {sample.trials} {world} trials"
            for world, sample in (("live", row.live), ("simulated", row.simulated))
            if not sample.whole
        ]
        return f"{' and '.join(missing)} have no value: its check is unknown there"
    unit = _unit(row)
    low, median, high = (number(row, value) for value in (row.effect.low, row.effect.median, row.effect.high))
    told = f"live minus simulated is {median} {unit}".rstrip() + f" at the median ({low} to {high}), "
    allowed = f"the margin of {number(row, row.margin)} {unit}".rstrip() if row.margin else "any margin"
    if row.verdict is Agreement.EXPLAINED:
        causes = ", ".join(cause.name for cause in row.explained.causes)
        return told + f"within {_band(row)}, which {causes} explain"
    if row.explained.causes:
        allowed = f"the explained band of {_band(row)}"
    if row.verdict is Agreement.DIFFERS:
        return told + f"{row.beyond.share:.0%} of trials are beyond {allowed} (p = {row.p_value:.2g})"
    return told + f"up to {row.beyond.at_most:.0%} of trials may be beyond {allowed}; {TOLERATED:.0%} are tolerated"


def _band(row: Compared) -> str:
    unit = _unit(row)
    told = f"{number(row, row.band.low)} to {number(row, row.band.high)} {unit}".rstrip()
    if not row.repeated:
        return told
    more = f"{number(row, row.explained.attempt)} {unit}".rstrip()
    return f"{told} (and {more} for each attempt that failed more than usual, in {row.repeated} live trials)"


def shape(comparison: Comparison) -> dict[str, object]:
    """The JSON of one comparison. Values in the measure's `unit`; shares and p-values as numbers."""
    plan = comparison.live.plan
    return {
        "scenario": plan.scenario,
        "rules": plan.variant,
        "control": plan.control,
        "settings": {name: plan.parameters[name] for name in plan.changed},
        "world": comparison.live.world,
        "live": {**_sample_shape(comparison.live.trials), "stored": comparison.live.stored},
        "failed": [{"trial": each.plan.trial_id, "why": each.why} for each in comparison.live.failed],
        "simulated": _sample_shape(comparison.simulated),
        "slowed": None if comparison.slowed is None else run_command(comparison.slowed),
        "verdict": overall(comparison.rows),
        "measures": [_row_shape(row) for row in comparison.rows],
    }


def _sample_shape(trials: Sequence[Measured]) -> dict[str, object]:
    why = Counter(trial.left_out for trial in trials if trial.left_out is not None)
    return {"trials": len(trials), "left_out": [{"why": reason, "trials": number} for reason, number in why.items()]}


def _row_shape(row: Compared) -> dict[str, object]:
    size, plain, widened = row.effect, row.plain, row.beyond
    return {
        "measure": row.measure.key,
        "name": row.measure.name,
        "unit": row.measure.unit,
        "verdict": row.verdict,
        "live": _quantiles(row.live),
        "simulated": _quantiles(row.simulated),
        "median_difference": None
        if size is None
        else {"value": size.median, "low": size.low, "high": size.high, "cliffs_delta": size.delta},
        "margin": row.margin,
        "explained": {
            "low": row.explained.band.low,
            "high": row.explained.band.high,
            "causes": [cause.name for cause in row.explained.causes],
            "attempt": row.explained.attempt,
            "repeated": row.repeated,
        },
        "slowed": None if row.slowed is None else _row_shape(row.slowed),
        "beyond_margin": None if plain is None else {"share": plain.share, "at_most": plain.at_most},
        "beyond_explained": None
        if widened is None
        else {"share": widened.share, "at_most": widened.at_most, "p_value": row.p_value},
    }


def _quantiles(sample: Sample) -> Mapping[str, float]:
    found = {f"q{round(100 * share):02}": value for share, value in zip(QUANTILES, sample.quantiles, strict=False)}
    return {"trials": sample.n, **found}
