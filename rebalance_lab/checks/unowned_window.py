"""O3, unowned window: nobody owns a partition for longer than a rebalance may take.

Looked at are the trial's partitions (parameters `group`, `topic`, `partitions`) from the end
of the first rebalance that succeeded until the phase `closing`, while at least one member is
alive: from its first REBALANCE_ENDED with outcome ok until its MEMBER_CLOSED or the FAULT_BEGAN
of its kill. A paused member counts as alive. Two vantage points, each with its bound:

- *registry*: no owner znode; bound: a rebalance (`bounds`), which is what 0.8.2 spends on one
  before it gives up;
- *belief*: no member believes that it owns the partition; bound: expiry (a dead member's session
  lives that long) and a rebalance.

A registry window that is open at a REST_REACHED is too long at any length: nothing is under way
that could end it. Both bounds allow 2 ms more, as moments of two layers are compared. Where the wall clock drifted
by more than that, the registry's windows are measured but none is called too long, and the
trial is unknown unless belief shows one: belief and life are told by the host's one clock.
Claim Z9 stands on this. A group that lived no longer than the registry's bound could show nothing,
unless it came to rest with all of them owned: unknown.

Witness: the event that left the partition without owner (or the end of the first rebalance),
the event that ended the window (or the phase `closing`), and the REBALANCE_ENDED from which
on a member was alive.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rebalance_lab.checks.bounds import bounds, lacking
from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted, not_violated, seconds, unknown, violated
from rebalance_lab.checks.model import Check, Finding
from rebalance_lab.checks.stretches import Stretch, common, gaps, union
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import KILL, Interval
from rebalance_lab.history.views import beliefs, closing_phase, events_of, owners

_LIFE_KINDS = (Kind.MEMBER_STARTED, Kind.REBALANCE_ENDED, Kind.MEMBER_CLOSED, Kind.FAULT_BEGAN)


@dataclass(frozen=True, slots=True)
class _Window:
    """A partition without owner while the group was alive (since the event `alive`). `at_rest`:
    it was so when the group rested."""

    partition: int
    stretch: Stretch
    alive: Stretch
    at_rest: bool


@dataclass(frozen=True, slots=True)
class _View:
    """One vantage point: its windows and its bound. `trusted`: its times may be compared."""

    layer: Layer
    bound_us: int
    windows: list[_Window]
    trusted: bool

    @property
    def longest(self) -> _Window | None:
        return max(self.windows, key=lambda window: window.stretch.length_us, default=None)

    @property
    def too_long(self) -> list[_Window]:
        if not self.trusted:
            return []
        limit_us = self.bound_us + TOLERANCE_US
        return [window for window in self.windows if window.at_rest or window.stretch.length_us > limit_us]

    @property
    def longest_us(self) -> int:
        return 0 if self.longest is None else self.longest.stretch.length_us

    @property
    def total_us(self) -> int:
        return sum(window.stretch.length_us for window in self.windows)


def judge(history: History) -> Finding:
    """Measures: `count` of windows above their bound; of the registry `longest_us`, `total_us`
    (partition-microseconds) and `bound_us`; of belief the same with `belief_`."""
    missing = lacking(history)
    if missing is not None:
        return unknown(history, missing)
    alive = _in_scope(_alive(history), history)
    registry, belief = _views(history, alive)
    numbers = {
        "count": len(registry.too_long) + len(belief.too_long),
        "longest_us": registry.longest_us,
        "total_us": registry.total_us,
        "bound_us": registry.bound_us,
        "longest_belief_us": belief.longest_us,
        "total_belief_us": belief.total_us,
        "belief_bound_us": belief.bound_us,
    }
    for view in (registry, belief):
        if view.too_long:
            worst = max(view.too_long, key=lambda window: window.stretch.length_us)
            return _violated(history, view, worst, numbers)
    why = "no partition was without owner for longer than the bound"
    return not_violated(history, why, numbers, vacuous=_vacuous(history, alive, registry), across_layers=True)


def _vacuous(history: History, alive: list[Stretch], registry: _View) -> str | None:
    """Why no window could have been too long."""
    if not alive:
        return "no rebalance ever succeeded, so no window was looked at"
    longest_us = max(stretch.length_us for stretch in alive)
    if longest_us > registry.bound_us + TOLERANCE_US or _rested(history, alive):
        return None
    return f"the group was alive for {seconds(longest_us)} only; the bound is {seconds(registry.bound_us)}"


def _rested(history: History, alive: list[Stretch]) -> bool:
    """Whether the group came to rest while it was alive. It had an owner for everything then, or the
    window would be too long: what was unowned before had ended, and nothing was under way that could
    make more of it."""
    rests = events_of(history, Kind.REST_REACHED)
    return any(stretch.begin_us <= rest.at_us <= stretch.end_us for rest in rests for stretch in alive)


def _rested_in(window: Stretch, rests: list[int]) -> bool:
    """Whether the group rested in the window. One that began within 2 ms of a rest is younger:
    a rest follows a quiet time."""
    return any(window.begin_us + TOLERANCE_US < at_us <= window.end_us for at_us in rests)


def _violated(history: History, view: _View, window: _Window, numbers: dict[str, int]) -> Finding:
    topic = history.trial.parameters["topic"]
    who = "no owner in the registry" if view.layer is Layer.REGISTRY else "nobody who believed to own it"
    limit = "the group rested" if window.at_rest else f"the bound is {seconds(view.bound_us)}"
    return violated(
        f"{topic}/{window.partition} had {who} for {seconds(window.stretch.length_us)} "
        f"while a member was alive; {limit}",
        (window.alive.begin, window.stretch.begin, window.stretch.end),
        numbers,
    )


def _views(history: History, alive: list[Stretch]) -> tuple[_View, _View]:
    parameters, limits = history.trial.parameters, bounds(history)
    rests = [event.at_us for event in events_of(history, Kind.REST_REACHED)]

    def view(layer: Layer, bound_us: int, intervals: Iterable[Interval]) -> _View:
        owned: dict[tuple[str, str, int], list[Stretch]] = {}
        for one in intervals:
            owned.setdefault(one.place, []).append(Stretch(one.begin_us, one.end_us, one.begin, one.end))
        windows = []
        for partition in range(int(parameters["partitions"])):
            covered = union(owned.get((str(parameters["group"]), str(parameters["topic"]), partition), ()))
            windows += [
                _Window(partition, gap, stretch, layer is Layer.REGISTRY and _rested_in(gap, rests))
                for stretch in alive
                for gap in gaps(covered, stretch)
            ]
        trusted = layer is not Layer.REGISTRY or not clock_drifted(history)
        return _View(layer, bound_us, windows, trusted)

    return (
        view(Layer.REGISTRY, limits.rebalance_us, owners(history)),
        view(Layer.BELIEF, limits.expiry_us + limits.rebalance_us, beliefs(history)),
    )


def _alive(history: History) -> list[Stretch]:
    """When at least one member was alive; begins with the REBALANCE_ENDED that made it so."""
    started: dict[tuple[str, str | None], None] = {}  # actor, member: two may go by one name
    since: dict[tuple[str, str | None], Event] = {}
    stretches: list[Stretch] = []

    def end(who: tuple[str, str | None], event: Event) -> None:
        started.pop(who, None)
        begin = since.pop(who, None)
        if begin is not None:
            stretches.append(Stretch(begin.at_us, event.at_us, begin.id, event.id))

    for event in events_of(history, *_LIFE_KINDS):
        who = (event.actor, event.member)
        if event.kind is Kind.FAULT_BEGAN:
            victims = [one for one in started if one[0] == event.of("target")] if event.of("fault") == KILL else []
            for victim in victims:
                end(victim, event)
        elif event.kind is Kind.MEMBER_STARTED:
            started[who] = None
        elif event.kind is Kind.REBALANCE_ENDED and event.of("outcome") == "ok" and who in started:
            since.setdefault(who, event)
        elif event.kind is Kind.MEMBER_CLOSED:
            end(who, event)
    stretches += [Stretch(begin.at_us, history.events[-1].at_us, begin.id, None) for begin in since.values()]
    return union(stretches)


def _in_scope(alive: list[Stretch], history: History) -> list[Stretch]:
    """The alive stretches until the phase `closing`: windows of a group that is being taken
    down are no anomaly."""
    closing = closing_phase(history)
    if closing is None or not alive:
        return alive
    scope = Stretch(alive[0].begin_us, closing.at_us, None, closing.id)
    return [part for stretch in alive if (part := common(stretch, scope)) is not None]


CHECK = Check(
    name="unowned_window",
    compares=(Layer.REGISTRY, Layer.BELIEF),
    meaning="A partition had no owner for longer than a rebalance may take, while a member was alive.",
    plants=("never-claim-last",),
    judge=judge,
)
