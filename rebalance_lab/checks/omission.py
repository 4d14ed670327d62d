"""O5, omission: at rest a partition has no owner, or a foreign one.

At every REST_REACHED before the phase `closing`, by the registry (its transaction log, not the outside observer), each
partition of each topic that a registered live member subscribes to must have an owner. Each owner must be such a
member, subscribe to the topic, and own a partition that exists. Subscriptions come from the payloads of registrations,
wildcards included; topics and their partitions from /brokers/topics. `registry_overlap` looks for two owners at once.

Witness: what left the partition so (the DELETED of its last owner, or the topic's znode; the CREATED of the foreign
owner), and the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rebalance_lab.checks.faults import clock_drifted
from rebalance_lab.checks.members import member_lives
from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.registry_state import (
    Place,
    Registered,
    RegistryState,
    states_at_rests,
    topics_of,
    unrested,
)
from rebalance_lab.history.events import Event, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import once


@dataclass(frozen=True, slots=True)
class Breach:
    """A partition without owner, or with a foreign one, at a rest. `left`: the event that left it so."""

    place: Place
    foreign: bool
    left: Event
    rest: Event

    @property
    def why(self) -> str:
        _, topic, partition = self.place
        if not self.foreign:
            return f"{topic}/{partition} had no owner at rest"
        return f"{self.left.member} owned {topic}/{partition} at rest, but is not a member that subscribes to {topic}"


@dataclass(frozen=True, slots=True)
class RestState:
    """What one rest shows. `places`: how many partitions must have an owner. `unread`: members whose registration or
    filter cannot be read, so that it is not known what must have an owner."""

    rest: Event
    places: int
    breaches: list[Breach]
    unread: list[str]


def judge(history: History) -> Finding:
    """Measures: `rests`; `partitions` that had to have an owner, over all rests; of these `unowned` and `foreign`, and
    `count`, both."""
    seen = seen_at_rests(history)
    found = [] if clock_drifted(history) else [breach for one in seen for breach in one.breaches]
    numbers = {
        "count": len(found),
        "unowned": sum(not breach.foreign for breach in found),
        "foreign": sum(breach.foreign for breach in found),
        "rests": len(seen),
        "partitions": sum(one.places for one in seen),
    }
    if found:
        return _violated(found, numbers)
    nobody = "at no rest was a member subscribed to a partition"
    nothing = unrested(history) if numbers["partitions"] else nobody
    if names := sorted({member for rest in seen for member in rest.unread}):
        nothing = f"the topics that {', '.join(names)} subscribed to cannot be read"
    why = "at every rest each partition had one live owner that subscribes to its topic"
    return not_violated(history, why, numbers, vacuous=nothing, across_layers=True)


def _violated(found: Sequence[Breach], numbers: dict[str, int]) -> Finding:
    first = found[0]
    others = sum(breach.rest is first.rest for breach in found) - 1
    more = f" (and {others} more partitions then)" if others else ""
    return violated(first.why + more, (first.left.id, first.rest.id), numbers)


@once
def seen_at_rests(history: History) -> Sequence[RestState]:
    """What every rest before the phase `closing` shows."""
    gone = _gone_us(history)
    return [_look(rest, state, gone) for rest, state in states_at_rests(history)]


def _gone_us(history: History) -> dict[str, int]:
    """When the last process of a name was gone, for each name without a live process."""
    found: dict[str, list[Event | None]] = {}
    for life in member_lives(history):
        found.setdefault(life.member, []).append(life.gone)
    return {name: max(each.at_us for each in ends if each) for name, ends in found.items() if all(ends)}


def _look(rest: Event, state: RegistryState, gone: dict[str, int]) -> RestState:
    # A rest needs a quiet time, so what is as late as the rest follows it.
    live = {id_: event for id_, event in state.ids.items() if not (id_[1] in gone and gone[id_[1]] < rest.at_us)}
    read = {id_: topics_of(event, state.topics) for id_, event in live.items()}
    topics = {id_: found for id_, found in read.items() if found is not None}
    unread = sorted(member for (_, member), found in read.items() if found is None)
    wanted = _wanted(topics, state)
    unowned = [
        Breach(place, False, state.freed.get(place, state.topics[place[1]][0]), rest)
        for place in wanted
        if place not in state.owners
    ]
    foreign = [
        Breach(place, True, owner, rest)
        for place, owner in sorted(state.owners.items())
        if _foreign(place, owner, wanted, topics, unread)
    ]
    return RestState(rest, len(wanted), unowned + foreign, unread)


def _wanted(topics: dict[Registered, list[str]], state: RegistryState) -> dict[Place, None]:
    """The places that must have an owner, in order."""
    pairs = sorted({(group, topic) for (group, _), its in topics.items() for topic in its})
    return dict.fromkeys((group, topic, each) for group, topic in pairs for each in state.topics[topic][1])


def _foreign(
    place: Place,
    owner: Event,
    wanted: Mapping[Place, None],
    topics: Mapping[Registered, Sequence[str]],
    unread: Sequence[str],
) -> bool:
    """Whether a partition's owner is not a member that subscribes to it. Not if its subscription cannot be read."""
    if owner.member in unread:
        return False
    return place not in wanted or place[1] not in topics.get((place[0], owner.member or ""), ())


CHECK = Check(
    name="omission",
    compares=(Layer.REGISTRY, Layer.OP),
    meaning="At rest a partition had no owner, or an owner that was not a living member subscribed to its topic.",
    together=(
        "The group is at rest and every member believes that all is well, but a partition has no owner that reads it. "
        "No member will notice, because nothing changes any more that would make it look again."
    ),
    plants=(Planted("never-claim-last", "zombie", control=True),),
    judge=judge,
    applies_to=(ZK,),
)
