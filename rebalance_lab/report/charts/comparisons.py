"""How often trials show claims, and the rule sets side by side."""

from __future__ import annotations

from typing import Any

import altair

from rebalance_lab.analysis.ledger import Expected
from rebalance_lab.analysis.results import Analysis, Summary
from rebalance_lab.report import glossary
from rebalance_lab.report.charts.chart import (
    WORLDS,
    Chart,
    Record,
    colours,
    dumbbells,
    finished,
    world_name,
    world_shape,
)

#: Medians nearer than this share are called the same.
SAME = 0.02
#: Lines of the comparison, at most.
LINES = 60
#: Live trials of each side that make a comparison.
ENOUGH = 3
#: Settings that tell trials of one scenario apart for people.
SIZES = ("members", "partitions")
#: What is compared; the other measures say the same again.
COMPARED = (
    "rebalance_us",
    "rebalances",
    "notifications",
    "reads",
    "writes",
    "failed_attempts",
    "unowned_us",
    "doubly_owned_us",
)

_NAMES = {
    "rebalance_us": "time in rebalances, s",
    "unowned_us": "unowned partition-seconds",
    "doubly_owned_us": "doubly owned partition-seconds",
}


def frequency_chart(analysis: Analysis) -> Chart | None:
    """How often each claim was shown by the trials that could decide it. Claims that hold by construction or do not
    apply are left out."""
    records: list[Record] = [
        {
            "claim": verdict.claim if verdict.reading == "all" else f"{verdict.claim} {verdict.reading}",
            "world": world_name(each.world),
            "share": each.shown / each.decided,
            "low": each.low,
            "high": each.high,
            "trials": f"{each.shown:,} of {each.decided:,}",
        }
        for verdict in analysis.verdicts
        if verdict.counts and verdict.expected != Expected.DOES_NOT_APPLY
        for each in verdict.frequencies
        if each.decided
    ]
    if not records:
        return None
    percent = altair.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1])
    title = "share of decided trials that show it"
    chart = dumbbells(
        records,
        altair.X("low:Q", title=title, axis=percent, scale=altair.Scale(domain=[0, 1])),
        "high:Q",
        "share:Q",
        y=altair.Y("claim:N", title=None, sort=None),
        yOffset=altair.YOffset("world:N", scale=altair.Scale(domain=WORLDS)),
        color=altair.Color("world:N", title="ZooKeeper", scale=colours(WORLDS)),
        shape=world_shape(),
        tooltip=[
            *("claim:N", "world:N", "trials:N"),
            *(altair.Tooltip(f"{name}:Q", format=".1%") for name in ("share", "low", "high")),
        ],
    ).properties(width=560, height=altair.Step(16))
    caption = (
        "Bars: Wilson’s 95 % interval. One trial proves that something can happen; the share says how often it does."
    )
    return finished(chart, "frequencies", "How often claims were seen", caption)


def paired(summaries: tuple[Summary, ...]) -> tuple[list[tuple[Summary, Summary]], list[str]]:
    """(described, shipped) of trials that are otherwise alike and whose medians differ, and the measures without any
    difference."""
    sides: dict[tuple[object, ...], dict[str, Summary]] = {}
    for each in summaries:
        if not each.control and each.plant is None:
            key = (each.scenario, each.world, each.settings, each.measure)
            sides.setdefault(key, {})[each.rules] = each
    pairs = [(both["described"], both["shipped"]) for both in sides.values() if {"described", "shipped"} <= set(both)]
    # One live trial differs from another by itself; a simulated one only where its rules make it.
    pairs = [pair for pair in pairs if min(each.trials for each in pair) >= ENOUGH or pair[0].world == "simulated"]
    different = [
        pair for pair in pairs if abs(pair[0].p50 - pair[1].p50) > SAME * max(abs(pair[0].p50), abs(pair[1].p50))
    ]
    same = {pair[0].measure for pair in pairs} - {pair[0].measure for pair in different}
    return different, sorted(same)


def rules_chart(analysis: Analysis) -> Chart | None:
    """The rule sets side by side, in the measures that differ."""
    different, same = paired(tuple(each for each in analysis.summaries if each.measure in COMPARED))
    if not different:
        return None
    ranked = sorted(_largest(different), key=lambda pair: (COMPARED.index(pair[0].measure), pair[0].scenario))
    records = [record for pair in ranked[:LINES] for each in pair for record in [_record(each)]]
    measures = dict.fromkeys(record["measure"] for record in records)
    chart = altair.vconcat(*(_panel([each for each in records if each["measure"] == name], name) for name in measures))
    alike = f" No difference in: {', '.join(measure_name(name) for name in same)}." if same else ""
    more = f" {len(ranked) - LINES} more lines are not drawn." if len(ranked) > LINES else ""
    caption = (
        "Points: the median; bars: from the minimum to the 90th percentile of trials alike in all else. Scales are "
        "logarithmic above 1. "
        f"If a scenario was run in several sizes, the largest group is shown.{alike}{more}"
    )
    return finished(chart, "rules", "Described against shipped", caption)


def measure_name(measure: str) -> str:
    """A measure as people read it."""
    if measure.endswith("_longest_us"):
        return f"{glossary.title(measure.removesuffix('_longest_us')).lower()}, longest, s"
    return _NAMES.get(measure, measure.replace("_", " "))


def _panel(records: list[Record], measure: str) -> Any:
    """One measure: a line for each kind of trial, both rule sets on it."""
    axis = altair.Axis(tickCount=6, labelOverlap=True)
    return dumbbells(
        records,
        altair.X("least:Q", title=None, scale=altair.Scale(type="symlog"), axis=axis),
        "p90:Q",
        "p50:Q",
        y=altair.Y("trials:N", title=None, sort=None, axis=altair.Axis(labelLimit=330, minExtent=230)),
        yOffset=altair.YOffset("rules:N"),
        color=altair.Color("rules:N", title="rules", scale=colours(["described", "shipped"])),
        tooltip=["trials:N", "rules:N", "number:Q", "least:Q", "p50:Q", "p90:Q", "most:Q"],
    ).properties(width=480, height=altair.Step(12), title=measure)


def _largest(pairs: list[tuple[Summary, Summary]]) -> list[tuple[Summary, Summary]]:
    """The pair of the largest group, if a scenario was swept over sizes; the curves show the others."""
    found: dict[tuple[str, str, str], tuple[Summary, Summary]] = {}
    for pair in sorted(pairs, key=lambda pair: _sizes(pair[0])):
        found[pair[0].scenario, pair[0].world, pair[0].measure] = pair
    return list(found.values())


def _sizes(each: Summary) -> tuple[float, ...]:
    return tuple(float(value) for _, value in each.settings if value.replace(".", "", 1).isdigit())


def _record(each: Summary) -> Record:
    unit = 1_000_000 if each.measure.endswith("_us") else 1
    settings = ", ".join(f"{name} {value}" for name, value in each.settings if name in SIZES)
    name = " · ".join(part for part in (each.scenario, world_name(each.world), settings) if part)
    numbers = {field: getattr(each, field) / unit for field in ("least", "p50", "p90", "most")}
    return {
        "trials": name,
        "rules": each.rules,
        "measure": measure_name(each.measure),
        "number": each.trials,
        **numbers,
    }
