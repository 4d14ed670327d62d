"""Z1: a member's registration and its ownership live exactly as long as its session.

In the registry's own order (zxid), by the znodes' paths:

1. the id znode `/consumers/<group>/ids/<member>` and the member's owner znodes are ephemeral,
   and the id is created by a session that the member had (its CONNECTED events, where there
   are any);
2. a session's SESSION_CLOSED takes all of these with it, at the same zxid;
3. before that nobody but that session deletes them;
4. of a killed member no znode is left at the last REST_REACHED after the kill;
5. the outside observer (OBSERVED of `/consumers/<group>/ids`) sees what the registry says:
   by the zxid of its reply where it has one, otherwise 2 ms either way have no order. It must
   have looked at a killed member's group after it registered and before the kill, and after;
6. a member that lives and is connected at a REST_REACHED before the phase `closing` is registered,
   by that session. With a `consumer.id` that another has (facts 8.6, F4) it is not: its create meets
   NodeExists, it takes the znode for one of its own last session, and waits for that to go, for ever.

No registration at all, a kill without a later rest, one that nobody observed on either side,
or one of a member that did not surely own a partition (of it "all it owned vanishes" is not
shown) is unknown. Rules 4 and 5, the latter where a reply has no zxid, compare the registry's
times with the runner's: what breaks them says nothing if the wall clock drifted by more than
2 ms, and the trial is unknown. So it is with rule 6. Two processes may go by one member's name: they
are told apart by their sessions.

Witness: the CREATED of the znode, and beside it what contradicts: nothing (not ephemeral), the
SESSION_CLOSED it outlived, the DELETED by another, the kill and the rest it outlived, or the
OBSERVED (with the DELETED, if it was gone by then). Of a member without registration its
MEMBER_STARTED, the CREATED of the znode that stands in its way, and the rest.
"""

from __future__ import annotations

from rebalance_lab.checks.faults import clock_drifted, not_violated, seconds, violated
from rebalance_lab.checks.model import Check, Finding
from rebalance_lab.checks.observer import disagreements, unseen_crashes
from rebalance_lab.checks.presence import unregistered
from rebalance_lab.checks.znodes import Kill, Violation, Znode, idle_crashes, kills, sessions_of, znodes_of
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of

_KINDS = (
    *(Kind.SESSION_CLOSED, Kind.CREATED, Kind.DELETED),
    *(Kind.MEMBER_STARTED, Kind.CONNECTED),
    *(Kind.FAULT_BEGAN, Kind.REST_REACHED, Kind.OBSERVED),
)


def judge(history: History) -> Finding:
    """Measures: `count` of violations, `registrations`, members `unregistered` at rest,
    `sessions_closed` (of registered members), `observations`, `longest_us` (from a kill to the end
    of the victim's id)."""
    events = events_of(history, *_KINDS)
    znodes, breaches = znodes_of(history)
    violations = list(breaches)
    ids = [znode for znode in znodes if znode.is_id]
    crashes = kills(events, znodes)
    violations += _foreign_sessions(events, ids)
    violations += [found for crash in crashes for found in _survivors(crash)]
    violations += disagreements(events, ids)
    lost = unregistered(history, ids)
    violations += lost
    if clock_drifted(history):
        violations = [violation for violation in violations if not violation.by_time]
    sessions = {znode.created.session for znode in ids}
    closed = [event for event in events if event.kind is Kind.SESSION_CLOSED and event.session in sessions]
    gone_us = [crash.gone_us for crash in crashes if crash.gone_us is not None]
    numbers = {
        "count": len(violations),
        "registrations": len(ids),
        "unregistered": len(lost),
        "sessions_closed": len(closed),
        "observations": sum(event.kind is Kind.OBSERVED for event in events),
        "longest_us": max(gone_us, default=0),
    }
    if violations:
        first = min(violations, key=lambda violation: violation.rank)
        return violated(first.why, first.witness, numbers)
    doubts = ["no member registered"] if not ids else []
    doubts += [f"no rest followed the kill of {crash.member}" for crash in crashes if crash.rest is None]
    doubts += idle_crashes(crashes)
    doubts += unseen_crashes(events, crashes)
    why = "each registration and its ownership lived as long as their session"
    if gone_us:
        why += f", {seconds(max(gone_us))} after the kill at most"
    return not_violated(history, why, numbers, vacuous="; ".join(doubts) or None, across_layers=True)


def _foreign_sessions(events: list[Event], ids: list[Znode]) -> list[Violation]:
    """Ids created by a session that their member never had."""
    sessions = sessions_of(events)
    own: dict[str, set[str]] = {}  # of all processes that go by the member's name, where any is known
    for event in events:
        if event.kind is Kind.MEMBER_STARTED and event.actor in sessions:
            own.setdefault(event.member or "", set()).update(sessions[event.actor])
    return [
        Violation(
            f"{znode.path} was created by session {znode.created.session}, which {znode.member} never had",
            (znode.created.id,),
            znode.rank,
        )
        for znode in ids
        if znode.member in own and znode.created.session not in own[znode.member]
    ]


def _survivors(crash: Kill) -> list[Violation]:
    """Znodes of a killed member that were still there at the last rest."""
    if crash.rest is None:
        return []
    rest = crash.rest
    return [
        Violation(
            f"{znode.path} was there at rest, {seconds(rest.at_us - crash.began.at_us)} after its member was killed",
            (znode.created.id, crash.began.id, rest.id),
            znode.rank,
            by_time=True,
        )
        for znode in crash.znodes
        if znode.surely_there_at(rest)
    ]


CHECK = Check(
    name="registration",
    compares=(Layer.REGISTRY, Layer.OP),
    meaning="A registration or its ownership did not live exactly as long as its member's session.",
    plants=("persistent-registration",),
    judge=judge,
)
