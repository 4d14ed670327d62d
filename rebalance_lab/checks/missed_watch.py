"""O10, missed watch: a membership change that did not make a member begin a rebalance.

Every id znode that comes or goes from the first rest until the phase `closing` must make every other member of the
group begin a rebalance (claim Z7a), if the member was registered before and was alive, connected and undisturbed until
the deadline. The change must have triggered the rebalance (`causes`): one for another reason does not count. The
deadline is a rebalance and an attempt (`bounds`: the member may be busy), or the first rest after the change
(`reactions`).

Witness: the change, and the REBALANCE_BEGAN that was late or for another reason, if there is one.
"""

from __future__ import annotations

from rebalance_lab.checks.model import ZK, Check, Finding, Planted
from rebalance_lab.checks.phases import NO_REST, judged_period
from rebalance_lab.checks.reactions import judge_reactions, reactions
from rebalance_lab.checks.registry_state import came_or_went
from rebalance_lab.history.events import Event, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import once


def judge(history: History) -> Finding:
    """Measures: see `reactions.judge_reactions`; `changes` are ids that came or went."""
    nothing = NO_REST if judged_period(history) is None else None
    found = reactions(history, member_changes(history), group=True)
    clean = "every member began a rebalance after every change of members"
    return judge_reactions(history, found, clean=clean, nothing=nothing)


@once
def member_changes(history: History) -> list[Event]:
    """Ids that came or went in the judged period."""
    return [event for event in came_or_went(history) if event.member is not None]


CHECK = Check(
    name="missed_watch",
    compares=(Layer.REGISTRY, Layer.OP),
    meaning="A member came or went, and another that was alive and connected did not rebalance for it.",
    together=(
        "A watch fires once. A change that comes before the watch is set again is not reported. The member goes on "
        "with an outdated view of the group."
    ),
    plants=(Planted("ignore-watch", "walkthrough"),),
    judge=judge,
    applies_to=(ZK,),
)
