"""The position of everything in a space-time diagram. The template only writes it as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.history.events import EventId, Kind, Layer
from rebalance_lab.history.intervals import KILL
from rebalance_lab.report.palette import Paint, paint
from rebalance_lab.report.scene import Scene
from rebalance_lab.report.spacetime.arrows import Link
from rebalance_lab.report.spacetime.beats import CROWD, Beat, label, title
from rebalance_lab.report.spacetime.choice import REGISTRY, RUNNER, Choice, Subject, choose_beats
from rebalance_lab.report.spacetime.timeline import HEAD, Timeline, lay_out
from rebalance_lab.report.spans import row_of
from rebalance_lab.report.text import count, exact_moment, listed, seconds

WIDTH = 1160
GUTTER = 66
#: From a lane's left edge to its line.
INDENT = 26
LETTER = 6.1
FOOT = 16
#: Widths of lanes, beside a member's: the registry has much to say, the runner little.
SHARES = {REGISTRY: 1.35, RUNNER: 0.85}
#: How far beside a lane's line each kind of stripe lies, how wide it is, and how high at least.
STRIPES: dict[str, tuple[float, float, float]] = {
    "believes": (-9.0, 7.0, 2),
    "owner": (-9.0, 7.0, 2),
    "works": (-16.0, 4.0, 2),
    "rebalance": (-3.0, 6.0, 2),
    "session": (-1.0, 2, 1),
}


@dataclass(frozen=True, slots=True)
class Lane:
    """`x` is that of its line; `left` and `width` are its column."""

    actor: str
    label: str
    left: float
    width: float
    x: float


@dataclass(frozen=True, slots=True)
class Mark:
    """A beat. `key`: it belongs to the witness."""

    id: str
    x: float
    y: float
    shape: str
    label: str
    title: str
    key: bool

    @property
    def label_width(self) -> float:
        return round(LETTER * len(self.label) + 4, 1)


@dataclass(frozen=True, slots=True)
class Arrow:
    """`kind`: watch | cause | conflict | session | fault | request. `path`: of its line in SVG."""

    kind: str
    path: str
    title: str


@dataclass(frozen=True, slots=True)
class Stripe:
    """Something that lasts. `kind`: believes | owner | works | rebalance | session | fault."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    paint: Paint | None
    title: str


@dataclass(frozen=True, slots=True)
class Pause:
    """A quiet period that is cut: its height does not show its length."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class SpaceTime:
    """The whole drawing. `anchors`: the mark of each event that has one. `times`: (y, text).

    `zone`: (y, height, label) of the anomaly itself; the label stands upright at its edge, where it
    has room. `left_out`: marks there was no room for.
    """

    prefix: str
    title: str
    height: float
    lanes: tuple[Lane, ...]
    stripes: tuple[Stripe, ...]
    arrows: tuple[Arrow, ...]
    marks: tuple[Mark, ...]
    pauses: tuple[Pause, ...]
    times: tuple[tuple[float, str], ...]
    zone: tuple[float, float, str] | None
    anchors: Mapping[EventId, str]
    legend: str
    summary: str
    left_out: int
    crowd: tuple[str, ...]
    width: int = WIDTH
    head: float = HEAD

    @property
    def zone_labelled(self) -> bool:
        return self.zone is not None and self.zone[1] > LETTER * 1.2 * len(self.zone[2])


def draw_spacetime(scene: Scene, subject: Subject, prefix: str) -> SpaceTime:
    """The diagram of a subject; `prefix` begins every id."""
    choice = choose_beats(scene, subject)
    timeline = lay_out(choice.beats, choice.links)
    lanes = _lanes(choice)
    by_actor = {lane.actor: lane for lane in lanes}
    marks = tuple(
        Mark(
            id=f"{prefix}-st-{nth}",
            x=by_actor[beat.actor].x,
            y=timeline.ys[nth],
            shape=beat.shape,
            label=label(beat, int((by_actor[beat.actor].width - INDENT - 8) / LETTER)),
            title=title(scene, beat),
            key=beat.witness,
        )
        for nth, beat in enumerate(choice.beats)
    )
    return SpaceTime(
        prefix=prefix,
        title=subject.title,
        height=timeline.bottom + FOOT,
        lanes=lanes,
        stripes=tuple(_stripes(scene, subject, choice, timeline, by_actor)),
        arrows=tuple(_arrows(scene, choice, timeline, by_actor)),
        marks=marks,
        pauses=tuple(Pause(y, f"{seconds(length_us)} pass") for y, length_us in timeline.pauses),
        times=_times(choice.beats, timeline),
        zone=_zone(subject, timeline),
        anchors={each: mark.id for mark, beat in zip(marks, choice.beats, strict=True) for each in beat.ids},
        legend="" if subject.row is None else str(subject.row),
        summary=_summary(subject, choice),
        left_out=choice.left_out,
        crowd=choice.cast.crowd,
    )


def _summary(subject: Subject, choice: Choice) -> str:
    span_us = choice.beats[-1].at_us - choice.beats[0].at_us if choice.beats else 0
    actors = listed([lane for lane in choice.cast.lanes if lane not in {RUNNER, CROWD}], at_most=8)
    more = f" and {count(len(choice.cast.crowd), 'more member')} in one lane" if choice.cast.crowd else ""
    return f"{subject.title}: {count(len(choice.beats), 'mark')} of {actors}{more}, over {seconds(span_us)}."


def _lanes(choice: Choice) -> tuple[Lane, ...]:
    shares = [SHARES.get(name, 1.0) for name in choice.cast.lanes]
    unit = (WIDTH - GUTTER) / sum(shares)
    lanes, left = [], float(GUTTER)
    for name, share in zip(choice.cast.lanes, shares, strict=True):
        told = f"{len(choice.cast.crowd)} others" if name == CROWD else {REGISTRY: "ZooKeeper"}.get(name, name)
        width = round(share * unit, 1)
        lanes.append(Lane(name, told, round(left, 1), width, round(left + INDENT, 1)))
        left += width
    return tuple(lanes)


def _times(beats: Sequence[Beat], timeline: Timeline) -> tuple[tuple[float, str], ...]:
    """A time beside each mark that has room for it."""
    times: list[tuple[float, str]] = []
    for beat, y in zip(beats, timeline.ys, strict=True):
        text = f"{beat.at_us / 1_000_000:.3f}"
        if not times or (y - times[-1][0] >= 13 and text != times[-1][1]):
            times.append((y, text))
    return tuple(times)


def _zone(subject: Subject, timeline: Timeline) -> tuple[float, float, str] | None:
    if subject.zone is None:
        return None
    begin_us, end_us, text = subject.zone
    y = timeline.y(begin_us)
    return y, round(timeline.y(end_us) - y, 1), text


def _stripes(
    scene: Scene, subject: Subject, choice: Choice, timeline: Timeline, lanes: Mapping[str, Lane]
) -> list[Stripe]:
    stripes = [*_sessions(scene, timeline, lanes), *_faults(scene, timeline, lanes)]
    stripes += _rebalances(choice, timeline, lanes)
    kinds = {Layer.BELIEF: "believes", Layer.EFFECT: "works", Layer.REGISTRY: "owner"}
    places = {person.member: person.index for person in scene.people}
    for span in scene.spans:
        lane = lanes.get(REGISTRY if span.layer is Layer.REGISTRY else scene.name(span.member))
        if subject.row is None or row_of(span) != subject.row or lane is None:
            continue
        name = scene.name(span.member)
        length = f"{exact_moment(span.begin_us)} to {exact_moment(span.end_us)} s"
        text = f"{name} {scene.words.have[span.layer].one} {subject.row}, {length}"
        colour = paint(places[span.member])
        stripes += _stripe(kinds[span.layer], lane, timeline, span.begin_us, span.end_us, text, colour)
    return stripes


def _stripe(
    kind: str, lane: Lane, timeline: Timeline, begin_us: int, end_us: int, title: str, colour: Paint | None = None
) -> list[Stripe]:
    """Empty if it is outside of the diagram's time."""
    if end_us < timeline.begin_us or begin_us > timeline.end_us:
        return []
    top, bottom = timeline.y(begin_us), timeline.y(end_us)
    shift, width, least = STRIPES[kind]
    return [Stripe(kind, round(lane.x + shift, 1), top, width, max(round(bottom - top, 1), least), colour, title)]


def _sessions(scene: Scene, timeline: Timeline, lanes: Mapping[str, Lane]) -> list[Stripe]:
    """A lane's line is solid while ZooKeeper keeps the member's session."""
    opened: dict[str, int] = {}
    stretches: list[tuple[str, str, int, int]] = []
    for event in scene.events:
        name = scene.session_names.get(event.session or "", "")
        if event.kind is Kind.SESSION_OPENED and event.session is not None:
            opened[event.session] = scene.since_start(event)
        elif event.kind is Kind.SESSION_CLOSED and event.session in opened:
            stretches.append((name, event.session, opened.pop(event.session), scene.since_start(event)))
    for session, begin_us in opened.items():
        stretches.append((scene.session_names.get(session, ""), session, begin_us, scene.end_us))
    stripes: list[Stripe] = []
    for name, session, begin_us, end_us in stretches:
        lane = lanes.get(name)
        if lane is not None:
            text = f"ZooKeeper keeps session {session} of {name}, {exact_moment(begin_us)} to {exact_moment(end_us)} s"
            stripes += _stripe("session", lane, timeline, begin_us, end_us, text)
    return stripes


def _faults(scene: Scene, timeline: Timeline, lanes: Mapping[str, Lane]) -> list[Stripe]:
    stripes = []
    for fault in scene.faults:
        lane = lanes.get(fault.target) or (lanes.get(REGISTRY) if fault.member is None else None)
        end_us = scene.back_us(fault) if fault.ended_us is None else fault.ended_us
        if fault.kind.change or (fault.ended_us is None and fault.kind.name != KILL):
            continue  # of a moment
        if lane is None or end_us < timeline.begin_us or fault.began_us > timeline.end_us:
            continue
        top, bottom = timeline.y(fault.began_us), timeline.y(end_us)
        kind = "fault" if fault.doubt is None else "unproven"
        told = f"{fault.target} {fault.suffers}, from {exact_moment(fault.began_us)} s"
        stripes.append(Stripe(kind, lane.left + 2, top, lane.width - 6, round(bottom - top, 1), None, told))
    return stripes


def _rebalances(choice: Choice, timeline: Timeline, lanes: Mapping[str, Lane]) -> list[Stripe]:
    began: dict[str, int] = {}
    stripes: list[Stripe] = []
    for beat in choice.beats:
        kinds = {event.kind for event in beat.events}
        if beat.actor == CROWD:
            continue
        if Kind.REBALANCE_BEGAN in kinds:
            began[beat.actor] = beat.at_us
        elif Kind.REBALANCE_ENDED in kinds and beat.actor in began:
            begin_us = began.pop(beat.actor)
            text = f"{beat.actor} rebalances for {seconds(beat.at_us - begin_us)}"
            stripes += _stripe("rebalance", lanes[beat.actor], timeline, begin_us, beat.at_us, text)
    return stripes


def _arrows(scene: Scene, choice: Choice, timeline: Timeline, lanes: Mapping[str, Lane]) -> list[Arrow]:
    places = {each: nth for nth, beat in enumerate(choice.beats) for each in beat.ids}
    drawn: dict[tuple[str, int, int], Link] = {}
    for link in choice.links:
        drawn.setdefault((link.kind, places[link.source], places[link.target]), link)
    arrows = [
        _between(
            kind, choice.beats[source], timeline.ys[source], choice.beats[target], timeline.ys[target], lanes, link
        )
        for (kind, source, target), link in drawn.items()
        if source != target
    ]
    return [*arrows, *_requests(scene, choice, timeline, lanes)]


def _between(
    kind: str, source: Beat, y1: float, target: Beat, y2: float, lanes: Mapping[str, Lane], link: Link
) -> Arrow:
    x1, x2 = lanes[source.actor].x, lanes[target.actor].x
    if x1 == x2:  # within a lane: a bow to the left of its line
        return Arrow(kind, f"M{x1 - 5},{y1}C{x1 - 16},{y1} {x1 - 16},{y2} {x2 - 6},{y2}", link.title)
    side = 6 if x2 > x1 else -6
    return Arrow(kind, f"M{x1 + side},{y1}L{x2 - side * 1.3},{y2}", link.title)


def _requests(scene: Scene, choice: Choice, timeline: Timeline, lanes: Mapping[str, Lane]) -> list[Arrow]:
    """Lines between a lane and a mark in another lane, if the other end has no mark of its own: requests of members
    to ZooKeeper, and what the runner does to a member."""
    arrows = []
    for beat, y in zip(choice.beats, timeline.ys, strict=True):
        event = beat.events[0]
        here = lanes[beat.actor]
        asked = beat.actor == REGISTRY and event.kind in {Kind.CREATED, Kind.DELETED} and not event.of("with_session")
        if asked or event.kind is Kind.SESSION_OPENED:
            there = lanes.get(scene.session_names.get(event.session or "", ""), lanes.get(CROWD))
            if there is None or there.actor == RUNNER:
                continue
            side = 8 if there.x < here.x else -8
            path = f"M{there.x},{round(y - 7, 1)}L{here.x - side},{y}"
            arrows.append(Arrow("request", path, title(scene, beat)))
        elif event.layer is Layer.FAULT and (there := lanes.get(str(event.of("target")))) is not None:
            arrows.append(Arrow("fault", f"M{here.x + 7},{y}L{there.x - 8},{y}", title(scene, beat)))
    return arrows
