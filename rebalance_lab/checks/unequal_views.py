"""At rest, the controller or a broker's metadata differ from the registry (R6; metadata converge).

The controller remembers the state of each partition, and decides by that. It tells every broker, which tells clients.
The leader, the leader epoch and the ISR, without its order, are compared with the state znode, and the brokers that a
broker considers live with `/brokers/ids`. Of a partition whose state znode is gone, or whose topic has been asked to be
deleted, no broker tells clients any more. Looked at are the moments in which the runner finds the cluster
at rest, if no fault has disturbed it for `bound_us` and for as long as the fault lasted: what has stood for `bound_us`
is known to the controller, and to each broker that has been registered for so long. What leaders write themselves (up
to Kafka 2.6) the controller learns from their reports, which come some seconds later. `stale_role` looks at what
brokers do, and not at what they tell.

Brokers of Kafka log what they tell clients, and neither which brokers they consider live nor what their controllers
remember.

Witness: the registry's last event, what the broker or its controller took for true last, and the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rebalance_lab.checks.broker_lives import in_lives
from rebalance_lab.checks.broker_names import broker_names
from rebalance_lab.checks.elections import elections
from rebalance_lab.checks.faults import lasting_faults
from rebalance_lab.checks.isr_writers import leaders_write_isrs
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import (
    Place,
    asked_to_delete,
    partition_states,
    place_of,
    place_of_state,
)
from rebalance_lab.checks.phases import before_closing, rests_of
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import BROKERS_KNOWN, METADATA_FORGOTTEN, METADATA_KNOWN, STATE_KNOWN
from rebalance_lab.history.views import events_of, once
from rebalance_lab.wire.cluster import LeaderIsrAndControllerEpoch
from rebalance_lab.wire.paths import BROKER_IDS

#: How long it takes until all know what the controller has written.
LEAST_US = 500_000

#: How long a leader may take to report the ISRs that it has written (`broker.replication.isr_writes`), and a moment.
LEAST_OF_LEADERS_US = 10_000_000


class Compared(NamedTuple):
    """A view of one moment of rest, beside what it should be. `why`: how it differs; None if it does not."""

    why: str | None
    stands: Event
    view: Event | None
    rest: Event


@dataclass(slots=True)
class _Cluster:
    """Where the history stands: the registration of each broker, and when the last one changed; the state of each
    partition, or its deletion; and, of each node, what it tells of partitions, which brokers it considers live, and
    what its controller takes for their states."""

    registered: dict[str, Event] = field(default_factory=dict)
    changed: Event | None = None
    states: dict[Place, tuple[Event, LeaderIsrAndControllerEpoch]] = field(default_factory=dict)
    deleted: dict[Place, Event] = field(default_factory=dict)
    told: dict[tuple[str, Place], Event] = field(default_factory=dict)
    live: dict[str, Event] = field(default_factory=dict)
    known: dict[tuple[str, Place], Event] = field(default_factory=dict)

    def ended(self, node: str) -> None:
        """What its process knew is gone."""
        self.told = {each: event for each, event in self.told.items() if each[0] != node}
        self.known = {each: event for each, event in self.known.items() if each[0] != node}
        self.live.pop(node, None)

    def view(self, event: Event) -> None:
        if event.kind is METADATA_KNOWN:
            self.told[event.actor, place_of(event)] = event
        elif event.kind is METADATA_FORGOTTEN:
            self.told.pop((event.actor, place_of(event)), None)
        elif event.kind is STATE_KNOWN:
            self.known[event.actor, place_of(event)] = event
        else:
            self.live[event.actor] = event

    def registration(self, event: Event) -> None:
        """A broker comes or goes; or a partition goes."""
        place = place_of_state(event)
        if place is not None:
            self.states.pop(place, None)
            self.deleted[place] = event
        path = str(event.of("path"))
        if path.startswith(f"{BROKER_IDS}/"):
            self.changed = event
            if event.kind is Kind.DELETED:
                self.registered.pop(path, None)
            else:
                self.registered[path] = event


def bound_us(parameters: Mapping[str, object]) -> int:
    """How late a view may be; of the parameters of a trial."""
    return LEAST_OF_LEADERS_US if leaders_write_isrs(parameters) else LEAST_US


def judge(history: History) -> Finding:
    """Measures: `count`, views that differ; `views` that were looked at; `controllers`, those of them that are of a
    controller."""
    compared = compared_views(history)
    wrong = [each for each in compared if each.why is not None]
    of_controllers = sum(each.view is not None and each.view.kind is STATE_KNOWN for each in compared)
    measures = {"count": len(wrong), "views": len(compared), "controllers": of_controllers}
    if wrong:
        first = wrong[0]
        assert first.why is not None
        witness = first.stands.id, None if first.view is None else first.view.id, first.rest.id
        return violated(first.why, witness, measures)
    why = "at rest the controller and all brokers knew what the registry says"
    return not_violated(history, why, measures, across_layers=True)


@once
def compared_views(history: History) -> list[Compared]:
    """All views of all rests, beside the registry; none if brokers do not record what they know."""
    return list(_compared(history)) if events_of(history, METADATA_KNOWN) else []


def _compared(history: History) -> Iterator[Compared]:
    states = {event.id: (place, state) for place, its in partition_states(history).items() for event, state in its}
    rests = {event.id for event in rests_of(history)}
    cluster = _Cluster()
    views = METADATA_KNOWN, METADATA_FORGOTTEN, BROKERS_KNOWN, STATE_KNOWN
    for event, ended in in_lives(history, *views, Kind.CREATED, Kind.CHANGED, Kind.DELETED, Kind.REST_REACHED):
        if ended is not None:
            cluster.ended(ended)
        elif event.id in states:
            place, state = states[event.id]
            cluster.states[place] = event, state
            cluster.deleted.pop(place, None)
        elif event.kind in (Kind.CREATED, Kind.DELETED):
            cluster.registration(event)
        elif event.kind in views:
            if before_closing(history, event):
                cluster.view(event)
        elif event.id in rests:
            yield from _at_rest(history, event, cluster)


def _at_rest(history: History, rest: Event, cluster: _Cluster) -> Iterator[Compared]:
    since_us = rest.at_us - bound_us(history.trial.parameters)
    if not _calm(history, since_us, rest):
        return
    names = broker_names(history)
    brokers = [
        names[number]
        for number, event in sorted((int(path.rpartition("/")[2]), event) for path, event in cluster.registered.items())
        if number in names and event.at_us <= since_us
    ]
    for place, (event, state) in cluster.states.items():
        asked = asked_to_delete(history, place.topic, rest)
        if asked is not None and asked.at_us <= since_us:
            dying = "its topic is to be deleted"
            told = ((each, cluster.told.get((each, place))) for each in brokers)
            yield from (_of_deleted(place, asked, view, rest, each, dying) for each, view in told)
        if event.at_us > since_us or asked is not None:
            continue
        for broker in brokers:
            yield _of_state(place, state, event, cluster.told.get((broker, place)), rest, f"{broker} tells clients of")
        controller = _controller(history, since_us, rest) if events_of(history, STATE_KNOWN) else None
        if controller is not None:
            node, epoch = controller
            known = cluster.known.get((node, place))
            known = known if known is not None and known.of("epoch") == epoch else None
            yield _of_state(place, state, event, known, rest, f"controller {node} knows of")
    for place, event in cluster.deleted.items():
        if event.at_us <= since_us:
            yield from (_of_deleted(place, event, cluster.told.get((each, place)), rest, each) for each in brokers)
    if cluster.changed is not None and cluster.changed.at_us <= since_us and events_of(history, BROKERS_KNOWN):
        numbers = sorted(int(path.rpartition("/")[2]) for path in cluster.registered)
        for broker in brokers:
            yield _of_brokers(broker, numbers, cluster.changed, cluster.live.get(broker), rest)


def _calm(history: History, since_us: int, rest: Event) -> bool:
    """Whether nothing disturbs the cluster, or has just done so. What a cut has held back may arrive after it by as
    much as it lasted, because TCP waits twice as long each time before it sends again (`world/tcp.py`)."""
    return all(
        fault.began.at_us > rest.at_us or 2 * fault.end_us - fault.began.at_us < since_us
        for fault in lasting_faults(history)
    )


def _controller(history: History, since_us: int, rest: Event) -> tuple[str, int] | None:
    """The node and the epoch of the controller, if it has been that for long enough."""
    last = next((each for each in reversed(elections(history)) if each.created.at_us <= rest.at_us), None)
    if last is None or last.created.at_us > since_us or last.winner is None or last.epoch is None:
        return None
    gone = last.ended is not None and last.ended.at_us <= rest.at_us
    return None if gone else (last.winner, last.epoch)


def _of_state(
    place: Place, state: LeaderIsrAndControllerEpoch, stands: Event, view: Event | None, rest: Event, who: str
) -> Compared:
    wanted = state.leader, state.leader_epoch, sorted(state.isr)
    found = None if view is None else _state_in(view)
    if found == wanted:
        return Compared(None, stands, view, rest)
    takes = "nothing" if found is None else _told(*found)
    why = f"{place}: at rest {who} {takes}, and the state znode has {_told(*wanted)}"
    return Compared(why, stands, view, rest)


def _of_deleted(
    place: Place,
    stands: Event,
    view: Event | None,
    rest: Event,
    broker: str,
    gone: str = "its state znode has been deleted",
) -> Compared:
    if view is None:
        return Compared(None, stands, None, rest)
    why = f"{place}: at rest {broker} tells clients of {_told(*_state_in(view))}, and {gone}"
    return Compared(why, stands, view, rest)


def _state_in(view: Event) -> tuple[int, int, list[int]]:
    isr = view.of("isr")
    assert isinstance(isr, (list, tuple))
    return int(str(view.of("leader"))), int(str(view.of("leader_epoch"))), sorted(map(int, isr))


def _told(leader: int, leader_epoch: int, isr: list[int]) -> str:
    return f"leader {leader} in leader epoch {leader_epoch} with the ISR {isr}"


def _of_brokers(broker: str, numbers: list[int], stands: Event, view: Event | None, rest: Event) -> Compared:
    found = [] if view is None else view.of("brokers")
    assert isinstance(found, (list, tuple))
    same = sorted(map(int, found)) == numbers
    why = f"at rest {broker} considers brokers {list(found)} live, and {numbers} are registered"
    return Compared(None if same else why, stands, view, rest)


CHECK = Check(
    name="unequal_views",
    compares=(Layer.REGISTRY, Layer.BELIEF),
    meaning="At rest the controller or a broker knew another leader, ISR or set of live brokers than ZooKeeper has.",
    together="The registry has stood so for long, the cluster is at rest, and nobody will tell it more.",
    plants=(Planted("keeps-old-metadata", "controller-failover", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=compared_views,
)
