"""Who led each partition and who was the controller, and when, in each layer: the rows of the pictures of brokers.

Of a partition:

- *belief*: from LEADS until FOLLOWS or REPLICA_ENDED of the same broker, or until its process is killed or started
  again. A pause does not end it: a leader that was deposed during one goes on to believe.
- *registry*: the leader in the partition's state znode, until it names another, or is deleted.
- *effect*: a run of appends by one broker as the leader, with at most RUN_GAP_MS between two of them.

Of the controllership, which has the place CONTROLLERSHIP: *belief* from CONTROLS until CONTROLS_NO_MORE or the end of
the process; *registry* from the creation of `/controller` until its deletion. It has no effect of its own: a controller
writes the states of partitions.
"""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lab.checks.broker_names import broker_names
from rebalance_lab.checks.elections import elections
from rebalance_lab.checks.lost_write import BROKER_LOG, REPLICATION
from rebalance_lab.checks.partition_states import Place, partition_states, place_of, place_of_state
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import KILL, NO_PARTITION, RESTART, Book, Claim, Interval
from rebalance_lab.history.replicas import APPENDED, CONTROLS, CONTROLS_NO_MORE, FOLLOWS, LEADS, REPLICA_ENDED
from rebalance_lab.history.views import events_of
from rebalance_lab.wire.cluster import NO_LEADER

#: The longest time between two appends of one run.
RUN_GAP_MS = 500

#: In place of group, topic and partition.
CONTROLLERSHIP = ("", "controller", NO_PARTITION)

_ROLES = frozenset({LEADS, CONTROLS})


def broker_holdings(history: History) -> list[Interval]:
    """Raises KafkaException for a state znode or a `/controller` that cannot be read."""
    names = broker_names(history)
    return [*_beliefs(history), *_leaders(history, names), *_controllers(history, names), *_runs(history)]


def _claim(event: Event) -> Claim:
    """The role that a broker reports to have, or to have no more."""
    place = CONTROLLERSHIP if event.kind in (CONTROLS, CONTROLS_NO_MORE) else ("", *place_of(event))
    return (*place, str(event.member))


def _beliefs(history: History) -> list[Interval]:
    book = Book(Layer.BELIEF)
    killed: set[object] = set()
    kinds = (LEADS, FOLLOWS, REPLICA_ENDED, CONTROLS, CONTROLS_NO_MORE, Kind.FAULT_BEGAN)
    for event in events_of(history, *kinds):
        fault, target = event.of("fault"), event.of("target")
        if event.kind is Kind.FAULT_BEGAN:
            if fault in (KILL, RESTART):
                book.close_actor(str(target), event)
                (killed.add if fault == KILL else killed.discard)(target)
        elif event.actor in killed:
            continue  # written between the event of the kill and the signal
        elif event.kind in _ROLES:
            book.open(_claim(event), event)
        else:
            book.close(_claim(event), event)
    return book.finish(history.events)


def _leaders(history: History, names: Mapping[int, str]) -> list[Interval]:
    """The last leader of a partition leads until its state znode is deleted."""
    books: dict[Place, Book] = {}
    states = {event.id: state for its in partition_states(history).values() for event, state in its}
    for event in events_of(history, Kind.CREATED, Kind.CHANGED, Kind.DELETED):
        place = place_of_state(event)
        if place is None:
            continue
        book, state = books.setdefault(place, Book(Layer.REGISTRY)), states.get(event.id)
        leader = NO_LEADER if state is None else state.leader
        claim = ("", *place, names.get(leader, f"broker {leader}"))
        book.close_others(claim, event)
        if leader != NO_LEADER:
            book.open(claim, event)
    return [each for book in books.values() for each in book.finish(history.events)]


def _controllers(history: History, names: Mapping[int, str]) -> list[Interval]:
    book = Book(Layer.REGISTRY)
    for election in elections(history):
        claim = (*CONTROLLERSHIP, election.winner or names.get(election.broker_id, f"broker {election.broker_id}"))
        book.open(claim, election.created)
        if election.ended is not None:
            book.close(claim, election.ended)
    return book.finish(history.events)


def _runs(history: History) -> list[Interval]:
    book = Book(Layer.EFFECT)
    last: dict[Claim, Event] = {}
    for event in events_of(history, APPENDED):
        claim = _claim(event)
        before = last.get(claim)
        if before is not None and event.at_us - before.at_us > RUN_GAP_MS * 1000:
            book.close(claim, before)
        book.open(claim, event)
        last[claim] = event
    for claim, event in last.items():
        book.close(claim, event)
    return book.finish(history.events)


HOLDINGS = dict.fromkeys((BROKER_LOG, REPLICATION), broker_holdings)
