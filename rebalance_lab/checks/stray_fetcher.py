"""A follower is fetched for by no fetcher or by more than one, or a leader by any.

A broker has one fetcher for each broker that it follows (`ReplicaFetcherManager`). Two fetchers of one replica append
what each of them gets; a fetcher of a leader overwrites what clients have written; and without one a follower never
catches up. While a broker believes that it leads, and once its role has ended, it has no fetcher of this partition. It
never has two. At a rest each follower whose leader is registered has exactly one, which asks this leader in this leader
epoch, if the follower has had half a second for it.

Witness: the role and the fetchers that contradict it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rebalance_lab.checks.broker_lives import in_lives
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import Place, place_of
from rebalance_lab.checks.phases import before_closing, rests_of
from rebalance_lab.checks.stale_role import LEAST_US
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import FETCHES, FETCHES_NO_MORE, FOLLOWS, LEADS, REPLICA_ENDED
from rebalance_lab.history.views import events_of
from rebalance_lab.wire.paths import broker_path

Wrong = tuple[str, tuple[EventId, ...]]


@dataclass(slots=True)
class _Replica:
    """One replica in one life of its broker. `fetchers`: those that fetch for it, by their number."""

    role: Event | None = None
    fetchers: dict[object, Event] = field(default_factory=dict)


def judge(history: History) -> Finding:
    """Measures: `count`, moments with a wrong number of fetchers; `fetchers` that began; `followers` that a rest was
    looked at for."""
    wrong, followers = _looked_at(history)
    measures = {"count": len(wrong), "fetchers": len(events_of(history, FETCHES)), "followers": followers}
    if wrong:
        why, witness = wrong[0]
        return violated(why, witness, measures)
    return not_violated(history, "each follower had one fetcher, and no leader had any", measures)


def _looked_at(history: History) -> tuple[list[Wrong], int]:
    """What is wrong, and how many followers were looked at at a rest."""
    replicas: dict[tuple[str, Place], _Replica] = {}
    live: set[object] = set()
    rests = {event.id for event in rests_of(history)}
    wrong: list[Wrong] = []
    followers = 0
    kinds = LEADS, FOLLOWS, REPLICA_ENDED, FETCHES, FETCHES_NO_MORE, Kind.CREATED, Kind.DELETED, Kind.REST_REACHED
    for event, ended in in_lives(history, *kinds):
        if ended is not None:
            replicas = {each: found for each, found in replicas.items() if each[0] != ended}
        elif event.kind in (Kind.CREATED, Kind.DELETED):
            (live.add if event.kind is Kind.CREATED else live.discard)(event.of("path"))
        elif event.kind is Kind.REST_REACHED:
            if event.id in rests:
                found = list(_at_rest(event, replicas, live))
                followers += len(found)
                wrong += [each for each in found if each is not None]
        elif before_closing(history, event):
            place = place_of(event)
            replica = replicas.setdefault((event.actor, place), _Replica())
            _happens(replica, event)
            wrong += _now(replica, event, place)
    return wrong, followers


def _happens(replica: _Replica, event: Event) -> None:
    if event.kind is FETCHES:
        replica.fetchers[event.of("fetcher")] = event
    elif event.kind is FETCHES_NO_MORE:
        replica.fetchers.pop(event.of("fetcher"), None)
    else:
        replica.role = event


def _now(replica: _Replica, event: Event, place: Place) -> Iterator[Wrong]:
    """What an event has made wrong."""
    fetchers = list(replica.fetchers.values())
    if event.kind is FETCHES_NO_MORE or not fetchers:
        return
    if len(fetchers) > 1 and event.kind is FETCHES:
        one, other = fetchers[-2:]
        twice = f"from broker {one.of('leader')} and from broker {other.of('leader')} at once"
        yield f"{place}: {event.actor} fetches {twice}", (one.id, other.id)
    role = replica.role
    if role is not None and role.kind is not FOLLOWS:
        is_what = "leads" if role.kind is LEADS else "has no role"
        why = f"{place}: {event.actor} {is_what}, and fetches from broker {fetchers[-1].of('leader')}"
        yield why, (role.id, fetchers[-1].id)


def _at_rest(rest: Event, replicas: dict[tuple[str, Place], _Replica], live: set[object]) -> Iterator[Wrong | None]:
    """Of each follower whose leader lives: what is wrong, or None."""
    for (actor, place), replica in replicas.items():
        role = replica.role
        if role is None or role.kind is not FOLLOWS or rest.at_us - role.at_us < LEAST_US:
            continue
        leader, epoch = int(str(role.of("leader"))), role.of("leader_epoch")
        if broker_path(leader) not in live:
            continue
        fits = [
            each
            for each in replica.fetchers.values()
            if (each.of("leader"), each.of("leader_epoch")) == (leader, epoch)
        ]
        if len(replica.fetchers) == len(fits) == 1:
            yield None
            continue
        what = f"{place}: at rest {actor} follows broker {leader} in leader epoch {epoch}"
        others = tuple(each.id for each in replica.fetchers.values())
        has = (
            "has no fetcher" if not others else f"its fetchers are {len(others)}, and not one of this leader and epoch"
        )
        yield f"{what}, and {has}", (role.id, *others, rest.id)


def _fetchers(history: History) -> list[Event]:
    return events_of(history, FETCHES)


CHECK = Check(
    name="stray_fetcher",
    compares=(Layer.BELIEF, Layer.EFFECT),
    meaning="A follower had no fetcher or more than one, or a leader had one.",
    together="One fetcher of a replica brings it the records of its leader, and any other number is wrong.",
    plants=(Planted("keeps-old-fetchers", "isr-election", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=_fetchers,
)
