"""What all charts share: their parts in altair, their looks, and Vega-Lite on a page without network (the library
inlined once, and pictures for pages without scripts).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import altair

from rebalance_lab.report.charts.engine import as_svg, bundled

#: Colours are the page's own variables, so that charts follow its theme.
THEME: dict[str, Any] = {
    "background": "transparent",
    "font": "system-ui, Roboto, Liberation Sans, DejaVu Sans, sans-serif",
    "view": {"stroke": "var(--line)", "continuousWidth": 330, "continuousHeight": 200},
    "axis": {
        "domainColor": "var(--muted)",
        "tickColor": "var(--muted)",
        "gridColor": "var(--line)",
        "labelColor": "var(--muted)",
        "titleColor": "var(--ink)",
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 11,
    },
    "legend": {
        "orient": "bottom",
        "labelColor": "var(--ink)",
        "titleColor": "var(--muted)",
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "labelLimit": 260,
    },
    "header": {"labelColor": "var(--ink)", "titleColor": "var(--muted)", "labelFontSize": 12, "labelFontWeight": 600},
    "title": {"color": "var(--ink)", "fontSize": 12, "anchor": "start"},
}

#: A coordinate with more decimals than anybody sees.
_LONG = re.compile(r"(\d\.\d)\d+")

#: What the page runs for each chart. The interpreter (`ast`) needs no eval, which the page's
#: policy forbids.
START = """
for (const [id, spec] of Object.entries(JSON.parse(document.getElementById("chart-specs").textContent))) {
  vegaEmbed("#" + id, spec, { actions: false, renderer: "svg", ast: true, mode: "vega-lite" });
}
"""


@cache
def scripts() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, about 0.9 MB, and what starts every chart."""
    return _inert(bundled(START))


def specs_json(specs: dict[str, dict[str, Any]]) -> str:
    """Specs by element id, as JSON that may stand inside a script element."""
    return json.dumps(specs, separators=(",", ":")).replace("<", "\\u003c")


@cache
def _static(text: str) -> str:
    return _LONG.sub(r"\1", as_svg(text))


def picture(spec: dict[str, Any]) -> str:
    """The chart as an SVG element that fits its column."""
    svg = _static(json.dumps(spec, sort_keys=True))
    found = re.search(r"<svg[^>]*>", svg)
    assert found is not None, "vl-convert gives an SVG document"
    return '<svg class="chart-picture" role="img"' + found[0][len("<svg") :] + svg[found.end() :]


def _inert(script: str) -> str:
    """A script whose texts cannot end the element it stands in."""
    return re.sub(r"</(?=script)|<!--", lambda match: match[0].replace("<", "\\x3c"), script, flags=re.IGNORECASE)


#: Okabe and Ito's, as in the other pictures.
COLOURS = {
    "described": "#0072b2",
    "shipped": "#e69f00",
    "live": "#d55e00",
    "simulated": "#0072b2",
}
OTHER = "#7f8a96"


# -- charts ---------------------------------------------------------------------------------------


#: The names of worlds on charts, in the order of legends.
WORLDS = ["live", "simulated"]

#: A row of a chart's data.
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chart:
    """`id` is that of its element; `picture`: the same as SVG, for pages without scripts."""

    id: str
    title: str
    caption: str
    spec: dict[str, Any]
    picture: str


@dataclass(frozen=True, slots=True)
class Section:
    """Charts that answer one question."""

    id: str
    title: str
    lead: str
    charts: tuple[Chart, ...]


def finished(chart: Any, chart_id: str, title: str, caption: str) -> Chart:
    """A chart of altair's with the page's looks."""
    spec: dict[str, Any] = chart.to_dict()
    spec["config"] = THEME
    return Chart(chart_id, title, caption, spec, picture(spec))


def data(records: list[Record]) -> Any:
    """Records as altair's data."""
    return altair.InlineData(values=records)


def world_name(world: str) -> str:
    """`live` for everything that runs on a real ZooKeeper."""
    return "simulated" if world == "simulated" else "live"


def colours(names: Sequence[str]) -> Any:
    """A scale of colours for these names, each always its own."""
    return altair.Scale(domain=list(names), range=[COLOURS.get(name, OTHER) for name in names])


def by_world(channel: Any, live: Any, simulated: Any) -> Any:
    """A channel of altair's with one value for live trials and one for simulated ones."""
    return channel("world:N", title="ZooKeeper", scale=altair.Scale(domain=WORLDS, range=[live, simulated]))


def world_shape() -> Any:
    return by_world(altair.Shape, "diamond", "circle")


def dumbbells(records: list[Record], x: Any, high: str, point: str, tooltip: Sequence[Any], **encoding: Any) -> Any:
    """A bar from `x` to `high` and a point for each record. `encoding`: of both, but `shape` of the points only."""
    of_bars = {name: each for name, each in encoding.items() if name != "shape"}
    base = altair.Chart(data(records))
    bars = base.mark_rule(strokeWidth=4, opacity=0.35).encode(x=x, x2=high, **of_bars)
    points = base.mark_point(filled=True, size=60, opacity=1).encode(x=point, tooltip=list(tooltip), **encoding)
    return altair.layer(bars, points)
