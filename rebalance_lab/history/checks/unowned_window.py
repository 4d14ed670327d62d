"""O3, unowned window: nobody owns a partition for longer than a rebalance may take.

Looked at are the trial's partitions (parameters `group`, `topic`, `partitions`) from the end
of the first rebalance that succeeded until the phase `closing`, while at least one member is
alive: from its first REBALANCE_ENDED with outcome ok until its MEMBER_CLOSED or the FAULT_BEGAN
of its kill. A paused member counts as alive. Two vantage points, each with its bound:

- *registry*: no owner znode; bound rebalance_max_retries * (rebalance_backoff_ms + attempt),
  which is what 0.8.2 spends on one rebalance before it gives up (facts/zkconsumer, 3.6);
- *belief*: no member believes that it owns the partition; bound session_timeout_ms + 2 ticks
  (a dead member's session lives that long: the server rounds expiry up to ticks) + the
  registry's bound.

An *attempt* takes fetcher_stop_ms and its requests, one round trip each: 3B + C + T + 4P + 7
for B brokers, C members, T = 1 topic and P partitions. That is facts/zkconsumer, 8.1 for static
members: 3B + C + T + p + 7 reads and q + p + d writes, where no member owned (q), claims (p) or
commits (d) more than P partitions. It errs on the long side: a member has a share of P, and
the leader finder's 1 + B reads hold nobody up. A round trip is 2 * latency_max_us in a
simulated world, else LIVE_ROUND_TRIP_US; of these parameters one that is missing counts 0.

Both bounds allow 2 ms more, as moments of two layers are compared. Where the wall clock drifted
by more than that, the registry's windows are measured but none is called too long, and the
trial is unknown unless belief shows one: belief and life are told by the host's one clock.
Claim Z9 stands on this.

Witness: the event that left the partition without owner (or the end of the first rebalance),
the event that ended the window (or the phase `closing`), and the REBALANCE_ENDED from which
on a member was alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rebalance_lab.history.checks.faults import TOLERANCE_US, clock_drifted, not_violated, seconds, violated
from rebalance_lab.history.checks.model import Check, Finding
from rebalance_lab.history.checks.stretches import Stretch, common, gaps, union
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History, Trial
from rebalance_lab.history.intervals import KILL, Interval, belief_intervals, of_kinds, registry_intervals

CLOSING = "closing"

#: What a real server on a busy host is allowed for a request and its reply, a write to disk
#: included. An allowance, not a measurement.
LIVE_ROUND_TRIP_US = 5_000

_LIFE_KINDS = frozenset({Kind.MEMBER_STARTED, Kind.REBALANCE_ENDED, Kind.MEMBER_CLOSED, Kind.FAULT_BEGAN})
_PHASE_KINDS = frozenset({Kind.PHASE})
_NUMBERS = ("partitions", "rebalance_max_retries", "rebalance_backoff_ms", "session_timeout_ms", "tick_ms")


@dataclass(frozen=True, slots=True)
class _Window:
    """A partition without owner while the group was alive (since the event `alive`)."""

    partition: int
    stretch: Stretch
    alive: Stretch


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
        return [window for window in self.windows if window.stretch.length_us > self.bound_us + TOLERANCE_US]

    @property
    def longest_us(self) -> int:
        return 0 if self.longest is None else self.longest.stretch.length_us

    @property
    def total_us(self) -> int:
        return sum(window.stretch.length_us for window in self.windows)


def judge(history: History) -> Finding:
    """Measures: `count` of windows above their bound; of the registry `longest_us`, `total_us`
    (partition-microseconds) and `bound_us`; of belief the same with `belief_`."""
    missing = _missing(history)
    if missing:
        return not_violated(history, "", {}, vacuous=f"its parameters lack {', '.join(missing)}")
    registry, belief = _views(history)
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
        if view.too_long and view.longest is not None:
            return _violated(history, view, view.longest, numbers)
    nothing = None if _alive(history.events) else "no rebalance ever succeeded, so no window was looked at"
    why = "no partition was without owner for longer than the bound"
    return not_violated(history, why, numbers, vacuous=nothing, across_layers=True)


def _violated(history: History, view: _View, window: _Window, numbers: dict[str, int]) -> Finding:
    topic = history.trial.parameters["topic"]
    who = "no owner in the registry" if view.layer is Layer.REGISTRY else "nobody who believed to own it"
    return violated(
        f"{topic}/{window.partition} had {who} for {seconds(window.stretch.length_us)} "
        f"while a member was alive; the bound is {seconds(view.bound_us)}",
        (window.alive.begin, window.stretch.begin, window.stretch.end),
        numbers,
    )


def _missing(history: History) -> list[str]:
    parameters = history.trial.parameters
    texts = [name for name in ("group", "topic") if not isinstance(parameters.get(name), str)]
    return texts + [name for name in _NUMBERS if not isinstance(parameters.get(name), int)]


def _views(history: History) -> tuple[_View, _View]:
    parameters, events = history.trial.parameters, history.events
    number = {name: int(parameters[name]) for name in _NUMBERS}
    bound_us = number["rebalance_max_retries"] * (number["rebalance_backoff_ms"] * 1000 + _attempt_us(history.trial))
    expiry_us = (number["session_timeout_ms"] + 2 * number["tick_ms"]) * 1000
    alive = _in_scope(_alive(events), events)

    def view(layer: Layer, bound_us: int, intervals: Iterable[Interval]) -> _View:
        owned: dict[tuple[str, str, int], list[Stretch]] = {}
        for one in intervals:
            owned.setdefault(one.place, []).append(Stretch(one.begin_us, one.end_us, one.begin, one.end))
        windows = []
        for partition in range(number["partitions"]):
            covered = union(owned.get((str(parameters["group"]), str(parameters["topic"]), partition), ()))
            windows += [_Window(partition, gap, stretch) for stretch in alive for gap in gaps(covered, stretch)]
        trusted = layer is not Layer.REGISTRY or not clock_drifted(history)
        return _View(layer, bound_us, windows, trusted)

    return (
        view(Layer.REGISTRY, bound_us, registry_intervals(events)),
        view(Layer.BELIEF, expiry_us + bound_us, belief_intervals(events)),
    )


def _attempt_us(trial: Trial) -> int:
    """What one attempt of a rebalance may take, without its back-off."""

    def number(name: str) -> int:
        value = trial.parameters.get(name)
        return value if isinstance(value, int) else 0

    topics = 1
    requests = 3 * number("brokers") + number("members") + topics + 4 * number("partitions") + 7
    round_trip_us = 2 * number("latency_max_us") if trial.world == "simulated" else LIVE_ROUND_TRIP_US
    return number("fetcher_stop_ms") * 1000 + requests * round_trip_us


def _alive(events: Sequence[Event]) -> list[Stretch]:
    """When at least one member was alive; begins with the REBALANCE_ENDED that made it so."""
    started: dict[str, str] = {}  # member -> its actor
    since: dict[str, Event] = {}
    stretches: list[Stretch] = []

    def end(member: str, event: Event) -> None:
        started.pop(member, None)
        begin = since.pop(member, None)
        if begin is not None:
            stretches.append(Stretch(begin.at_us, event.at_us, begin.id, event.id))

    for event in of_kinds(events, _LIFE_KINDS):
        member = event.member
        if event.kind is Kind.FAULT_BEGAN and event.of("fault") == KILL:
            for victim in [one for one, actor in started.items() if actor == event.of("target")]:
                end(victim, event)
        elif member is None:
            continue
        elif event.kind is Kind.MEMBER_STARTED:
            started[member] = event.actor
        elif event.kind is Kind.REBALANCE_ENDED and event.of("outcome") == "ok" and member in started:
            since.setdefault(member, event)
        elif event.kind is Kind.MEMBER_CLOSED:
            end(member, event)
    last_us = events[-1].at_us if events else 0
    stretches += [Stretch(begin.at_us, last_us, begin.id, None) for begin in since.values()]
    return union(stretches)


def _in_scope(alive: list[Stretch], events: Sequence[Event]) -> list[Stretch]:
    """The alive stretches until the phase `closing`: windows of a group that is being taken
    down are no anomaly."""
    phases = of_kinds(events, _PHASE_KINDS)
    closing = next((event for event in phases if event.of("name") == CLOSING), None)
    if closing is None:
        return alive
    scope = Stretch(alive[0].begin_us if alive else closing.at_us, closing.at_us, None, closing.id)
    return [part for stretch in alive if (part := common(stretch, scope)) is not None]


CHECK = Check(
    name="unowned_window",
    compares=(Layer.REGISTRY, Layer.BELIEF),
    meaning="A partition had no owner for longer than a rebalance may take, while a member was alive.",
    plants=("never-claim-last",),
    judge=judge,
)
