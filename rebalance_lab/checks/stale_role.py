"""Stale role: at rest, a live broker does not lead or follow as the state znode says (C9, R6).

The controller tells each live replica who leads it, and in which leader epoch. If it misses that a broker died and came
back between two looks (KAFKA-1120), that one is told nothing: it leads nothing, though the state znode names it, or
fetches nothing. Looked at are the moments in which the runner finds the cluster at rest, and leaders that have led for
half a second then by the state znode, because roles change a moment after the state znode. A partition without a leader
is left out, because there is nobody to follow. A broker that is not among the replicas has no role: one that was
removed from them without being told leads on, and takes records that no other replica gets. Nor has any broker a role
in a partition whose topic has been asked to be deleted for so long, even if that waits for a dead broker, or whose
state znode has been gone for so long.

Witness: the state, what the broker believed last since its process started, and the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from rebalance_lab.checks.broker_names import broker_names
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import (
    Place,
    asked_to_delete,
    partition_states,
    place_of,
    place_of_state,
    replicas_at,
)
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import RESTART
from rebalance_lab.history.replicas import FOLLOWS, LEADS, REPLICA_ENDED
from rebalance_lab.history.views import events_of
from rebalance_lab.wire.cluster import NO_LEADER, LeaderIsrAndControllerEpoch
from rebalance_lab.wire.paths import broker_path

#: A broker has so long to hear of a state and to obey.
LEAST_US = 500_000


@dataclass(slots=True)
class _Cluster:
    """Where the history stands. `since_us`: since when each partition has its leader, in this leader epoch. `gone`: the
    deletion of each state that is not there. `believed`: the last role of each node in each partition. `registered`:
    the paths of registrations."""

    registered: set[str] = field(default_factory=set)
    states: dict[Place, tuple[Event, LeaderIsrAndControllerEpoch]] = field(default_factory=dict)
    gone: dict[Place, Event] = field(default_factory=dict)
    since_us: dict[Place, int] = field(default_factory=dict)
    believed: dict[tuple[str, Place], Event] = field(default_factory=dict)

    def becomes(self, place: Place, event: Event, state: LeaderIsrAndControllerEpoch) -> None:
        """A state is written. With the leader and the epoch of the one before it is an order to nobody."""
        _, before = self.states.get(place, (None, None))
        if before is None or (before.leader, before.leader_epoch) != (state.leader, state.leader_epoch):
            self.since_us[place] = event.at_us
        self.states[place] = event, state
        self.gone.pop(place, None)

    def deleted(self, event: Event) -> None:
        """A registration is gone, or a state with its partition."""
        self.registered.discard(str(event.of("path")))
        place = place_of_state(event)
        if place is not None:
            self.states.pop(place, None)
            self.gone[place] = event

    def restarted(self, node: str) -> None:
        self.believed = {each: event for each, event in self.believed.items() if each[0] != node}


def judge(history: History) -> Finding:
    """Measures: `count`, stale roles; `roles`, those that were looked at."""
    found = list(_looked_at(history))
    stale = [each for each in found if each[0] is not None]
    measures = {"count": len(stale), "roles": len(found)}
    if stale:
        why, state, believed, rest = stale[0]
        assert why is not None
        return violated(why, (state.id, None if believed is None else believed.id, rest.id), measures)
    nothing = None if found else "no live replica had a leader at rest"
    why = "at rest each broker leads and follows as the state znode says"
    return not_violated(history, why, measures, vacuous=nothing, across_layers=True)


def _looked_at(history: History) -> Iterator[tuple[str | None, Event, Event | None, Event]]:
    """Why each role is stale, or None; the state, the belief and the rest."""
    names = broker_names(history)
    states = {
        event.id: (place, event, state) for place, its in partition_states(history).items() for event, state in its
    }
    cluster = _Cluster()
    kinds = (
        Kind.CREATED,
        Kind.CHANGED,
        Kind.DELETED,
        LEADS,
        FOLLOWS,
        REPLICA_ENDED,
        Kind.FAULT_BEGAN,
        Kind.REST_REACHED,
    )
    for event in events_of(history, *kinds):
        if event.id in states:
            place, changed, state = states[event.id]
            cluster.becomes(place, changed, state)
        elif event.kind in {LEADS, FOLLOWS, REPLICA_ENDED}:
            cluster.believed[event.actor, place_of(event)] = event
        elif event.kind is Kind.CREATED:
            cluster.registered.add(str(event.of("path")))
        elif event.kind is Kind.DELETED:
            cluster.deleted(event)
        elif event.kind is Kind.FAULT_BEGAN and event.of("fault") == RESTART:
            cluster.restarted(str(event.of("target")))
        elif event.kind is Kind.REST_REACHED:
            yield from _at_rest(history, cluster, event, names)


def _at_rest(
    history: History, cluster: _Cluster, rest: Event, names: Mapping[int, str]
) -> Iterator[tuple[str | None, Event, Event | None, Event]]:
    for place, (changed, state) in cluster.states.items():
        asked = asked_to_delete(history, place.topic, rest)
        if asked is not None:
            if rest.at_us - asked.at_us >= LEAST_US:
                yield from _with_a_role(
                    cluster, rest, place, asked, sorted(names.items()), "its topic is to be deleted"
                )
            continue
        for broker in replicas_at(history, place, rest):
            if state.leader == NO_LEADER or rest.at_us - cluster.since_us[place] < LEAST_US:
                continue
            if broker in names and broker_path(broker) in cluster.registered:
                believed = cluster.believed.get((names[broker], place))
                why = _stale(broker, state, believed)
                told = None if why is None else f"{place}: {names[broker]} {why}"
                yield told, changed, believed, rest
        yield from _of_others(history, cluster, rest, names, place)
    for place, deleted in cluster.gone.items():
        if rest.at_us - deleted.at_us >= LEAST_US:
            yield from _with_a_role(cluster, rest, place, deleted, sorted(names.items()), "the partition is deleted")


def _of_others(
    history: History, cluster: _Cluster, rest: Event, names: Mapping[int, str], place: Place
) -> Iterator[tuple[str | None, Event, Event | None, Event]]:
    """Live brokers that have a role in the partition and are not among its replicas."""
    changed, _ = cluster.states[place]
    replicas = replicas_at(history, place, rest)
    if not replicas or rest.at_us - cluster.since_us[place] < LEAST_US:
        return
    others = sorted((broker, name) for broker, name in names.items() if broker not in replicas)
    yield from _with_a_role(cluster, rest, place, changed, others, "is not a replica")


def _with_a_role(
    cluster: _Cluster, rest: Event, place: Place, stands: Event, brokers: Iterable[tuple[int, str]], without: str
) -> Iterator[tuple[str | None, Event, Event | None, Event]]:
    """Those of some live brokers that have a role in a partition. `without`: why they should have none."""
    for broker, name in brokers:
        believed = cluster.believed.get((name, place))
        if believed is None or believed.kind is REPLICA_ENDED or broker_path(broker) not in cluster.registered:
            continue
        does = "leads" if believed.kind is LEADS else f"follows broker {believed.of('leader')}"
        why = f"{place}: {name} {does} in leader epoch {believed.of('leader_epoch')}, and {without}"
        yield why, stands, believed, rest


def _stale(broker: int, state: LeaderIsrAndControllerEpoch, believed: Event | None) -> str | None:
    """What a broker believes instead of what the state znode says."""
    what = "leads" if state.leader == broker else f"follows broker {state.leader}"
    wanted = f"the state znode says that it {what} in leader epoch {state.leader_epoch}"
    if believed is None or believed.kind is REPLICA_ENDED:
        return f"has no role, and {wanted}"
    leader = broker if believed.kind is LEADS else believed.of("leader")
    if (leader, believed.of("leader_epoch")) == (state.leader, state.leader_epoch):
        return None
    does = "leads" if believed.kind is LEADS else f"follows broker {leader}"
    return f"{does} in leader epoch {believed.of('leader_epoch')}, and {wanted}"


CHECK = Check(
    name="stale_role",
    compares=(Layer.BELIEF, Layer.REGISTRY),
    meaning="A live broker does not lead or follow as the state znode says, though the cluster is at rest.",
    together="The state znode counts on the replica, its broker is alive, and nobody will tell it more.",
    plants=(Planted("looks-at-ids-only", "missed-bounce", settings={"broker_epochs": "true"}),),
    judge=judge,
    applies_to=(REPLICATION,),
)
