"""How long things last, over all trials: empirical distributions with a panel for each scenario, and
rebalances with a line for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import altair

from rebalance_lab.analysis.results import Analysis
from rebalance_lab.checks import CHECKS
from rebalance_lab.checks.model import Outcome
from rebalance_lab.report import glossary
from rebalance_lab.report.charts.chart import (
    Chart,
    Record,
    by_world,
    colours,
    data,
    dumbbells,
    finished,
    world_name,
    world_shape,
)

#: Steps of one curve, at most: more cannot be seen.
STEPS = 120
#: The checks whose lengths are charted: two owners in belief, two at work, no owner in the registry.
LENGTHS = ("belief_overlap", "effect_overlap", "unowned_window")
#: With so few trials each is shown as a point.
FEW = 8

FEW_TICKS = altair.Axis(tickCount=5, labelOverlap=True)

#: (scenario, world, rules) -> lengths in seconds
Series = dict[tuple[str, str, str], list[float]]


def ecdf(values: Iterable[float], most: int = STEPS) -> list[tuple[float, float]]:
    """(x, share of values <= x) at each value, thinned to about `most` steps; both ends stay."""
    ordered = sorted(values)
    number = len(ordered)
    steps = [
        (value, (nth + 1) / number)
        for nth, value in enumerate(ordered)
        if nth + 1 == number or ordered[nth + 1] != value
    ]
    if len(steps) <= most:
        return steps
    stride = (len(steps) - 1) / (most - 1)
    return [steps[round(nth * stride)] for nth in range(most)]


def lengths_of(analysis: Analysis, check: str) -> Series:
    """The longest of each decided trial, without controls and planted bugs, by kind of trial, for scenarios in which
    the check found any violation."""
    found: Series = {}
    told: set[str] = set()
    for each in analysis.outcomes:
        if each.check == check and not each.control and each.plant is None and each.outcome != Outcome.UNKNOWN:
            found.setdefault((each.scenario, world_name(each.world), each.rules), []).append(each.longest_us / 1e6)
            if each.outcome == Outcome.VIOLATED:
                told.add(each.scenario)
    return {kind: values for kind, values in found.items() if kind[0] in told}


def rebalance_times(analysis: Analysis) -> Series:
    """The time from a change to the rest of the group, for each rebalance."""
    trials = {trial.id: trial for trial in analysis.trials if not trial.control and trial.plant is None}
    found: Series = {}
    for each in analysis.episodes:
        trial = trials.get(each.trial)
        if trial is not None and each.part == "change" and each.rested:
            kind = (trial.scenario, world_name(trial.world), trial.variant)
            if each.duration_us:
                found.setdefault(kind, []).append(each.duration_us / 1e6)
    return found


def distribution_charts(analysis: Analysis) -> list[Chart]:
    """A chart for each check that found anything, then one for the time of rebalances."""
    charts = []
    for check in LENGTHS:
        series = lengths_of(analysis, check)
        if series:
            caption = f"{CHECKS[check].meaning} The longest one in each trial; controls are left out."
            charts.append(_curves(series, f"ecdf-{check}".replace("_", "-"), glossary.title(check), caption))
    times = rebalance_times(analysis)
    return [*charts, _ranges(times)] if times else charts


def curve_records(series: Series) -> list[Record]:
    """The steps of every curve; each begins at 0, with share 0."""
    records: list[Record] = []
    for (scenario, world, rules), values in sorted(series.items()):
        kind = {"scenario": scenario, "world": world, "rules": rules, "trials": len(values)}
        steps = ecdf(values)
        records += [{**kind, "seconds": x, "share": 0.0, "point": False} for x in (0.0, steps[0][0])]
        records += [
            {**kind, "seconds": round(x, 6), "share": round(share, 4), "point": len(values) <= FEW}
            for x, share in steps
        ]
    return records


def _curves(series: Series, chart_id: str, title: str, caption: str) -> Chart:
    records = curve_records(series)
    base = altair.Chart(data(records))
    few = all(each["point"] for each in records if each["share"])
    lines = base.mark_line(interpolate="step-after", strokeWidth=2, point={"size": 36} if few else False).encode(
        x=altair.X("seconds:Q", title="seconds", scale=altair.Scale(zero=True), axis=FEW_TICKS),
        y=altair.Y("share:Q", title="share of trials", axis=altair.Axis(format="%")),
        color=altair.Color("rules:N", title="rules", scale=colours(_names(records, "rules"))),
        strokeDash=by_world(altair.StrokeDash, [4, 3], [1, 0]),
        tooltip=[
            *("scenario:N", "rules:N", "world:N", "seconds:Q"),
            *(altair.Tooltip("share:Q", format=".1%"), "trials:Q"),
        ],
    )
    panels = (
        lines.properties(width=290, height=170)
        .facet(facet=altair.Facet("scenario:N", title=None), columns=3)
        .resolve_scale(x="independent")
    )
    return finished(panels, chart_id, title, caption)


def range_records(times: Series) -> list[Record]:
    """Minimum, median, 90th percentile and maximum of each series, in seconds."""
    records: list[Record] = []
    for (scenario, world, rules), values in sorted(times.items()):
        ordered = sorted(values)
        last = len(ordered) - 1
        numbers = {"least": 0.0, "median": 0.5, "p90": 0.9, "most": 1.0}
        told = {name: round(ordered[round(share * last)], 6) for name, share in numbers.items()}
        records.append({"scenario": scenario, "world": world, "rules": rules, "rebalances": len(ordered), **told})
    return records


def _ranges(times: Series) -> Chart:
    records = range_records(times)
    chart = dumbbells(
        records,
        altair.X("least:Q", title="seconds", scale=altair.Scale(type="log"), axis=FEW_TICKS),
        "p90:Q",
        "median:Q",
        y=altair.Y("scenario:N", title=None),
        yOffset=altair.YOffset("rules:N"),
        color=altair.Color("rules:N", title="rules", scale=colours(_names(records, "rules"))),
        shape=world_shape(),
        tooltip=["scenario:N", "rules:N", "world:N", "rebalances:Q", "least:Q", "median:Q", "p90:Q", "most:Q"],
    ).properties(width=620, height=altair.Step(13))
    caption = (
        "The time from the first event after a change to the last before the group was at rest. Points: the median "
        "over all changes; bars: from the minimum to the 90th percentile. A conflict costs at least one back-off."
    )
    return finished(chart, "ranges-rebalance", "Rebalance of a whole group", caption)


def _names(records: Sequence[Record], field: str) -> list[str]:
    return sorted({str(record[field]) for record in records})
