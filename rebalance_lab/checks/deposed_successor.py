"""A broker deletes the `/controller` of another one, or writes over it (claim E3).

`/controller` is ephemeral: ZooKeeper removes it when the session of the controller ends, and a controller that gives up
deletes its own. Up to Kafka 2.0 one that gives up does not ask whose it is (`ZookeeperLeaderElector.resign` in 0.8.2,
`KafkaController.triggerControllerMove` in 1.1). If another broker has been elected meanwhile, that one is deposed, and
a further election follows for nothing. What a client deletes is not looked at: operators move controllers like that.
No release writes over a `/controller` that is there.

Witness: the election, and the deletion or the write.
"""

from __future__ import annotations

from rebalance_lab.checks.broker_names import registrations
from rebalance_lab.checks.elections import Election, elections
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import actor_by_session, events_of
from rebalance_lab.wire.paths import CONTROLLER


def judge(history: History) -> Finding:
    """Measures: `count`, controllers that another broker has deposed; `ended`, the reigns that ended."""
    ended = [each for each in elections(history) if each.ended is not None]
    wrong = [(each, deleted) for each in ended for deleted in [_by_another(history, each)] if deleted is not None]
    wrong += _written_over(history)
    measures = {"count": len(wrong), "ended": len(ended)}
    if wrong:
        election, event = min(wrong, key=lambda each: each[1].zxid or 0)
        did = "deleted" if event.kind is Kind.DELETED else "wrote over"
        by = _name(history, event.session)
        why = f"{by} {did} /controller, which broker {election.broker_id} had created"
        return violated(why, (election.created.id, event.id), measures)
    return not_violated(history, f"no broker ended the reign of another, of {len(ended)} that ended", measures)


def _by_another(history: History, election: Election) -> Event | None:
    """The deletion, if another broker has made it, in whichever session."""
    deleted = election.ended
    if deleted is None or deleted.session in {None, election.created.session}:
        return None
    names = actor_by_session(history)
    brokers = {names.get(each, each) for each in registrations(history)}
    return deleted if names.get(deleted.session, deleted.session) in brokers else None


def _written_over(history: History) -> list[tuple[Election, Event]]:
    changes = [each for each in events_of(history, Kind.CHANGED) if each.of("path") == CONTROLLER]
    found = []
    for event in changes:
        before = [each for each in elections(history) if (each.created.zxid or 0) < (event.zxid or 0)]
        found += [(before[-1], event)] if before else []
    return found


def _name(history: History, session: str | None) -> str:
    """Of a broker that is registered in the session, else of the process that was connected in it."""
    known = registrations(history).get(session)
    return f"broker {known[0]}" if known is not None else str(actor_by_session(history).get(session, session))


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
