"""Z6: the order in which a member starts.

It registers, watches the ids of its group, watches /brokers/ids, with a topic filter also watches /brokers/topics, and
then forces its first rebalance. The steps are the member's own operations that were answered with OK, at the time it
asks for them: the last create of its id before its first REBALANCE_BEGAN (one that it deleted again is not a
registration), in that session the first read of the children of each path that sets a watch (a watch of `exists` does
not hear of children, and a session takes its watches along); and that REBALANCE_BEGAN. A member has a filter if it
reports one or if the registry holds one in its registration. 0.8.2 as shipped watches /brokers/ids only after a
rebalance that found no broker, so there the statement fails. A member that never rebalanced is left out. The check does
not apply to a history that only counts operations, or that records of no read whether it sets a watch.

The start forces a rebalance if the starting thread itself begins one (`by` is create), promptly after the answer
to the last step (`Bounds.prompt_us`, without rebalances that a watch asked for meanwhile). Otherwise
something else set the first rebalance off, such as a timer. In a live trial, or under a fault, the
process or its server may have stood still, so there a late rebalance leaves the trial unknown.

Witness: the two steps in the wrong order; of a step that is missing, the steps around its place; of a
rebalance that was not forced, the last step and the rebalance.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from rebalance_lab.checks.bounds import bounds, lacking
from rebalance_lab.checks.faults import undisturbed
from rebalance_lab.checks.findings import not_violated, violated
from rebalance_lab.checks.members import Life, lives
from rebalance_lab.checks.model import ZK, About, Check, Finding
from rebalance_lab.checks.registry_state import registration_of
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once

BROKERS = "/brokers/ids"
TOPICS = "/brokers/topics"

#: What a registration with a filter has for its pattern.
FILTERS = ("white_list", "black_list")

#: The `by` of the rebalance that a start forces.
_START = "create"

#: A step of the start: what it is, and the event, None where it did not happen before the last.
_Step = tuple[str, Event | None]


def judge(history: History) -> Finding:
    """Measures: `members` that rebalanced; `count` of those that started in another order."""
    found = [(life, steps) for life in lives(history) if (steps := _steps(history, life))]
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
    return not_violated(history, "every member started in the order told", numbers, vacuous=nothing)


def _forced(life: Life) -> Event | None:
    """The rebalance that the start itself began."""
    return next((one.began for one in life.rebalances if one.began.of("by") == _START), None)


def _forces(history: History, life: Life, steps: Sequence[_Step]) -> bool:
    """Whether the start of a member of which no step is missing began a rebalance promptly after the last one, or had
    no time to."""
    forced = _forced(life)
    end_us = history.events[-1].at_us if life.left_us is None else life.left_us
    until_us = end_us if forced is None else forced.at_us
    return life.idle_us(_answered_us(history, steps), until_us) <= bounds(history).prompt_us


def _excused(history: History, life: Life, steps: Sequence[_Step]) -> bool:
    """Whether something else may have made the rebalance of a start late."""
    forced = _forced(life)
    if lacking(history) is not None or forced is None:
        return forced is not None
    live = history.trial.world != "simulated"
    return live or not undisturbed(history, _answered_us(history, steps), forced.at_us)


def _answered_us(history: History, steps: Sequence[_Step]) -> int:
    """When the last step before the rebalance was answered."""
    before = _events(steps)[-2]
    return _answers(history)[before.id].at_us


def _events(steps: Sequence[_Step]) -> list[Event]:
    return [event for _, event in steps if event is not None]


def _violated(life: Life, steps: Sequence[_Step], numbers: dict[str, int]) -> Finding:
    index = _wrong(steps)
    name, event = steps[index]
    before = [step for _, step in steps[:index] if step is not None][-1]
    after = next(step for _, step in steps[index:] if step is not None)
    if event is None:
        return violated(f"{life.member} did not {name} before its first rebalance", (before.id, after.id), numbers)
    why = f"{life.member} did {name} before it did {steps[index - 1][0]}"
    return violated(why, (event.id, before.id), numbers)


def _wrong(steps: Sequence[_Step]) -> int:
    """The place of the first step that is missing, or comes before the one above it; 0 where all
    is in order (the first step is always there)."""
    for index in range(1, len(steps)):
        former, event = steps[index - 1][1], steps[index][1]
        if event is None or (former is not None and event.n < former.n):
            return index
    return 0


def _steps(history: History, life: Life) -> list[_Step]:
    """The steps in the order they should have; none for a member that did not get so far."""
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


def _before(history: History, life: Life, first: Event, deed: str) -> list[Event]:
    """Those of the life before its first rebalance: a process may have several lives, one after another."""
    found = _deeds(history).get((life.actor, deed), [])
    begin, end = (bisect_right(found, event.n, key=lambda event: event.n) for event in (life.started, first))
    return found[begin:end]


@once
def _registered_filters(history: History) -> set[tuple[str, str]]:
    """(group, member) of each id that was registered with a filter."""
    registered = [event for event in events_of(history, Kind.CREATED, Kind.CHANGED) if event.partition is None]
    return {
        (event.group or "", event.member)
        for event in registered
        if event.member is not None and (registration := registration_of(event)) is not None and registration.wildcard
    }


@once
def _deeds(history: History) -> dict[tuple[str, str], list[Event]]:
    """(actor, deed) -> when it asked for it, if the answer was OK: `create PATH`, or `watch PATH` (its children)."""
    found: dict[tuple[str, str], list[Event]] = {}
    for event in events_of(history, Kind.INVOKED):
        operation, path = event.of("op"), event.of("path")
        if event.id not in _answers(history):
            continue
        if operation == "children" and event.of("watch") is True:
            found.setdefault((event.actor, f"watch {path}"), []).append(event)
        elif operation == "create":
            found.setdefault((event.actor, f"create {path}"), []).append(event)
    return found


@once
def _answers(history: History) -> dict[tuple[str, object], Event]:
    """The OK of each INVOKED, by the id of that."""
    return {(event.actor, event.of("of")): event for event in events_of(history, Kind.OK)}


def _watches_told(history: History) -> bool:
    """Whether the operations of members are recorded, and say of reads that they set a watch."""
    actors = {life.actor for life in lives(history)}
    return any(event.actor in actors and event.of("watch") is True for event in events_of(history, Kind.INVOKED))


CHECK = Check(
    name="startup_order",
    compares=(Layer.OP,),
    meaning="A member did not register, then watch ids, brokers and topics, then rebalance, in this order.",
    plants=("ignore-watch",),
    judge=judge,
    applies_to=(ZK,),
    about=About.STATEMENT,
    applies=_watches_told,
)
