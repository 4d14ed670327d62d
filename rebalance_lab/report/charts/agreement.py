"""Live beside simulated trials: the distribution of every measure, and the band within which the live
one must stay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair
import numpy as np

from rebalance_lab.analysis.agreement.measures import Unit
from rebalance_lab.analysis.agreement.verdicts import Agreement, Compared
from rebalance_lab.history.files import write_whole
from rebalance_lab.report.charts.chart import Record, colours, data
from rebalance_lab.report.charts.distributions import FEW, FEW_TICKS, ecdf
from rebalance_lab.report.charts.engine import as_page, as_svg

COLUMNS = 3
PANEL = {"width": 250, "height": 130}

#: Where the band is drawn: at shares of trials, from none to all.
LEVELS = np.linspace(0, 1, 41)

_TITLES = {Unit.TIME: "seconds", Unit.PARTITION_TIME: "partition-seconds", Unit.COUNT: "", Unit.SHARE: ""}
_SCALES = {Unit.TIME: 1e6, Unit.PARTITION_TIME: 1e6, Unit.COUNT: 1.0, Unit.SHARE: 1.0}
_MARKS = {
    Agreement.AGREES: "#00795c",
    Agreement.EXPLAINED: "#0072b2",
    Agreement.DIFFERS: "#c0392b",
    Agreement.UNDECIDED: "#7a6200",
}

#: A picture stands alone: its colours are its own, not a page's.
_THEME: dict[str, Any] = {
    "background": "#ffffff",
    "padding": 16,
    "font": "system-ui, Roboto, Liberation Sans, DejaVu Sans, sans-serif",
    "view": {"stroke": "#d5dae0"},
    "axis": {"gridColor": "#e8ebee", "labelColor": "#5a6570", "titleColor": "#20262c", "titleFontWeight": "normal"},
    "legend": {"orient": "top", "titleColor": "#5a6570"},
    "title": {"anchor": "start", "fontSize": 12},
}


def write_picture(comparisons: Sequence[tuple[str, Sequence[Compared]]], out: Path) -> None:
    """Draw comparisons, each under its title, into a file `.svg` or `.html` (which opens from disk). Measures that
    are the same in every trial are left out. Raises OSError."""
    spec = drawn(comparisons)
    text = as_svg(spec) if out.suffix == ".svg" else as_page(spec)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, text.encode())


def drawn(comparisons: Sequence[tuple[str, Sequence[Compared]]]) -> dict[str, Any]:
    """The Vega-Lite of a picture."""
    blocks = [
        altair.concat(*(_panel(row) for row in rows if _shows(row)), columns=COLUMNS).properties(
            title=altair.TitleParams(title, fontSize=15, offset=12, subtitle=_HOW_TO_READ)
        )
        for title, rows in comparisons
        if any(_shows(row) for row in rows)
    ]
    chart = altair.vconcat(*blocks) if blocks else _nothing()
    spec: dict[str, Any] = chart.to_dict()
    spec["config"] = _THEME
    return spec


_HOW_TO_READ = (
    "Share of trials up to a value. Grey: the simulated curve, widened by the margin and by what declared causes "
    "explain; the live curve should stay within it."
)


def _shows(row: Compared) -> bool:
    return not row.constant and row.beyond is not None


def _nothing() -> Any:
    text = "every measure is the same in every trial"
    return altair.Chart(data([{"text": text}])).mark_text().encode(text="text:N")


def _panel(row: Compared) -> Any:
    """One measure: the simulated curve in its band, and the live one."""
    title = _TITLES[row.measure.unit] or None
    whole = row.measure.unit in (Unit.COUNT, Unit.SHARE)
    axis = altair.Axis(tickCount=5, tickMinStep=1, format="d") if whole else FEW_TICKS
    x = altair.X("value:Q", title=title, scale=altair.Scale(zero=False, nice=True), axis=axis)
    y = altair.Y("share:Q", title=None, axis=altair.Axis(format="%", values=[0, 0.5, 1]), scale=_WHOLE)
    band = (
        altair.Chart(data(band_records(row)))
        .mark_area(orient="horizontal", color="#b9c2cb", opacity=0.45)
        .encode(x=altair.X("low:Q", title=title, axis=axis), x2="high:Q", y=y)
    )
    colour = altair.Color("world:N", title=None, scale=colours(["live", "simulated"]))
    few = row.live.n <= FEW
    curves = (
        altair.Chart(data(curve_records(row)))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(x=x, y=y, color=colour, tooltip=["world:N", "value:Q", altair.Tooltip("share:Q", format=".1%")])
    )
    layers = [band, curves]
    if few:
        points = [record for record in curve_records(row) if record["world"] == "live" and record["share"]]
        layers.append(altair.Chart(data(points)).mark_point(filled=True, size=36).encode(x=x, y=y, color=colour))
    name = altair.TitleParams(
        row.measure.name, subtitle=f"{row.verdict} · {row.live.n} live", subtitleColor=_MARKS[row.verdict]
    )
    return altair.layer(*layers).properties(title=name, **PANEL)


_WHOLE = altair.Scale(domain=[0, 1])


def band_records(row: Compared) -> list[Record]:
    """The range of the live value at each share of trials."""
    assert row.simulated.values is not None
    scale = _SCALES[row.measure.unit]
    values = np.quantile(row.simulated.values, LEVELS, method="inverted_cdf")
    return [
        {"share": float(level), "low": (value + row.band.low) / scale, "high": (value + row.band.high) / scale}
        for level, value in zip(LEVELS, values.tolist(), strict=True)
    ]


def curve_records(row: Compared) -> list[Record]:
    """The steps of both curves; each begins with share 0 at its smallest value."""
    records: list[Record] = []
    scale = _SCALES[row.measure.unit]
    for world, sample in (("simulated", row.simulated), ("live", row.live)):
        assert sample.values is not None
        steps = ecdf(value / scale for value in sample.values.tolist())
        records.append({"world": world, "value": steps[0][0], "share": 0.0})
        records += [{"world": world, "value": value, "share": share} for value, share in steps]
    return records
