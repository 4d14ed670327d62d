"""Z15a: a group is global to the cluster, not to a topic.

The check looks at pairs of members without a common topic, like `missed_watch`: when a member comes or goes, every
other member of its group must begin a rebalance, even if it reads none of its topics. The change must have triggered
the rebalance (`reactions`): one for another reason does not count. The topics are those of the registrations: the names
in them, or, for a filter, the topics that it selects among all that the history ever had.

Witness: the change, and the REBALANCE_BEGAN that was late or for another reason, if there is one.
"""

from __future__ import annotations

from rebalance_lab.checks.missed_watch import member_changes
from rebalance_lab.checks.model import ZK, Check, Finding, Planted
from rebalance_lab.checks.reactions import Reaction, judge_reactions, reactions
from rebalance_lab.checks.registry_state import registration_of, topic_changes, topics_of
from rebalance_lab.checks.znodes import znodes_of
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import once


def judge(history: History) -> Finding:
    """Measures: see `reactions.judge_reactions`; of members that share no topic with the member that came or went."""
    clean = "members rebalanced for other members with which they share no topic"
    return judge_reactions(history, _found(history), clean=clean, nothing=None)


@once
def _found(history: History) -> list[Reaction]:
    """The reactions of members that have no topic in common with the member that came or went."""
    ends = {znode.deleted.id: znode.created for znode in znodes_of(history)[0] if znode.deleted is not None}
    topics = {topic for topic, _ in topic_changes(history)}
    found = []
    for each in reactions(history, member_changes(history), group=True):
        change = each.change if each.change.kind is Kind.CREATED else ends.get(each.change.id)
        one, other = _topics(each.registered.created, topics), _topics(change, topics)
        if one and other and one.isdisjoint(other):
            found.append(each)
    return found


def _topics(registered: Event | None, topics: set[str]) -> set[str]:
    """The topics of a registration: the names in it, or what its filter selects among `topics`. None if it cannot be
    read."""
    registration = None if registered is None else registration_of(registered)
    if registered is None or registration is None:
        return set()
    names = topics if registration.wildcard else registration.streams()
    return set(topics_of(registered, names) or ())


CHECK = Check(
    name="group_is_global",
    compares=(Layer.REGISTRY, Layer.OP),
    meaning="A member did not rebalance for another member of its group that reads other topics.",
    together=(
        "Members rebalance for every change of their group, whatever topics its members read. A member that does not "
        "learn of members with other topics does not learn of its group's changes."
    ),
    statement="Members rebalance for other members of their group even if they share no topic",
    plants=(Planted("ignore-watch", "group-scope"),),
    judge=judge,
    applies_to=(ZK,),
    looks_at=_found,
)
