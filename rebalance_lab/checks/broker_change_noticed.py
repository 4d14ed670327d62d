"""Z7b: every broker that comes or goes makes every member rebalance.

The check looks at each znode below /brokers/ids that comes or goes from the first rest until the phase `closing`, and
at each member that was registered and undisturbed until the deadline, like `missed_watch` for changes of members. The
change must have triggered the rebalance (`reactions`): one for another reason does not count. Kafka 0.8.2 as shipped
watches brokers only after a rebalance that found none, so there the statement fails.

Witness: the change, and the REBALANCE_BEGAN that was late or for another reason, if there is one.
"""

from __future__ import annotations

from rebalance_lab.checks.model import ZK, Check, Finding, Planted
from rebalance_lab.checks.reactions import judge_reactions, reactions
from rebalance_lab.checks.registry_state import came_or_went
from rebalance_lab.history.events import Event, Layer
from rebalance_lab.history.files import History


def judge(history: History) -> Finding:
    """Measures: see `reactions.judge_reactions`; `changes` are brokers that came or went."""
    found = reactions(history, _changes(history), group=False)
    clean = "every member began a rebalance after every change of brokers"
    nothing = None if found else "no member was registered when a broker came or went"
    return judge_reactions(history, found, clean=clean, nothing=nothing)


def _changes(history: History) -> list[Event]:
    return [event for event in came_or_went(history) if str(event.of("path")).startswith("/brokers/ids/")]


CHECK = Check(
    name="broker_change_noticed",
    compares=(Layer.REGISTRY, Layer.OP),
    meaning="A broker came or went, and a member that was alive and connected did not rebalance for it.",
    together="A member that does not learn of a broker's change keeps what it has and does not rebalance.",
    statement="Every member rebalances when a broker comes or goes",
    plants=(Planted("ignore-watch", "herd"),),
    judge=judge,
    applies_to=(ZK,),
    looks_at=_changes,
)
