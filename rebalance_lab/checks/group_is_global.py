"""Z15a: a group is global to the cluster, not to a topic.

Judged as `missed_watch`, of pairs that have no topic in common: when a member comes or goes, every
other member of its group must begin a rebalance, also one that reads none of its topics. Told by the
registrations; a filter may match any topic, so members with one make no such pair.

Witness: the change, and the late REBALANCE_BEGAN if there is one.
"""

from __future__ import annotations

from rebalance_lab.checks.groups import registration_of
from rebalance_lab.checks.missed_watch import member_changes
from rebalance_lab.checks.model import About, Check, Finding
from rebalance_lab.checks.reactions import Reaction, judge_reactions, reactions
from rebalance_lab.checks.znodes import znodes_of
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import once


def judge(history: History) -> Finding:
    """Measures: see `reactions.judge_reactions`; of members that share no topic with who came or went."""
    clean = "members rebalanced for others with whom they share no topic"
    return judge_reactions(history, _found(history), clean=clean, nothing=None)


@once
def _found(history: History) -> list[Reaction]:
    """The reactions of members that have no topic in common with who came or went."""
    ends = {znode.deleted.id: znode.created for znode in znodes_of(history)[0] if znode.deleted is not None}
    return [each for each in reactions(history, member_changes(history), group=True) if _disjoint(each, ends)]


def _disjoint(reaction: Reaction, ends: dict[EventId, Event]) -> bool:
    change = reaction.change if reaction.change.kind is Kind.CREATED else ends.get(reaction.change.id)
    one, other = _named(reaction.registered.created), _named(change)
    return one is not None and other is not None and one.isdisjoint(other)


def _named(registered: Event | None) -> set[str] | None:
    """The topics that a registration names; None for a filter, and where it cannot be read."""
    registration = None if registered is None else registration_of(registered)
    return None if registration is None or registration.wildcard else set(registration.streams())


def _applies(history: History) -> bool:
    return bool(_found(history))


CHECK = Check(
    name="group_is_global",
    compares=(Layer.REGISTRY, Layer.OP),
    meaning="A member did not rebalance for another of its group with which it shares no topic.",
    plants=("ignore-watch",),
    judge=judge,
    about=About.STATEMENT,
    applies=_applies,
)
