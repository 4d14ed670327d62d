"""Elections of the controller, as the registry's events and the brokers' requests show them.

An election is a creation of `/controller`; it lasts until that znode goes. Brokers compete for it if they ask to create
the znode and get their answer before the next election. A broker is known by its registration, which it makes in the
same session, and not by what the znode says. From 2.1 on the epoch is raised in the transaction that creates the znode.
Before, the session that has created it raises the epoch later, or never: a trial of an older form says so in its
parameter `form`.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from rebalance_lab.checks.broker_names import registrations
from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import CONTROLS, CONTROLS_NO_MORE
from rebalance_lab.history.views import actor_by_session, events_of, grouped, once
from rebalance_lab.wire.cluster import read_controller
from rebalance_lab.wire.paths import CONTROLLER, CONTROLLER_EPOCH

#: The form of the controller that creates `/controller` and raises the epoch in one transaction.
_WITH_ONE_TRANSACTION = "2.1"


@dataclass(slots=True)
class Election:
    """`created`: the creation of `/controller`; `ended`: its deletion. `broker_id`: the id that it holds. `registered`:
    the id under which the session that created it is registered; None if it is not. `winner`: the node of that session.
    `raised`: the change of `/controller_epoch` that belongs to it; None if there was none. `asked`: the nodes that
    asked to create it."""

    created: Event
    broker_id: int
    registered: int | None
    winner: str | None
    raised: Event | None
    asked: set[str] = field(default_factory=set)
    ended: Event | None = None

    @property
    def epoch(self) -> int | None:
        """The controller epoch that it wrote."""
        return None if self.raised is None else epoch_in(self.raised)


def epoch_in(event: Event) -> int | None:
    """What a change of `/controller_epoch` wrote; None if that is no number."""
    data = str(event.of("data"))
    return int(data) if data.isascii() and data.isdigit() else None


@once
def elections(history: History) -> list[Election]:
    """All elections in their order. Raises KafkaException for a `/controller` that cannot be read."""
    found: list[Election] = []
    for event in events_of(history, Kind.CREATED, Kind.DELETED):
        if event.of("path") != CONTROLLER:
            continue
        if event.kind is Kind.DELETED:
            if found:
                found[-1].ended = event
            continue
        broker_id = read_controller(str(event.of("data")).encode()).brokerid
        registered = registrations(history).get(event.session, (None, None))[0]
        winner = actor_by_session(history).get(event.session)
        found.append(Election(event, broker_id, registered, winner, None))
    _find_raised(history, found)
    began_us = [each.created.at_us - TOLERANCE_US for each in found]
    for actor, answered_us in _attempts(history):
        place = bisect_right(began_us, answered_us)
        if place:
            found[place - 1].asked.add(actor)
    return found


def _find_raised(history: History, found: list[Election]) -> None:
    """Give each election the change of the epoch that belongs to it."""
    if raises_in_one_transaction(history):
        raised = {event.zxid: event for event in epoch_changes(history)}
        for each in found:
            each.raised = raised.get(each.created.zxid)
        return
    for event in epoch_changes(history):
        before = [each for each in found if (each.created.zxid or 0) < (event.zxid or 0)]
        mine = [each for each in before if each.created.session == event.session]
        if mine and mine[-1].raised is None:
            mine[-1].raised = event


def raises_in_one_transaction(history: History) -> bool:
    """Whether the trial's controllers have the form of 2.1, as they have if the scenario has no parameter `form`."""
    return history.trial.parameters.get("form", _WITH_ONE_TRANSACTION) == _WITH_ONE_TRANSACTION


@once
def epoch_changes(history: History) -> list[Event]:
    """All writes of `/controller_epoch` but a creation with 0, which nobody has reigned with."""
    writes = events_of(history, Kind.CREATED, Kind.CHANGED)
    return [
        event
        for event in writes
        if event.of("path") == CONTROLLER_EPOCH and (event.kind is Kind.CHANGED or epoch_in(event) != 0)
    ]


@once
def requests(history: History) -> list[Event]:
    """The requests to create `/controller`, answered or not."""
    return [event for event in events_of(history, Kind.INVOKED) if _asks(event)]


@once
def looks(history: History) -> dict[str, list[Event]]:
    """The answered looks of each node at `/controller` that set a watch."""
    asked = {event.id for event in events_of(history, Kind.INVOKED) if _is_look(event)}
    answers = [event for event in events_of(history, Kind.OK) if (event.actor, event.of("of")) in asked]
    return grouped(answers, lambda event: event.actor)


def _candidates(history: History) -> dict[str, list[Event]]:
    """`looks`, without those of brokers that believe that they control: these look whether they still do."""
    found: dict[str, list[Event]] = {}
    controls: dict[str, bool] = {}
    its = {event.id for each in looks(history).values() for event in each}
    for event in sorted(events_of(history, Kind.OK, CONTROLS, CONTROLS_NO_MORE), key=lambda each: each.n):
        if event.kind is not Kind.OK:
            controls[event.actor] = event.kind is CONTROLS
        elif event.id in its and not controls.get(event.actor, False):
            found.setdefault(event.actor, []).append(event)
    return found


@once
def openings(history: History) -> list[tuple[Election, list[Event]]]:
    """Each election with the looks that saw before it that there was no controller: the first one of each node since
    the election before had ended, of those that did not control themselves."""
    found: list[tuple[Election, list[Event]]] = []
    candidates = _candidates(history)
    gone = 0
    for each in elections(history):
        won = each.created.zxid or 0
        saw = [next((look for look in its if gone <= (look.zxid or 0) < won), None) for its in candidates.values()]
        found.append((each, [look for look in saw if look is not None]))
        gone = won if each.ended is None else (each.ended.zxid or 0)
    return found


def _is_look(event: Event) -> bool:
    return (event.of("op"), event.of("path"), event.of("watch")) == ("exists", CONTROLLER, True)


def _attempts(history: History) -> list[tuple[str, int]]:
    """The node of each answered request to create `/controller`, and the time of its answer."""
    asked = {event.id for event in requests(history)}
    answers = events_of(history, Kind.OK, Kind.FAILED_OP)
    return [(event.actor, event.at_us) for event in answers if (event.actor, event.of("of")) in asked]


def _asks(event: Event) -> bool:
    if event.of("op") == "create":
        return event.of("path") == CONTROLLER
    parts = event.of("parts")
    if event.of("op") != "multi" or not isinstance(parts, list | tuple):
        return False
    return any(list(each) == ["create", CONTROLLER] for each in parts)
