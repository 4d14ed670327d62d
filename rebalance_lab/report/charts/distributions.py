"""How long things last, over all trials: empirical distributions, a panel for each scenario."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import altair

from rebalance_lab.analysis.results import Analysis
from rebalance_lab.history.checks import CHECKS
from rebalance_lab.history.checks.model import Outcome
from rebalance_lab.report import glossary
from rebalance_lab.report.charts.chart import Chart, Record, colours, data, finished, world_name

#: Steps of one curve, at most: more cannot be seen.
STEPS = 120
#: With so few trials each is shown as a point.
FEW = 8

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
    """The longest of each decided trial in earnest, by kind of trial, where any is above 0."""
    found: Series = {}
    for each in analysis.outcomes:
        if each.check == check and not each.control and each.plant is None and each.outcome != Outcome.UNKNOWN:
            found.setdefault((each.scenario, world_name(each.world), each.rules), []).append(each.longest_us / 1e6)
    told = {scenario for (scenario, _, _), values in found.items() if any(values)}
    return {kind: values for kind, values in found.items() if kind[0] in told}


def rebalance_times(analysis: Analysis) -> Series:
    """How long each rebalance of a group took after something changed, until rest."""
    trials = {trial.id: trial for trial in analysis.trials if not trial.control and trial.plant is None}
    found: Series = {}
    for each in analysis.episodes:
        trial = trials.get(each.trial)
        if trial is not None and each.part == "change" and each.rested:
            kind = (trial.scenario, world_name(trial.world), trial.rules)
            found.setdefault(kind, []).append(each.duration_us / 1e6)
    return found


def distribution_charts(analysis: Analysis) -> list[Chart]:
    """One for each check that measures a length and found one, then the time of rebalances."""
    charts = []
    for check in dict.fromkeys(each.check for each in analysis.outcomes):
        if not (check.endswith("overlap") or check == "unowned_window"):
            continue
        series = lengths_of(analysis, check)
        if series:
            meaning = CHECKS[check].meaning if check in CHECKS else ""
            caption = f"The longest in each trial. {meaning} Controls are not among them."
            charts.append(_curves(series, f"ecdf-{check}".replace("_", "-"), glossary.title(check), caption))
    times = rebalance_times(analysis)
    if times:
        caption = "From the first thing that happened to the last before the group was at rest, after each change."
        charts.append(_curves(times, "ecdf-rebalance", "Rebalance of a group", caption))
    return charts


def curve_records(series: Series) -> list[Record]:
    """The steps of every curve; each begins at share 0."""
    records: list[Record] = []
    for (scenario, world, rules), values in sorted(series.items()):
        kind = {"scenario": scenario, "world": world, "rules": rules, "trials": len(values)}
        steps = ecdf(values)
        records.append({**kind, "seconds": steps[0][0], "share": 0.0, "point": False})
        records += [
            {**kind, "seconds": round(x, 6), "share": round(share, 4), "point": len(values) <= FEW}
            for x, share in steps
        ]
    return records


def _curves(series: Series, chart_id: str, title: str, caption: str) -> Chart:
    records = curve_records(series)
    base = altair.Chart(data(records))
    lines = base.mark_line(interpolate="step-after", strokeWidth=2).encode(
        x=altair.X("seconds:Q", title="seconds", scale=altair.Scale(zero=True)),
        y=altair.Y("share:Q", title="share of trials", axis=altair.Axis(format="%")),
        color=altair.Color("rules:N", title="rules", scale=colours(_names(records, "rules"))),
        strokeDash=altair.StrokeDash(
            "world:N", title="ZooKeeper", scale=altair.Scale(domain=["live", "simulated"], range=[[1, 0], [5, 3]])
        ),
        tooltip=[
            "scenario:N",
            "rules:N",
            "world:N",
            "seconds:Q",
            altair.Tooltip("share:Q", format=".1%"),
            "trials:Q",
        ],
    )
    points = (
        base.transform_filter("datum.point")
        .mark_point(filled=True, size=36, opacity=1)
        .encode(
            x="seconds:Q",
            y="share:Q",
            color=altair.Color("rules:N", scale=colours(_names(records, "rules"))),
        )
    )
    panels = (
        altair.layer(lines, points)
        .properties(width=290, height=170)
        .facet(facet=altair.Facet("scenario:N", title=None), columns=3)
        .resolve_scale(x="independent")
    )
    return finished(panels, chart_id, title, caption)


def _names(records: Sequence[Record], field: str) -> list[str]:
    return sorted({str(record[field]) for record in records})
