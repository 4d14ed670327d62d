"""A broker deletes the `/controller` of another one (claim E3).

`/controller` is ephemeral: ZooKeeper removes it when the session of the controller ends, and a controller that gives up
deletes its own. Up to Kafka 2.0 one that gives up does not ask whose it is (`ZookeeperLeaderElector.resign` in 0.8.2,
`KafkaController.triggerControllerMove` in 1.1). If another broker has been elected meanwhile, that one is deposed, and
a further election follows for nothing. What a client deletes is not looked at: operators move controllers like that.

Witness: the election and the deletion.
"""

from __future__ import annotations

from rebalance_lab.checks.broker_names import registrations
from rebalance_lab.checks.elections import Election, elections
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.history.events import Event, Layer
from rebalance_lab.history.files import History


def judge(history: History) -> Finding:
    """Measures: `count`, controllers that another broker has deposed; `ended`, the reigns that ended."""
    ended = [each for each in elections(history) if each.ended is not None]
    wrong = [(each, deleted) for each in ended for deleted in [_by_another(history, each)] if deleted is not None]
    measures = {"count": len(wrong), "ended": len(ended)}
    if wrong:
        (election, deleted), brokers = wrong[0], registrations(history)
        by = brokers[deleted.session][0]
        why = f"broker {by} deleted /controller, which broker {election.broker_id} had created"
        return violated(why, (election.created.id, deleted.id), measures)
    return not_violated(history, f"no broker ended the reign of another, of {len(ended)} that ended", measures)


def _by_another(history: History, election: Election) -> Event | None:
    """The deletion, if another broker's session has made it."""
    deleted = election.ended
    if deleted is None or deleted.session in {None, election.created.session}:
        return None
    return deleted if deleted.session in registrations(history) else None


CHECK = Check(
    name="deposed_successor",
    compares=(Layer.REGISTRY,),
    meaning="A broker deleted the /controller that another broker had created.",
    together="The broker gave up a reign that was over, and ended that of its successor.",
    plants=(Planted("deposes-its-successor", "zombie-controller", settings={"moment": "failover"}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=elections,
)
