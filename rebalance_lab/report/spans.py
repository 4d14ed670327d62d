"""Which member has a partition when: spans of one layer, their overlaps, and gaps without an owner.

Times are µs from the trial's start. The checks define what counts as an overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rebalance_lab.analysis.results import Interval
from rebalance_lab.checks import overlaps as checked
from rebalance_lab.checks.stretches import Stretch, gaps, union
from rebalance_lab.history.events import Event, Layer
from rebalance_lab.history.intervals import NO_PARTITION, sort_key
from rebalance_lab.history.intervals import Interval as Span

#: The layers a partition can be owned in, in the order they are drawn.
LAYERS = (Layer.BELIEF, Layer.REGISTRY, Layer.EFFECT)


class Row(NamedTuple):
    """A partition in a group. Its number is NO_PARTITION where `topic` names what there is only one of."""

    group: str
    topic: str
    partition: int

    def __str__(self) -> str:
        return self.topic if self.partition == NO_PARTITION else f"{self.topic}/{self.partition}"


@dataclass(frozen=True, slots=True)
class Gap:
    """A time span in which a layer gives the row to no member."""

    layer: Layer
    row: Row
    begin_us: int
    end_us: int

    @property
    def length_us(self) -> int:
        return self.end_us - self.begin_us


@dataclass(frozen=True, slots=True)
class Overlap(Gap):
    """A time span in which a layer gives the row to several members at once."""

    members: tuple[str, ...]


def spans_of(trial: str, intervals: Iterable[Interval], origin_us: int) -> tuple[Span, ...]:
    """The intervals of one trial, with times from its start."""
    spans = []
    for each in intervals:
        if each.trial == trial:
            told = {name: getattr(each, name) for name in Span.__dataclass_fields__}
            begin_us, end_us = each.begin_us - origin_us, each.end_us - origin_us
            spans.append(Span(**told | {"layer": Layer(each.layer), "begin_us": begin_us, "end_us": end_us}))
    return tuple(sorted(spans, key=sort_key))


def row_of(item: Span | Gap | Event) -> Row:
    """The row of a span, a gap, an overlap, or an event that names a partition."""
    if isinstance(item, Gap):
        return item.row
    return Row(*item.place) if isinstance(item, Span) else Row(item.group or "", item.topic or "", item.partition or 0)


def overlaps_of(spans: Sequence[Span]) -> tuple[Overlap, ...]:
    """Where spans of different members overlap; overlaps that overlap each other are drawn as one."""
    found: list[Overlap] = []
    for layer in LAYERS:
        pairs = checked.overlaps((span for span in spans if span.layer is layer), closed=layer is Layer.EFFECT)
        for pair in pairs:
            row, members = row_of(pair.first), {pair.first.member, pair.second.member}
            last = found[-1] if found else None
            if last is not None and last.row == row and last.layer is layer and pair.begin_us < last.end_us:
                everybody = tuple(sorted(members | {*last.members}))
                found[-1] = Overlap(layer, row, last.begin_us, max(last.end_us, pair.end_us), everybody)
            else:
                found.append(Overlap(layer, row, pair.begin_us, pair.end_us, tuple(sorted(members))))
    return tuple(found)


def gaps_of(spans: Sequence[Span], begins_us: Mapping[tuple[Row, Layer], int], end_us: int) -> tuple[Gap, ...]:
    """Where a layer gives a row to no member, from the begin of that lane to `end_us`."""
    lanes: dict[tuple[Row, Layer], list[Stretch]] = {lane: [] for lane in begins_us}
    for span in spans:
        if (row_of(span), span.layer) in lanes:
            lanes[row_of(span), span.layer].append(Stretch(span.begin_us, span.end_us, span.begin, span.end))
    return tuple(
        Gap(layer, row, gap.begin_us, gap.end_us)
        for (row, layer), covered in lanes.items()
        for gap in gaps(union(covered), Stretch(begins_us[row, layer], end_us, None, None))
    )
