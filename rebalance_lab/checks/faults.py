"""The faults of a trial, whether each one took effect, and when they disturbed the group."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass

from rebalance_lab.history.events import Event, Kind, order
from rebalance_lab.history.fault_kinds import kind_of
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import CUT, KILL, PAUSE, RESTART
from rebalance_lab.history.views import events_of, grouped, once

#: Registry events carry the server's wall clock in ms, mapped by a measured offset: across layers, two moments closer
#: than this have no order.
TOLERANCE_US = 2_000

#: The runner sends the signal that kills or stops a process right after it has written FAULT_BEGAN, but a live runner
#: may have to wait for a core. So long after FAULT_BEGAN the process records nothing more, whenever the proof came.
LIVE_STOPPED_WITHIN_US = 100_000


#: Docker takes a network away from a container, or gives it back, within this time of FAULT_BEGAN or FAULT_ENDED. A
#: proxy does so at once.
CUT_WITHIN_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a trial with its proof of effect.

    `bit`: the FAULT_BIT that names it. `closed`: the registry's SESSION_CLOSED of the victim's session between begin
    and end (2 ms either way), for a fault that `must_outlast_session`. `lost`: the SESSION_CLOSED of a session that
    `must_survive`, before the first CONNECTED of it since the fault began. `moved`: an event that contradicts the
    proof, because a killed or paused process recorded it more than 2 ms after the proof, or longer after FAULT_BEGAN
    than a signal takes (2 ms simulated, LIVE_STOPPED_WITHIN_US live), and before the pause ended or the process was
    started again; the first such. Of a node that is cut off from ZooKeeper: that it connected, more than CUT_WITHIN_US
    after FAULT_BEGAN, and as much before FAULT_ENDED.
    """

    began: Event
    bit: Event | None
    ended: Event | None
    must_outlast_session: bool
    closed: Event | None
    lost: Event | None
    moved: Event | None

    @property
    def end_us(self) -> float:
        """When it ended; infinite if it never did."""
        return math.inf if self.ended is None else self.ended.at_us

    @property
    def why_not_bitten(self) -> str | None:
        """What is missing; None if the fault took effect."""
        name = f"{self.began.of('fault')} of {self.began.of('target')} ({self.began.actor}/{self.began.n})"
        if self.bit is None:
            return f"{name} has no proof that it took effect"
        if self.must_outlast_session and self.closed is None:
            return f"{name} did not outlast session {self.began.of('session')}"
        if self.lost is not None:
            return f"{name}: session {self.lost.session} did not survive it"
        if self.moved is not None:
            who, n = self.moved.id
            if self.began.of("fault") == CUT:
                return f"{name} cut nothing off: {who} connected during it ({who}/{n})"
            return f"{name} stopped nothing: {who} recorded event {n} during it"
        return None


@once
def faults(history: History) -> list[Fault]:
    """The trial's faults in the order they began."""
    bit, ended = (
        {(event.actor, event.of("of")): event for event in reversed(events_of(history, kind))}
        for kind in (Kind.FAULT_BIT, Kind.FAULT_ENDED)
    )
    began = events_of(history, Kind.FAULT_BEGAN)
    return [_fault(history, event, bit.get(event.id), ended.get(event.id)) for event in began]


@once
def lasting_faults(history: History) -> list[Fault]:
    """The faults that disturb the group until they end."""
    return [fault for fault in faults(history) if not kind_of(fault.began).momentary]


def under_way(history: History, moment: Event) -> bool:
    """Whether a lasting fault has begun and not ended at a moment."""
    return any(fault.began.at_us <= moment.at_us < fault.end_us for fault in lasting_faults(history))


def disturbed_until(history: History, begin_us: int, end_us: int) -> int:
    """When the last lasting fault of a time ended: `begin_us` if there was none, `end_us` if one had not ended by
    then."""
    ends = [int(min(fault.end_us, end_us)) for fault in lasting_faults(history) if fault.began.at_us <= end_us]
    return max([begin_us, *ends])


def undisturbed(history: History, begin_us: int, end_us: int) -> bool:
    """Whether no lasting fault was under way at any moment of a time."""
    return all(fault.began.at_us > end_us or fault.end_us < begin_us for fault in lasting_faults(history))


def _fault(history: History, began: Event, bit: Event | None, ended: Event | None) -> Fault:
    must = began.of("must_outlast_session") is True
    until_us = math.inf if ended is None else ended.at_us + TOLERANCE_US
    closed = (
        event
        for event in events_of(history, Kind.SESSION_CLOSED)
        if event.session == began.of("session") and began.at_us - TOLERANCE_US <= event.at_us <= until_us
    )
    ended_session = next(closed, None) if must else None
    return Fault(began, bit, ended, must, ended_session, _lost(history, began), _moved(history, began, bit, ended))


def _lost(history: History, began: Event) -> Event | None:
    """The end of the session that must survive the fault, before it was connected again."""
    session = began.of("must_survive")
    if session is None:
        return None
    of_it = [
        event
        for kind in (Kind.SESSION_CLOSED, Kind.CONNECTED)
        for event in events_of(history, kind)
        if event.session == session and event.at_us > began.at_us
    ]
    first = min(of_it, key=order, default=None)
    return first if first is not None and first.kind is Kind.SESSION_CLOSED else None


def _connected(history: History, began: Event, ended: Event | None) -> Event | None:
    """A connection to ZooKeeper during a cut, be it of one direction only."""
    until_us = math.inf if ended is None else ended.at_us - CUT_WITHIN_US
    for event in events_of(history, Kind.CONNECTED):
        if event.actor == began.of("target") and began.at_us + CUT_WITHIN_US < event.at_us < until_us:
            return event
    return None


def _moved(history: History, began: Event, bit: Event | None, ended: Event | None) -> Event | None:
    """The first event that a killed or paused process recorded after it was, or should have been, dead or stopped; or
    the first connection of one that was cut off."""
    if bit is not None and began.of("fault") == CUT:
        return _connected(history, began, ended)
    if bit is None or began.of("fault") not in (KILL, PAUSE):
        return None
    own = events_by_actor(history).get(str(began.of("target")), [])
    within_us = TOLERANCE_US if history.trial.world == "simulated" else LIVE_STOPPED_WITHIN_US
    stopped_us = min(bit.at_us + TOLERANCE_US, began.at_us + within_us)
    after = bisect_right(own, stopped_us, key=lambda event: event.at_us)
    if after == len(own):
        return None
    if began.of("fault") == PAUSE:
        goes_on_us = None if ended is None else ended.at_us - TOLERANCE_US
    else:
        goes_on_us = _restarted_us(history, began)
    return None if goes_on_us is not None and own[after].at_us >= goes_on_us else own[after]


def _restarted_us(history: History, killed: Event) -> int | None:
    """When the target of a kill was started again."""
    for event in events_of(history, Kind.FAULT_BEGAN):
        same = event.of("fault") == RESTART and event.of("target") == killed.of("target")
        if same and order(event) > order(killed):
            return event.at_us
    return None


@once
def events_by_actor(history: History) -> dict[str, list[Event]]:
    return grouped(history.events, lambda event: event.actor)


def clock_drifted(history: History) -> bool:
    """Whether the wall clock drifted against `at_us` by more than the tolerance: the registry's times, mapped by one
    offset, cannot be compared with those of other layers."""
    return abs(history.trial.wall_drift_us) > TOLERANCE_US
