"""The cost of a change for a group, against its size: counted, by the formula, and fitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import exp
from typing import Any

import altair

from rebalance_lab.analysis.results import Analysis, Fit, HerdCost
from rebalance_lab.checks.model import ZK
from rebalance_lab.report.charts.chart import Chart, Record, colours, data, finished, world_name, world_shape
from rebalance_lab.report.glossary import Cost, words_of

#: Points of one kind of change, at most; of more, every nth is shown, and the caption says so.
POINTS = 300
#: Sizes that a fit must stand on to be drawn.
SIZES = 4
#: Points along a fitted curve.
CURVE = 24


#: How points of each rule set are drawn, so that both are seen where they lie on each other.
POINT: dict[str, dict[str, Any]] = {
    "described": {"filled": False, "size": 110, "strokeWidth": 2},
    "shipped": {"filled": True, "size": 34},
}


def cost_charts(analysis: Analysis) -> list[Chart]:
    """A chart for each number, if any changes were counted."""
    counted = [cost for cost in analysis.herd_costs if cost.doubt is None and not cost.control and cost.plant is None]
    return [_cost_chart(analysis, counted, cost) for cost in words_of(ZK).costs] if counted else []


def cost_records(analysis: Analysis, counted: Sequence[HerdCost], cost: Cost) -> tuple[list[Record], int]:
    """Counted points, the line of the formula and fitted curves, distinguished by `what`; and the number of points
    left out. Changes that came out the same are one point, with the number of them in `changes`: simulated trials give
    the same few numbers thousands of times."""
    settings = {trial.id: _settings(trial.parameters) for trial in analysis.trials}
    kinds: dict[tuple[str, str, str], list[HerdCost]] = {}
    for each in counted:
        kinds.setdefault((each.change, world_name(each.world), each.rules), []).append(each)
    records: list[Record] = []
    left_out = 0
    drawn = 1 if cost.log else 0  # the least that can be
    for (change, world, rules), alike in sorted(kinds.items()):
        kind = {"change": words_of(ZK).changes.get(change, change), "world": world, "rules": rules}
        points = Counter((settings.get(each.trial, ""), each.members, getattr(each, cost.measure)) for each in alike)
        seen = sorted(point for point in points if min(point[1:]) >= drawn)
        stride = max(1, -(-len(seen) // POINTS))
        left_out += len(seen) - len(seen[::stride])
        for point in seen[::stride]:
            label, members, number = point
            found = {"members": members, "number": number, "what": "counted", "settings": label}
            records.append({**kind, **found, "changes": points[point]})
        formula = {
            (settings.get(each.trial, ""), each.members, number)
            for each in alike
            if each.members and (number := getattr(each, cost.expected)) is not None and number >= drawn
        }
        for label, members, number_expected in sorted(formula):
            line = {"members": members, "number": number_expected, "what": "formula", "settings": label}
            records.append({**kind, **line})
        kin = [
            fit
            for fit in analysis.fits
            if (fit.change, world_name(fit.world), fit.rules, fit.measure) == (change, world, rules, cost.measure)
            and cost.log
            and fit.sizes >= SIZES
        ]
        if kin:  # of several scenarios the one that ran in most sizes
            best = max(kin, key=lambda fit: (fit.sizes, fit.points))
            sizes = [each.members for each in alike if each.scenario == best.scenario]
            records += [{**kind, **point} for point in fitted_curve(best, sizes)]
    return records, left_out


def fitted_curve(fit: Fit, sizes: Sequence[int]) -> list[Record]:
    """A fit as points between the smallest and the largest size; the last one has its label. Empty if there is no
    fit."""
    sizes = [size for size in sizes if size > 0]
    if (
        fit.estimate is None
        or fit.model != "exponent"
        or fit.against != "members"
        or len(fit.coefficients) != 2
        or not sizes
    ):
        return []
    constant, power = fit.coefficients
    least, most = min(sizes), max(sizes)
    xs = [least * (most / least) ** (nth / (CURVE - 1)) for nth in range(CURVE)]
    label = fit_label(fit)
    return [
        {
            "members": round(x, 3),
            "number": round(exp(constant) * x**power, 3),
            "what": "fitted",
            "settings": fit.scenario,
            "label": label if nth == CURVE - 1 else "",
        }
        for nth, x in enumerate(xs)
    ]


def fit_label(fit: Fit) -> str:
    """`C^1.93 (1.88 to 1.98)`."""
    interval = "" if fit.low is None or fit.high is None else f" ({fit.low:.2f} to {fit.high:.2f})"
    return f"C^{fit.estimate:.2f}{interval}"


def _settings(parameters: dict[str, int | float | str | bool]) -> str:
    names = {"partitions": "P", "brokers": "B", "topics": "T"}
    return ", ".join(f"{short} = {parameters[name]}" for name, short in names.items() if name in parameters)


def _cost_chart(analysis: Analysis, counted: Sequence[HerdCost], cost: Cost) -> Chart:
    records, left_out = cost_records(analysis, counted, cost)
    rules = sorted({record["rules"] for record in records})
    panels = (
        altair.layer(*_layers(records, rules, cost))
        .properties(width=400, height=210 if cost.log else 150)
        .facet(facet=altair.Facet("change:N", title=None, sort=list(words_of(ZK).changes.values())), columns=2)
        .resolve_axis(x="independent")
    )
    dashes = "; dashes: a fitted power of C, with its 95 % interval" if any("label" in each for each in records) else ""
    fewer = f" {left_out:,} points beyond {POINTS} of a kind are not drawn." if left_out else ""
    points = "points: counted, one for all changes at rest with the same numbers"
    caption = f"{cost.formula} Lines: the formula; {points}{dashes}.{fewer}"
    return finished(panels, f"cost-{cost.measure}", cost.title, caption)


def _layers(records: list[Record], rules: Sequence[str], cost: Cost) -> list[Any]:
    scale = altair.Scale(type="log") if cost.log else altair.Scale(zero=True)
    x = altair.X(
        "members:Q",
        title="members C after the change",
        axis=altair.Axis(tickCount=6, labelOverlap=True),
        scale=altair.Scale(type="log", nice=False) if cost.log else altair.Scale(zero=False),
    )
    ticks = altair.Axis(values=[10**power for power in range(8)], format=",") if cost.log else altair.Axis(tickCount=5)
    y = altair.Y("number:Q", title=cost.title, scale=scale, axis=ticks)
    colour = altair.Color("rules:N", title="rules", scale=colours(rules))
    tooltip = ["change:N", "rules:N", "world:N", "settings:N", "members:Q", "number:Q", "changes:Q"]
    base = altair.Chart(data(records))
    fitted = base.transform_filter("datum.what == 'fitted'")
    each_own = ["settings:N", "world:N"]
    layers: list[Any] = []

    def add(drawn: Any, what: str, rule: str | None = None, only: str = "what") -> None:
        """Add a layer if it has records, as Vega warns of empty ones."""
        if any(each["what"] == what and each.get(only) and rule in {None, each["rules"]} for each in records):
            layers.append(drawn)

    line = base.transform_filter("datum.what == 'formula'")
    line = line.mark_line(strokeWidth=1.2, opacity=0.9)
    add(line.encode(x=x, y=y, color=colour, detail=each_own), "formula")
    curve = fitted.mark_line(strokeDash=[6, 4], strokeWidth=1.6)
    add(curve.encode(x=x, y=y, color=colour, detail=each_own), "fitted")
    for nth, name in enumerate(rules):
        points = base.transform_filter(f"datum.what == 'counted' && datum.rules == '{name}'")
        points = points.mark_point(**POINT.get(name, {}))
        add(points.encode(x=x, y=y, color=colour, shape=world_shape(), tooltip=tooltip), "counted", name)
        ends = fitted.transform_filter(f"datum.label && datum.rules == '{name}'")
        below: dict[str, Any] = {"align": "right", "dx": -4, "dy": 72 + 15 * nth, "fontSize": 11}
        add(ends.mark_text(**below).encode(x=x, y=y, text="label:N", color=colour), "fitted", name, "label")
    return layers
