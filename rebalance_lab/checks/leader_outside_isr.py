"""A leader was elected that is not in sync, though that is not allowed (claims E5a, E7).

The state znode holds the leader, its epoch and the ISR. A new leader must be in the ISR that stood there before. If
unclean elections are allowed (`unclean_elections`), it need not be, and is then alone in the new ISR. Only a leader
knows who has caught up: the ISR grows while it stays in its leader epoch, and in no other change. In every state the
ISR is not empty and lies within the assignment, the leader is in it, and the leader epoch rises by one at each change
of the leader, and never falls. The first state comes of an election, too: its leader must be in the ISR that it names,
and the first of the assignment that is.

Witness: the state before, and the one that is wrong.
"""

from __future__ import annotations

from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import lives, replicas_at
from rebalance_lab.checks.unclean_elections import unclean_allowed
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.wire.cluster import NO_LEADER, LeaderIsrAndControllerEpoch

State = LeaderIsrAndControllerEpoch


def judge(history: History) -> Finding:
    """Measures: `count`, wrong states; `elections`, changes of the leader; `unclean`, elections from outside the
    ISR."""
    wrong: list[tuple[str, Event, Event]] = []
    elections = unclean = states_seen = 0
    for partition, states in lives(history):
        states_seen += len(states)
        before: tuple[Event, State] | None = None
        for event, state in states:
            replicas = replicas_at(history, partition, event)
            why = _impossible(state, replicas)
            if before is None and event.kind is Kind.CREATED:
                why = why or _wrong_first(state, replicas)
            if before is not None:
                elected = state.leader not in {NO_LEADER, before[1].leader}
                outside = elected and state.leader not in before[1].isr
                elections, unclean = elections + elected, unclean + outside
                allowed = _unclean_allowed(history, partition.topic, before[0], event)
                why = why or _wrong_change(before[1], state, unclean_allowed=allowed)
            if why is not None:
                wrong.append((f"{partition}: {why}", (before or (event, state))[0], event))
            before = event, state
    measures = {"count": len(wrong), "elections": elections, "unclean": unclean}
    if wrong:
        why, first, second = wrong[0]
        return violated(why, (first.id, second.id), measures)
    nothing = None if states_seen else "no partition has a state"
    return not_violated(history, f"{states_seen} states, each as it must be", measures, vacuous=nothing)


def _unclean_allowed(history: History, topic: str, before: Event, event: Event) -> bool:
    """Whether a topic allowed unclean elections at some time between two states; a controller reads that first."""
    return any(each.overlaps(before.at_us, event.at_us) for each in unclean_allowed(history, topic))


def _impossible(state: State, replicas: tuple[int, ...]) -> str | None:
    """What no state may hold."""
    if not state.isr:
        return f"the ISR is empty in leader epoch {state.leader_epoch}"
    strangers = [each for each in state.isr if replicas and each not in replicas]
    if strangers:
        return f"broker {strangers[0]} is in the ISR and is not a replica"
    if state.leader not in {NO_LEADER, *state.isr}:
        return f"leader {state.leader} is not in the ISR {list(state.isr)}"
    return None


def _wrong_first(state: State, replicas: tuple[int, ...]) -> str | None:
    """Why a partition's first leader is not the one that it should be."""
    first = next((each for each in replicas if each in state.isr), None)
    if first is None or state.leader == first:
        return None
    return f"broker {state.leader} leads first; of the assignment {list(replicas)} it should be {first}"


def _wrong_change(before: State, state: State, *, unclean_allowed: bool) -> str | None:
    """What does not follow from the state before."""
    moved = state.leader != before.leader
    rise = state.leader_epoch - before.leader_epoch
    if rise < 0 or (moved and rise != 1) or rise > 1:
        return f"the leader epoch went from {before.leader_epoch} to {state.leader_epoch}"
    if moved and state.leader != NO_LEADER and state.leader not in before.isr and not unclean_allowed:
        return f"broker {state.leader} was elected, and the ISR was {list(before.isr)}"
    return _wrong_growth(before, state)


def _wrong_growth(before: State, state: State) -> str | None:
    """Why nobody can have let a replica into the ISR, if one has joined it."""
    joined = [each for each in state.isr if each not in before.isr]
    if not joined:
        return None
    if state.leader == joined[0] and state.leader != before.leader:
        others = [each for each in state.isr if each != state.leader]
        if not others:
            return None
        return f"broker {state.leader}, which was not in sync, leads, and {others[0]} counts as in sync"
    if NO_LEADER in {state.leader, before.leader}:
        return f"broker {joined[0]} joined the ISR {list(before.isr)} without a leader"
    if (state.leader, state.leader_epoch) != (before.leader, before.leader_epoch):
        return f"broker {joined[0]} joined the ISR {list(before.isr)} by an election"
    return None


CHECK = Check(
    name="leader_outside_isr",
    compares=(Layer.REGISTRY,),
    meaning="A replica became the leader that was not in sync, or the state of a partition contradicts itself.",
    together="The ISR names those that have every committed record, and the new leader is not one of them.",
    plants=(Planted("elects-unclean", "all-replicas-down", settings={"unclean": "false"}),),
    judge=judge,
    applies_to=(REPLICATION,),
)
