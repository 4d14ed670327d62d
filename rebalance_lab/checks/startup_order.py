"""Z6: the order in which a member starts.

A member registers, watches the ids of its group, watches /brokers/ids, with a topic filter also watches
/brokers/topics, and then forces its first rebalance. The steps are the member's own operations that were answered with
OK, at the time of the request: the last create of its id before its first REBALANCE_BEGAN (an id that it deleted again
does not count); in that session the first read of the children of each path that sets a watch (a watch of `exists` does
not report children, and watches end with their session); and that REBALANCE_BEGAN. A member has a filter if it reports
one or if its registration in the registry has one. Kafka 0.8.2 as shipped watches /brokers/ids only after a rebalance
that found no broker, so there the statement fails. A member that never rebalanced is left out. The check does not apply
to a history that only counts operations, or that does not record which reads set a watch.

The start forces a rebalance if the starting thread itself begins one (`by` is create), promptly after the answer to the
last step (`Bounds.prompt_us`, without rebalances that a watch triggered meanwhile). Otherwise something else, such as a
timer, triggered the first rebalance. In a live trial, or under a fault, the process or its server may have stood still,
so there a late rebalance leaves the trial unknown.

Witness: the two steps in the wrong order; for a missing step, the steps around its place; for a rebalance that was not
forced, the last step and the rebalance.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from rebalance_lab.checks.bounds import bounds, lacking
from rebalance_lab.checks.faults import undisturbed
from rebalance_lab.checks.members import MemberLife, member_lives
from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.registry_state import has_filter
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once

BROKERS = "/brokers/ids"
TOPICS = "/brokers/topics"

#: The `pattern` of a registration with a filter.
FILTERS = ("white_list", "black_list")

#: The `by` of the rebalance that a start forces.
_START = "create"

#: A step of the start: its name, and its event; None if it did not happen before the rebalance.
_Step = tuple[str, Event | None]


def judge(history: History) -> Finding:
    """Measures: `members` that rebalanced; `count` of those that started in another order."""
    found = [(life, steps) for life in member_lives(history) if (steps := _steps(history, life))]
    broken = [(life, steps) for life, steps in found if _wrong(steps)]
    unforced = [(life, steps) for life, steps in found if not _wrong(steps) and not _forces(history, life, steps)]
    convicted = [(life, steps) for life, steps in unforced if not _excused(history, life, steps)]
    numbers = {"count": len(broken) + len(convicted), "members": len(found)}
    if broken:
        return _violated(*broken[0], numbers)
    if convicted:
        life, steps = convicted[0]
        before, first = _events(steps)[-2:]
        witness = (before.id, (_forced(life) or first).id)
        return violated(f"{life.member} did not force its first rebalance", witness, numbers)
    nothing = None if found else "no member rebalanced"
    if unforced:
        nothing = lacking(history) or f"{unforced[0][0].member} stood still, or did not force its first rebalance"
    return not_violated(history, "every member started in the stated order", numbers, vacuous=nothing)


def _forced(life: MemberLife) -> Event | None:
    """The rebalance that the start itself began."""
    return next((one.began for one in life.rebalances if one.began.of("by") == _START), None)


def _forces(history: History, life: MemberLife, steps: Sequence[_Step]) -> bool:
    """Whether the start of a member without missing steps began a rebalance promptly after the last step, or had no
    time to do so."""
    forced = _forced(life)
    end_us = history.events[-1].at_us if life.left_us is None else life.left_us
    until_us = end_us if forced is None else forced.at_us
    return life.idle_us(_answered_us(history, steps), until_us) <= bounds(history).prompt_us


def _excused(history: History, life: MemberLife, steps: Sequence[_Step]) -> bool:
    """Whether something else may have delayed the rebalance of a start."""
    forced = _forced(life)
    if lacking(history) is not None or forced is None:
        return forced is not None
    live = history.trial.world != "simulated"
    return live or not undisturbed(history, _answered_us(history, steps), forced.at_us)


def _answered_us(history: History, steps: Sequence[_Step]) -> int:
    """When the last step before the rebalance was answered."""
    return _answers(history)[_events(steps)[-2].id].at_us


def _events(steps: Sequence[_Step]) -> list[Event]:
    return [event for _, event in steps if event is not None]


def _violated(life: MemberLife, steps: Sequence[_Step], numbers: dict[str, int]) -> Finding:
    index = _wrong(steps)
    name, event = steps[index]
    before = [step for _, step in steps[:index] if step is not None][-1]
    after = next(step for _, step in steps[index:] if step is not None)
    if event is None:
        return violated(f"{life.member} did not {name} before its first rebalance", (before.id, after.id), numbers)
    why = f"{life.member} started in the wrong order: {name}, then {steps[index - 1][0]}"
    return violated(why, (event.id, before.id), numbers)


def _wrong(steps: Sequence[_Step]) -> int:
    """The index of the first step that is missing or comes before its predecessor; 0 if all are in order (the first
    step is never missing)."""
    for index in range(1, len(steps)):
        former, event = steps[index - 1][1], steps[index][1]
        if event is None or (former is not None and event.n < former.n):
            return index
    return 0


def _steps(history: History, life: MemberLife) -> list[_Step]:
    """The steps in their proper order; none for a member that never rebalanced."""
    if not life.rebalances:
        return []
    ids, first = f"/consumers/{life.group}/ids", life.rebalances[0].began
    registered = next(reversed(_before(history, life, first, f"create {ids}/{life.member}")), None)
    deeds = [("watch the ids", f"watch {ids}"), ("watch the brokers", f"watch {BROKERS}")]
    if life.started.of("pattern") in FILTERS or (life.group, life.member) in _registered_filters(history):
        deeds.append(("watch the topics", f"watch {TOPICS}"))
    watches = []
    for name, deed in deeds:
        asked = _before(history, life, first, deed)
        own = [event for event in asked if registered is None or event.session == registered.session]
        watches.append((name, next(iter(own), None)))
    return [("start", life.started), ("register", registered), *watches, ("rebalance", first)]


def _before(history: History, life: MemberLife, first: Event, deed: str) -> list[Event]:
    """The requests of one life before its first rebalance: a process may have several lives, one after another."""
    found = _deeds(history).get((life.actor, deed), [])
    begin, end = (bisect_right(found, event.n, key=lambda event: event.n) for event in (life.started, first))
    return found[begin:end]


@once
def _registered_filters(history: History) -> set[tuple[str, str]]:
    """(group, member) of each id that was registered with a filter."""
    return {
        (event.group or "", event.member)
        for event in events_of(history, Kind.CREATED, Kind.CHANGED)
        if event.member is not None and event.partition is None and has_filter(event)
    }


@once
def _deeds(history: History) -> dict[tuple[str, str], list[Event]]:
    """(actor, `create PATH` or `watch PATH`) -> its requests that were answered with OK; a watch is one of children."""
    found: dict[tuple[str, str], list[Event]] = {}
    for event in events_of(history, Kind.INVOKED):
        watch = event.of("op") == "children" and event.of("watch") is True
        if event.id in _answers(history) and (watch or event.of("op") == "create"):
            deed = f"{'watch' if watch else 'create'} {event.of('path')}"
            found.setdefault((event.actor, deed), []).append(event)
    return found


@once
def _answers(history: History) -> dict[tuple[str, object], Event]:
    """The OK of each INVOKED, by the id of the INVOKED."""
    return {(event.actor, event.of("of")): event for event in events_of(history, Kind.OK)}


def _watches_recorded(history: History) -> bool:
    """Whether the operations of members are recorded, with the watches that reads set."""
    actors = {life.actor for life in member_lives(history)}
    return any(event.actor in actors and event.of("watch") is True for event in events_of(history, Kind.INVOKED))


CHECK = Check(
    name="startup_order",
    title="Start-up order",
    compares=(Layer.OP,),
    meaning="A member did not register, then watch ids, brokers and topics, then rebalance, in this order.",
    together="Whatever a member does before it watches may be based on a view that has already changed.",
    statement="A member registers, watches ids, watches brokers, then rebalances",
    plants=(Planted("ignore-watch", "walkthrough"),),
    judge=judge,
    applies_to=(ZK,),
    looks_at=_watches_recorded,
)
