"""The replicas of a partition over time: its leader epochs, who is in sync, how far its log goes, and which records are
lost. The template only writes it as SVG.

It has the time axis and the bands of the Gantt above it. Lengths are SVG units; times are µs from the trial's start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.checks.broker_names import broker_names
from rebalance_lab.checks.partition_states import Place, assignments, partition_states, place_of, stood
from rebalance_lab.checks.stretches import Stretch, gaps, union
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval
from rebalance_lab.history.replicas import APPENDED, COMMITTED, FOLLOWS, ISR_ASSUMED, LEADS, TRUNCATED, largest_isr
from rebalance_lab.history.views import events_of
from rebalance_lab.history.writes import acknowledged, final_read, records_of
from rebalance_lab.report.bands import Band, Scale
from rebalance_lab.report.gantt import AXIS_HEIGHT, LETTER, THINNEST, WIDTH, Gantt, Tick
from rebalance_lab.report.palette import Paint, paint
from rebalance_lab.report.scene import Scene
from rebalance_lab.report.text import count, exact_moment, listed
from rebalance_lab.wire.cluster import LeaderIsrAndControllerEpoch
from rebalance_lab.wire.errors import KafkaException

LANE_HEIGHT = 13.0
LANE_GAP = 2.0
#: The height of the bar of a replica that only the leader counts as in sync.
ASSUMED_HEIGHT = 4.0
OFFSETS_HEIGHT = 130.0
OFFSETS_GAP = 12.0
#: The largest number of partitions that are drawn.
PARTITIONS = 4
#: The longest time between two acknowledgements of one line, in µs.
TOGETHER_US = 500_000


@dataclass(frozen=True, slots=True)
class Bar:
    """Of a lane: `kind` is epoch | leaderless | in-sync | assumed. `label` is written into it if there is room."""

    kind: str
    x: float
    width: float
    paint: Paint | None
    label: str
    title: str


@dataclass(frozen=True, slots=True)
class BarLane:
    label: str
    y: float
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """A line in the plot of offsets. `kind`: end (of a log) | committed | kept | lost | unread (records)."""

    kind: str
    path: str
    paint: Paint | None
    title: str


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a log ended when its broker took a role, or was cut off: from `y` down to `to_y`."""

    kind: str
    x: float
    y: float
    to_y: float
    paint: Paint | None
    title: str


@dataclass(frozen=True, slots=True)
class PartitionChart:
    """One partition. `plot_y`: the top of the plot of offsets, counted from the partition's; None if nothing was ever
    written. `levels`: (y, offset)."""

    name: str
    y: float
    lanes: tuple[BarLane, ...]
    plot_y: float | None
    levels: tuple[tuple[float, int], ...]
    traces: tuple[Trace, ...]
    spots: tuple[Spot, ...]

    @property
    def height(self) -> float:
        if self.plot_y is None:
            return self.lanes[-1].y + LANE_HEIGHT
        return self.plot_y + OFFSETS_HEIGHT


@dataclass(frozen=True, slots=True)
class ReplicaChart:
    """The whole drawing. `summary`: in one sentence. `left_out`: the number of partitions that are not drawn."""

    prefix: str
    scale: Scale
    partitions: tuple[PartitionChart, ...]
    bands: tuple[Band, ...]
    ticks: tuple[Tick, ...]
    summary: str
    left_out: int
    lane_height: float = LANE_HEIGHT
    assumed_height: float = ASSUMED_HEIGHT
    offsets_height: float = OFFSETS_HEIGHT
    width: int = WIDTH

    @property
    def plot_height(self) -> float:
        return self.partitions[-1].y + self.partitions[-1].height

    @property
    def height(self) -> float:
        return self.plot_height + AXIS_HEIGHT


def draw_replicas(scene: Scene, gantt: Gantt) -> ReplicaChart | None:
    """The chart that belongs to a Gantt; None for a trial in which no broker has a replica, or whose state znodes
    cannot be read."""
    history = History(scene.trial, scene.events)
    if not events_of(history, LEADS, FOLLOWS):
        return None
    try:
        drawer = _Drawer(scene, history, gantt.scale)
    except KafkaException:
        return None  # the checks say so
    places = sorted(drawer.states)
    charts: list[PartitionChart] = []
    y = 6.0
    for place in places[:PARTITIONS]:
        charts.append(drawer.partition(place, y))
        y += charts[-1].height + 3 * OFFSETS_GAP
    if not charts:
        return None
    return ReplicaChart(
        prefix=gantt.prefix,
        scale=gantt.scale,
        partitions=tuple(charts),
        bands=gantt.bands,
        ticks=gantt.ticks,
        summary=drawer.summary(places[:PARTITIONS]),
        left_out=len(places) - len(charts),
    )


class _Drawer:
    """Draws the partitions of one trial."""

    def __init__(self, scene: Scene, history: History, scale: Scale) -> None:
        """Raises KafkaException."""
        self.states = partition_states(history)
        self._stood_us = stood(history, scene.origin_us + scene.end_us)
        self._scene = scene
        self._history = history
        self._scale = scale
        self._assigned = assignments(history)
        self._names = broker_names(history)
        self._colours = {person.name: paint(person.index) for person in scene.people}
        self._highest = self._highest_offsets()

    def summary(self, places: Sequence[Place]) -> str:
        told = []
        for place in places:
            states = [state for _, state in self.states[place]]
            epochs = len({state.leader_epoch for state in states})
            smallest = min(len(state.isr) for state in states)
            name = f"{place[0]}/{place[1]}"
            told.append(f"{name} has {count(epochs, 'leader epoch')}, and at least {smallest} in sync")
        return f"{'; '.join(told)}."

    def partition(self, place: Place, y: float) -> PartitionChart:
        replicas = self._replicas(place)
        lanes = [BarLane("epoch", 0, tuple(self._epochs(place)))]
        step = LANE_HEIGHT + LANE_GAP
        for nth, broker_id in enumerate(replicas, 1):
            bars = (*self._in_sync(place, broker_id), *self._assumed(place, broker_id))
            lanes.append(BarLane(f"{self._name(broker_id)} in sync", nth * step, bars))
        return PartitionChart(
            name=f"{place[0]}/{place[1]}",
            y=y,
            lanes=tuple(lanes),
            plot_y=len(lanes) * step + OFFSETS_GAP if self._highest.get(place) else None,
            levels=tuple((self._level(place, offset), offset) for offset in sorted({0, self._highest.get(place, 0)})),
            traces=(*self._records(place), *self._ends(place), *self._committed(place)),
            spots=tuple(self._spots(place)),
        )

    # -- lanes ------------------------------------------------------------------------------

    def _epochs(self, place: Place) -> Iterable[Bar]:
        """A bar for each leader epoch of the state znode."""
        runs: list[tuple[int, int, LeaderIsrAndControllerEpoch]] = []
        for begin_us, end_us, state in self._stood(place):
            last = runs[-1] if runs else None
            if last is not None and (last[2].leader, last[2].leader_epoch) == (state.leader, state.leader_epoch):
                runs[-1] = (last[0], end_us, last[2])
            else:
                runs.append((begin_us, end_us, state))
        for begin_us, end_us, state in runs:
            led = state.leader >= 0
            who = f"{self._name(state.leader)} leads" if led else "no broker leads"
            isr = listed([self._name(each) for each in state.isr])
            title = f"Leader epoch {state.leader_epoch}: {who}; it begins with {isr} in sync"
            colour = self._colour(state.leader) if led else None
            label = str(state.leader_epoch)
            yield self._bar("epoch" if led else "leaderless", begin_us, end_us, colour, label, title)

    def _isr_has(self, place: Place, broker_id: int) -> list[Stretch]:
        """While it is in the ISR according to ZooKeeper."""
        return _stretches(
            (begin_us, end_us) for begin_us, end_us, state in self._stood(place) if broker_id in state.isr
        )

    def _in_sync(self, place: Place, broker_id: int) -> Iterable[Bar]:
        for each in self._isr_has(place, broker_id):
            title = f"{self._name(broker_id)} is in the ISR according to ZooKeeper"
            yield self._bar("in-sync", each.begin_us, each.end_us, self._colour(broker_id), "", title)

    def _assumed(self, place: Place, broker_id: int) -> Iterable[Bar]:
        """While a leader counts the broker as in sync, and ZooKeeper does not."""
        known = self._isr_has(place, broker_id)
        for belief in self._beliefs(place):
            views = self._during(belief, LEADS, ISR_ASSUMED)
            ends_us = [*(self._us(each) for each in views[1:]), belief.end_us]
            assumed = _stretches(
                (self._us(view), end_us)
                for view, end_us in zip(views, ends_us, strict=True)
                if broker_id in largest_isr(view)
            )
            title = f"{belief.member} as the leader counts {self._name(broker_id)} as in sync, and ZooKeeper does not"
            for each in (gap for stretch in assumed for gap in gaps(known, stretch)):
                yield self._bar("assumed", each.begin_us, each.end_us, self._colour(broker_id), "", title)

    def _beliefs(self, place: Place) -> list[Interval]:
        """While a broker believed that it leads the partition; times are from the trial's start."""
        spans = self._scene.spans
        return [each for each in spans if each.layer is Layer.BELIEF and (each.topic, each.partition) == place]

    def _during(self, belief: Interval, *kinds: Kind) -> list[Event]:
        """What a leader reported of its partition while it believed that it leads."""
        return [
            event
            for event in events_of(self._history, *kinds)
            if event.actor == belief.actor
            and place_of(event) == (belief.topic, belief.partition)
            and belief.begin_us <= self._us(event) <= belief.end_us
        ]

    def _bar(self, kind: str, begin_us: int, end_us: int, colour: Paint | None, label: str, title: str) -> Bar:
        x, width = self._scale.stretch(begin_us, end_us, THINNEST)
        if not self._scale.holds(begin_us, end_us):
            x, width = self._scale.left, 0.0
        return Bar(
            kind=kind,
            x=x,
            width=width,
            paint=colour,
            label=label if width > LETTER * len(label) + 6 else "",
            title=f"{title}, {exact_moment(begin_us)} to {exact_moment(end_us)} s",
        )

    # -- offsets ----------------------------------------------------------------------------

    def _ends(self, place: Place) -> Iterable[Trace]:
        """The end of each leader's log, while it appends."""
        for actor, events in self._of_leaders(place, APPENDED):
            points = [(self._us(event), _number(event, "last") + 1) for event in events]
            title = f"The end of {actor}'s log, to {points[-1][1]:,}"
            yield Trace("end", self._steps(place, points), self._colours.get(actor), title)

    def _committed(self, place: Place) -> Iterable[Trace]:
        for actor, events in self._of_leaders(place, COMMITTED):
            points = [(self._us(event), _number(event, "offset")) for event in events]
            title = f"The high watermark of {actor} as the leader, to {points[-1][1]:,}"
            yield Trace("committed", self._steps(place, points), None, title)

    def _of_leaders(self, place: Place, kind: Kind) -> Iterable[tuple[str, list[Event]]]:
        """The events of each leadership that has any."""
        for belief in self._beliefs(place):
            if found := self._during(belief, kind):
                yield belief.member, found

    def _records(self, place: Place) -> Iterable[Trace]:
        """Acknowledged records by time and offset: what became of them is their colour."""
        read = final_read(self._history)
        there = {value for _, value in records_of(read)} if read is not None else set()
        runs: list[tuple[str, list[tuple[int, int]]]] = []
        for event in acknowledged(self._history):
            offset = event.of("offset")
            if place != _written_to(self.states) or not isinstance(offset, int):
                continue
            fate = "unread" if read is None else "kept" if event.of("number") in there else "lost"
            point = (self._us(event), offset)
            if runs and runs[-1][0] == fate and _follows(runs[-1][1][-1], point):
                runs[-1][1].append(point)
                continue
            runs.append((fate, [point]))
        for fate, points in runs:
            told = {"lost": "acknowledged and lost", "kept": "acknowledged and there", "unread": "acknowledged"}[fate]
            title = f"{count(len(points), 'record')} {told}: offsets {points[0][1]:,} to {points[-1][1]:,}"
            yield Trace(fate, self._line(place, points), None, title)

    def _spots(self, place: Place) -> Iterable[Spot]:
        for event in events_of(self._history, LEADS, FOLLOWS, TRUNCATED):
            if place_of(event) != place or not self._scale.holds(self._us(event), self._us(event)):
                continue
            cut = event.kind is TRUNCATED
            at = _number(event, "from_offset" if cut else "end_offset")
            to = _number(event, "to_offset") if cut else at
            if cut and at == to:
                continue
            role = "leads" if event.kind is LEADS else "follows"
            cuts = f"{event.actor} cuts its log off, from {at:,} to {to:,}"
            title = cuts if cut else f"{event.actor} {role}: its log ends at {at:,}"
            yield Spot(
                kind="cut" if cut else role,
                x=self._scale.x(self._us(event)),
                y=self._level(place, at),
                to_y=self._level(place, to),
                paint=self._colours.get(event.actor),
                title=f"{title}, at {exact_moment(self._us(event))} s",
            )

    def _steps(self, place: Place, points: Sequence[tuple[int, int]]) -> str:
        """A path that stays level until the next point."""
        (first_us, first), *others = points
        parts = [f"M{self._scale.x(first_us)} {self._level(place, first)}"]
        x_before = None
        for at_us, offset in others:
            x = self._scale.x(at_us)
            if x != x_before:  # points closer than the drawing shows are one
                parts.append(f"H{x}")
            parts.append(f"V{self._level(place, offset)}")
            x_before = x
        return "".join(parts)

    def _line(self, place: Place, points: Sequence[tuple[int, int]]) -> str:
        corners = dict.fromkeys((self._scale.x(at_us), self._level(place, offset)) for at_us, offset in points)
        path = "L".join(f"{x} {y}" for x, y in corners)
        return f"M{path}" if len(corners) > 1 else f"M{path}h2"

    # -- places -----------------------------------------------------------------------------

    def _level(self, place: Place, offset: int) -> float:
        """The y of an offset, from the top of the plot."""
        return round(OFFSETS_HEIGHT * (1 - offset / max(self._highest.get(place, 0), 1)), 1)

    def _highest_offsets(self) -> Mapping[Place, int]:
        found: dict[Place, int] = {}
        fields = ("end_offset", "from_offset", "last", "offset")
        for event in events_of(self._history, LEADS, FOLLOWS, TRUNCATED, APPENDED, COMMITTED):
            place = place_of(event)
            numbers = [value for each in fields if isinstance(value := event.of(each), int)]
            found[place] = max(found.get(place, 0), *numbers, 0)
        return found

    def _replicas(self, place: Place) -> tuple[int, ...]:
        """In the order of the assignment, then those that are in no assignment."""
        in_sync = sorted({each for _, state in self.states[place] for each in state.isr})
        return tuple(dict.fromkeys((*self._assigned.get(place, ()), *in_sync)))

    def _stood(self, place: Place) -> Iterable[tuple[int, int, LeaderIsrAndControllerEpoch]]:
        """Each state of the znode, with the time from which and until which it stood."""
        origin_us = self._scene.origin_us
        for event, state, until_us in self._stood_us[place]:
            yield event.at_us - origin_us, max(event.at_us, until_us) - origin_us, state

    def _us(self, event: Event) -> int:
        return self._scene.since_start(event)

    def _name(self, broker_id: int) -> str:
        return self._names.get(broker_id, f"broker {broker_id}")

    def _colour(self, broker_id: int) -> Paint | None:
        return self._colours.get(self._name(broker_id))


def _written_to(states: Mapping[Place, object]) -> Place:
    """The partition that the client of the trial writes to: the only one, or the first."""
    return min(states)


def _follows(last: tuple[int, int], point: tuple[int, int]) -> bool:
    """Whether an acknowledgement (µs, offset) continues the line of the last one."""
    return 0 <= point[0] - last[0] <= TOGETHER_US and point[1] >= last[1]


def _stretches(parts: Iterable[tuple[int, int]]) -> list[Stretch]:
    """From pairs of µs; those that touch are one."""
    return union(Stretch(begin_us, end_us, None, None) for begin_us, end_us in parts)


def _number(event: Event, field: str) -> int:
    return int(str(event.of(field)))
