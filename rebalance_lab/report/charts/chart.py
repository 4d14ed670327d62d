"""A chart: what a page needs of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair

from rebalance_lab.report.charts.vega import COLOURS, OTHER, THEME, picture

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
