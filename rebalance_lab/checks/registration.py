"""Z1: a member's registration and its ownership live exactly as long as its session.

The registry's events are compared by zxid, and by the znodes' paths:

1. The id znode `/consumers/<group>/ids/<member>` and the member's owner znodes are ephemeral. They
   are created by a session that the member had (its CONNECTED events, where there are any). An owner
   znode (each below `/consumers/<group>/owners/<topic>`) is the member's that its data name. One that names no
   member of the trial, and is made in a session of a recorded process, is nobody's: it cannot go with its owner.
2. A session's SESSION_CLOSED takes all of these with it, at the same zxid.
3. Before that nobody but that session deletes them: ids never, and owners only because the member
   asked for it (its `delete`; where its operations are only counted, its attempts: see `deletions`).
4. No znode of a killed member is left at the last REST_REACHED after the kill.
5. The outside observer (OBSERVED of `/consumers/<group>/ids` and `/consumers/<group>/owners/<topic>`)
   sees what the registry says, no less and no more; of owners also the session and the data (see
   `observer`). The zxid of its reply decides; without one, 2 ms either way have no order. It must
   have looked at a killed member's id and at what it owned while they were there and before the
   kill, and again after they had gone.
6. A member that lives and is connected at a REST_REACHED before the phase `closing` is registered,
   by that session. With a `consumer.id` that another member has it is not: its create meets
   NodeExists, it takes the znode for one of its own last session, and waits for that to go, for ever
   (ZkUtils.createEphemeralPathExpectConflictHandleZKBug, Kafka 0.8.2.2).

*Sampled*: a server's log lists what goes with a session from ZooKeeper 3.6 on (CloseSessionTxn),
unless it is disabled. Where SESSION_CLOSED says `sampled`, or does not say (histories of older labs),
the DELETED events that come with it are the recorder's inference. They are no evidence for rule 2: the
outcome is unknown unless an observation after the session's end shows each of these znodes absent, or
in another session. The moment at which they went is not known then.

Unknown, too: no registration at all; a kill without a later rest; a kill of a member that did not
surely own a partition (of it "all it owned vanishes" is not shown). Rules 4 and 6, and 5 where a reply
has no zxid, compare the registry's times with the runner's: if the wall clock drifted by more than
2 ms, what breaks them says nothing, and the trial is unknown. Two processes may go by one member's
name: their sessions tell them apart.

Witness: the CREATED of the znode, and beside it what contradicts: nothing (not ephemeral), the
SESSION_CLOSED it outlived, the DELETED that is not its member's, the kill and the rest it outlived, or the
OBSERVED (with the DELETED, if it was gone by then). Of a member without registration its
MEMBER_STARTED, the CREATED of the znode that stands in its way, and the rest.
"""

from __future__ import annotations

from rebalance_lab.checks.deletions import doubtful, late_deletions, unasked
from rebalance_lab.checks.faults import clock_drifted, not_violated, violated
from rebalance_lab.checks.model import ZK, Check, Finding
from rebalance_lab.checks.observer import disagreements, unseen_crashes, unseen_ends
from rebalance_lab.checks.presence import unregistered
from rebalance_lab.checks.znodes import Kill, Violation, Znode, idle_crashes, kills, sessions_of, znodes_of
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of

_KINDS = (
    *(Kind.SESSION_CLOSED, Kind.CREATED, Kind.CHANGED, Kind.DELETED),
    *(Kind.MEMBER_STARTED, Kind.CONNECTED),
    *(Kind.FAULT_BEGAN, Kind.REST_REACHED, Kind.OBSERVED),
)


def judge(history: History) -> Finding:
    """Measures: `count` of violations, `registrations`, members `unregistered` at rest,
    `sessions_closed` (of registered members), `sampled` ends of znodes, `observations`, `longest_us`
    (from a kill to the end of the victim's id)."""
    events = events_of(history, *_KINDS)
    znodes, breaches = znodes_of(history)
    violations = list(breaches)
    ids = [znode for znode in znodes if znode.is_id]
    crashes = kills(events, znodes)
    violations += _foreign_sessions(events, znodes) + _nobodys(events, znodes)
    violations += unasked(history, znodes)
    violations += [found for crash in crashes for found in _survivors(crash)]
    violations += disagreements(events, znodes)
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
        "sampled": sum(znode.sampled for znode in znodes),
        "observations": sum(event.kind is Kind.OBSERVED for event in events),
        "longest_us": max(gone_us, default=0),
    }
    if violations:
        first = min(violations, key=lambda violation: violation.rank)
        return violated(first.why, first.witness, numbers)
    doubts = ["no member registered"] if not ids else []
    doubts += [f"no rest followed the kill of {crash.member}" for crash in crashes if crash.rest is None]
    doubts += idle_crashes(crashes)
    doubts += doubtful(history, znodes)
    doubts += late_deletions(history, crashes)
    doubts += unseen_crashes(events, crashes)
    doubts += unseen_ends(events, znodes)
    why = "each registration and its ownership lived as long as their session"
    if gone_us:
        why += f", {seconds(max(gone_us))} after the kill at most"
    if numbers["sampled"]:
        why += f"; {numbers['sampled']} ends are sampled: seen from outside afterwards, not listed in the log"
    return not_violated(history, why, numbers, vacuous="; ".join(doubts) or None, across_layers=True)


def _foreign_sessions(events: list[Event], znodes: list[Znode]) -> list[Violation]:
    """Znodes created by a session that their member never had."""
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
        for znode in znodes
        if znode.member in own and znode.created.session not in own[znode.member]
    ]


def _nobodys(events: list[Event], znodes: list[Znode]) -> list[Violation]:
    """Owner znodes that name no member that started, in sessions that some process recorded."""
    started = {event.member for event in events if event.kind is Kind.MEMBER_STARTED}
    known = {session for its in sessions_of(events).values() for session in its}
    return [
        Violation(f"{znode.path} holds {znode.data[0]!r}, which names no member", (znode.created.id,), znode.rank)
        for znode in znodes
        if not znode.is_id and znode.member not in started and znode.created.session in known
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
    applies_to=(ZK,),
)
