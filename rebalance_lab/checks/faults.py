"""Which faults bit, and why a history proves no absence.

A check that found nothing says *clean* only if the history could have shown something. These
are the causes that turn clean into unknown; a violation that was seen stays a violation.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from rebalance_lab.checks.completeness import lost_transactions, strangers
from rebalance_lab.checks.model import Finding, Outcome
from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import KILL, PAUSE
from rebalance_lab.history.views import events_of, gave_up, once

#: Registry events carry the server's wall ms, mapped by a measured offset: across layers two
#: moments closer than this have no order.
TOLERANCE_US = 2_000

#: The runner sends the signal that kills or stops a process as soon as it has written FAULT_BEGAN. A live runner may
#: have to wait for a core first. This long after FAULT_BEGAN the process records nothing more, whenever the proof came.
LIVE_STOPPED_WITHIN_US = 100_000

#: Faults that are done at once, or are no harm to a member: what follows them is theirs, and a
#: group has to cope with it.
DEEDS = frozenset({"kill", "leave", "join", "topic", "broker", "expire", "duplicate-id"})

#: What a control may have: changes of the group and of what it reads. All else does harm.
DEEDS_OF_CONTROLS = frozenset({"join", "leave", "topic", "broker"})


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a trial with its proof of effect.

    `bit`: the FAULT_BIT that names it. `closed`: the registry's SESSION_CLOSED of the victim's
    session between begin and end, 2 ms either way; looked for only where the fault
    `must_outlast_session`. `moved`: the first event that a killed or paused process recorded more than 2 ms
    after its proof, or later after FAULT_BEGAN than a signal takes (2 ms simulated, LIVE_STOPPED_WITHIN_US
    live), and before the pause ended; it contradicts the proof.
    """

    began: Event
    bit: Event | None
    ended: Event | None
    must_outlast_session: bool
    closed: Event | None
    moved: Event | None

    @property
    def why_not_bitten(self) -> str | None:
        """None for a fault that bit, else what is missing."""
        name = f"{self.began.of('fault')} of {self.began.of('target')} ({self.began.actor}/{self.began.n})"
        if self.bit is None:
            return f"{name} has no proof that it bit"
        if self.must_outlast_session and self.closed is None:
            return f"{name} did not outlast session {self.began.of('session')}"
        if self.moved is not None:
            return f"{name} stopped nothing: {self.moved.actor} recorded event {self.moved.n} meanwhile"
        return None


@once
def faults(history: History) -> list[Fault]:
    """The trial's faults in the order they began."""
    bit: dict[object, Event] = {}
    ended: dict[object, Event] = {}
    began: list[Event] = []
    closed: list[Event] = []
    kinds = (Kind.FAULT_BEGAN, Kind.FAULT_BIT, Kind.FAULT_ENDED, Kind.SESSION_CLOSED)
    for event in events_of(history, *kinds):
        match event.kind:
            case Kind.FAULT_BEGAN:
                began.append(event)
            case Kind.FAULT_BIT:
                bit.setdefault((event.actor, event.of("of")), event)
            case Kind.FAULT_ENDED:
                ended.setdefault((event.actor, event.of("of")), event)
            case Kind.SESSION_CLOSED:
                closed.append(event)
    return [_fault(history, event, bit.get(event.id), ended.get(event.id), closed) for event in began]


def under_way(history: History, moment: Event) -> bool:
    """Whether a fault disturbs the group at a moment: one that goes on for a while, and has not ended."""
    return any(
        fault.began.at_us <= moment.at_us
        and fault.began.of("fault") not in DEEDS
        and (fault.ended is None or fault.ended.at_us > moment.at_us)
        for fault in faults(history)
    )


def disturbed_until(history: History, begin_us: int, end_us: int) -> int:
    """When the last fault ended that went on at any moment of a stretch: its begin where there is none, its end where
    one has not ended by then."""
    ends = [
        end_us if fault.ended is None else min(fault.ended.at_us, end_us)
        for fault in faults(history)
        if fault.began.of("fault") not in DEEDS and fault.began.at_us <= end_us
    ]
    return max([begin_us, *ends])


def undisturbed(history: History, begin_us: int, end_us: int) -> bool:
    """Whether no fault that goes on for a while did so at any moment of a stretch."""
    return all(
        fault.began.of("fault") in DEEDS
        or fault.began.at_us > end_us
        or (fault.ended is not None and fault.ended.at_us < begin_us)
        for fault in faults(history)
    )


def _fault(history: History, began: Event, bit: Event | None, ended: Event | None, closed: list[Event]) -> Fault:
    must = began.of("must_outlast_session") is True
    found = None
    if must:
        for event in closed:
            late = ended is not None and event.at_us > ended.at_us + TOLERANCE_US
            if event.session == began.of("session") and event.at_us >= began.at_us - TOLERANCE_US and not late:
                found = event
                break
    return Fault(began, bit, ended, must, found, _moved(history, began, bit, ended))


def _moved(history: History, began: Event, bit: Event | None, ended: Event | None) -> Event | None:
    """What a killed or paused process recorded after it was seen dead or stopped, or should have been."""
    if bit is None or began.of("fault") not in (KILL, PAUSE):
        return None
    own = _by_actor(history).get(str(began.of("target")), [])
    within_us = TOLERANCE_US if history.trial.world == "simulated" else LIVE_STOPPED_WITHIN_US
    stopped_us = min(bit.at_us + TOLERANCE_US, began.at_us + within_us)
    after = bisect_right(own, stopped_us, key=lambda event: event.at_us)
    if after == len(own):
        return None
    woke = began.of("fault") == PAUSE and ended is not None and own[after].at_us >= ended.at_us - TOLERANCE_US
    return None if woke else own[after]


@once
def _by_actor(history: History) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in history.events:
        found.setdefault(event.actor, []).append(event)
    return found


def clock_drifted(history: History) -> bool:
    """The wall clock moved against `at_us` during the trial by more than the tolerance: the
    registry's times, mapped by one offset, cannot be compared with those of other layers."""
    return abs(history.trial.wall_drift_us) > TOLERANCE_US


def unknown_causes(history: History, *, across_layers: bool = False) -> list[str]:
    """Why this history proves no absence; empty when it may be called clean.

    `across_layers`: the check compares the registry's times with another layer's, so that a
    clock that drifted is a cause. It is one for every check where a fault had to outlast its
    session: that is shown by comparing such times.
    """
    causes = list(_incomplete(history))
    boots = sorted(set(history.trial.boot_ids))
    if len(boots) > 1:
        causes.append(f"its processes ran under {len(boots)} boot ids: their clocks do not compare")
    missed = [event for event in events_of(history, Kind.REST_MISSED) if event.of("gave_up") is not True]
    if missed:
        causes.append(f"rest was missed: {missed[0].of('why')}")
    elif not events_of(history, Kind.REST_REACHED):
        causes.append("it never came to rest")
    tried = faults(history)
    causes.extend(why for fault in tried if (why := fault.why_not_bitten) is not None)
    if clock_drifted(history) and (across_layers or any(fault.must_outlast_session for fault in tried)):
        drift_us = history.trial.wall_drift_us
        causes.append(f"its wall clock drifted by {drift_us} us: registry times cannot be mapped to the others")
    return causes


@once
def _incomplete(history: History) -> list[str]:
    """What the history lacks to be whole: an event, its end, or the fault it is about."""
    counts = {actor: sorted(event.n for event in its) for actor, its in _by_actor(history).items()}
    causes = [why for actor, ns in sorted(counts.items()) if (why := _not_whole(actor, ns)) is not None]
    causes += lost_transactions(history) + strangers(history)
    stopped = gave_up(history)
    if stopped is not None:
        causes.append(f"the runner gave up: {stopped}")
    elif not events_of(history, Kind.TRIAL_ENDED):
        causes.append("the runner never said that the trial ended")
    if not history.trial.control and not events_of(history, Kind.FAULT_BEGAN):
        causes.append("it is no control, and no fault ever began")
    if history.trial.control:
        began = [event for event in events_of(history, Kind.FAULT_BEGAN) if event.of("fault") not in DEEDS_OF_CONTROLS]
        causes.extend(f"it is a control, and a fault began: {event.of('fault')}" for event in began[:1])
    return causes


def _not_whole(actor: str, ns: list[int]) -> str | None:
    """The first n (of `ns`, ascending) that is missing or repeated."""
    for expected, n in enumerate(ns):
        if n > expected:
            return f"{actor}'s event {expected} is missing"
        if n < expected:
            return f"{actor}'s event {n} is there more than once"
    return None


def violated(why: str, witness: tuple[EventId | None, ...], measures: dict[str, int]) -> Finding:
    """A violation; the witness keeps the order given, each id once (None is the history's end)."""
    ids = tuple(dict.fromkeys(event for event in witness if event is not None))
    return Finding(Outcome.VIOLATED, why, ids, measures)


def not_violated(
    history: History,
    why: str,
    measures: dict[str, int],
    *,
    vacuous: str | None = None,
    across_layers: bool = False,
) -> Finding:
    """Clean, or unknown with every cause. `vacuous`: why the check had nothing to look at;
    `across_layers`: see `unknown_causes`."""
    causes = unknown_causes(history, across_layers=across_layers)
    if vacuous is not None:
        causes.append(vacuous)
    if causes:
        return Finding(Outcome.UNKNOWN, "; ".join(causes), (), measures)
    return Finding(Outcome.CLEAN, why, (), measures)


def unknown(history: History, cause: str) -> Finding:
    """Unknown for this cause and every other; for checks that can measure nothing."""
    return Finding(Outcome.UNKNOWN, "; ".join([*unknown_causes(history), cause]))
