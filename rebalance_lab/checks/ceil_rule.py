"""Z5b: of P partitions and C consumers each gets N = ceil(P/C), the i-th those from iN to (i+1)N-1.

The check looks at each rest that ends a PHASE with `published`. It uses the registry's registrations, topics and owner
znodes, but not what is published. The consumers of a topic are the streams of the members that subscribe to it, in the
order of their ids, as in 0.8.2. The range assignor gives the same result unless P >= C and 1 <= P mod C <= C-2, so only
topics for which that holds are judged. The check does not apply if there is none.

Unknown: a rest at which a member of the group had given up (its last rebalance had failed), because it may not have
tried to own its share.

Witness: the PHASE, the owner's CREATED if there is one, and the rest.

Source: `kafka.consumer.RangeAssignor` (Kafka 0.8.2.2), for the order and for the result of range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_lab.checks.members import living_at
from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.phases import published_rests
from rebalance_lab.checks.registry_state import RegistryState, registration_of, state_at, topics_of
from rebalance_lab.history.events import Event, EventId, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import once


@dataclass(frozen=True, slots=True)
class _Topic:
    """A topic at a rest for which the rule and range differ. `consumers`: the member of each, in order; `owners`: each
    partition with the event that made its owner, None if it has none; `gave_up`: the group's members whose last
    rebalance before the rest had failed."""

    phase: Event
    rest: Event
    name: str
    consumers: Sequence[str]
    owners: Sequence[tuple[int, Event | None]]
    gave_up: Sequence[str]

    @property
    def wrong(self) -> tuple[str, tuple[EventId, ...]] | None:
        """The first partition with another owner than the rule gives, in words, with the witness."""
        share = -(-len(self.owners) // len(self.consumers))
        for place, (partition, owner) in enumerate(self.owners):
            member = self.consumers[place // share]
            if owner is None or owner.member != member:
                found = "no member" if owner is None else str(owner.member)
                why = f"by the rule {member} owns {self.name}/{partition}, but {found} owns it"
                return why, (self.phase.id, *([] if owner is None else [owner.id]), self.rest.id)
        return None


def judge(history: History) -> Finding:
    """Measures: `topics` at rests for which the rule and range differ; `count`, those assigned by another rule."""
    every = _topics(history)
    topics = [topic for topic in every if not topic.gave_up]
    wrong = [found for topic in topics if (found := topic.wrong) is not None]
    numbers = {"count": len(wrong), "topics": len(topics)}
    if wrong:
        why, witness = wrong[0]
        return violated(why, witness, numbers)
    doubt = next((topic for topic in every if topic.gave_up), None)
    nothing = None
    if doubt is not None:
        nothing = f"{', '.join(doubt.gave_up)} had given up at the rest after phase {doubt.phase.of('name')}"
    why = "where the rule and range differ, members owned what the rule gives them"
    return not_violated(history, why, numbers, vacuous=nothing)


@once
def _topics(history: History) -> list[_Topic]:
    found: list[_Topic] = []
    for phase, rest in published_rests(history):
        gave_up = [life.member for life in living_at(history, phase.group, rest) if life.gave_up_by(rest)]
        found += _told_apart(phase, rest, state_at(history, rest), gave_up)
    return found


def _told_apart(phase: Event, rest: Event, state: RegistryState, gave_up: Sequence[str]) -> list[_Topic]:
    """The topics of the phase's group for which the rule and range differ. None if a registration cannot be read, as
    the consumers are not known then."""
    group = phase.group or ""
    consumers: dict[str, list[tuple[str, str]]] = {}
    for (of_group, member), registered in state.ids.items():
        if of_group != group:
            continue
        registration, topics = registration_of(registered), topics_of(registered, state.topics)
        if registration is None or topics is None:
            return []
        streams = registration.streams(state.topics)
        for topic in topics:
            consumers.setdefault(topic, []).extend((f"{member}-{each}", member) for each in range(streams[topic]))
    found = []
    for topic, threads in sorted(consumers.items()):
        partitions = state.topics[topic][1]
        if len(partitions) >= len(threads) and 1 <= len(partitions) % len(threads) <= len(threads) - 2:
            owners = [(each, state.owners.get((group, topic, each))) for each in partitions]
            found.append(_Topic(phase, rest, topic, [member for _, member in sorted(threads)], owners, gave_up))
    return found


CHECK = Check(
    name="ceil_rule",
    compares=(Layer.REGISTRY, Layer.OP),
    meaning="Members did not own N = ceil(P/C) partitions each, in order, where this differs from range.",
    together=(
        "Range gives the first members one partition more than the others. N = ceil(P/C) gives N to each member, and "
        "what is left to the last ones."
    ),
    statement="Each member gets N = ceil(P/C) partitions, the i-th those from iN to (i+1)N-1",
    plants=(Planted("never-claim-last", "rule"),),
    judge=judge,
    applies_to=(ZK,),
    looks_at=_topics,
)
