"""Z1: a member's registration and its ownership live exactly as long as its session.

The registry's events are compared by zxid and path:

1. The id znode `/consumers/<group>/ids/<member>` and the member's owner znodes are ephemeral. A session that the member
   had creates them (its CONNECTED events, if there are any). An owner znode (each below
   `/consumers/<group>/owners/<topic>`) belongs to the member that its data names. If it names no member of the trial,
   but the session of a recorded process created it, that is a violation: it cannot go with its owner.
2. The SESSION_CLOSED of a session removes all of them, at the same zxid.
3. Before that, only that session deletes them: ids never, and owners only because the member asked for it (its
   `delete`; where its operations are only counted, its attempts: see `deletions`).
4. No znode of a killed member is left at the last REST_REACHED after the kill.
5. The outside observer (OBSERVED of `/consumers/<group>/ids` and `/consumers/<group>/owners/<topic>`) sees exactly what
   the registry holds; of owners also the session and the data (see `observer`). The zxid of its reply decides. Without
   one, moments within 2 ms have no order. It must have seen a killed member's id and owner znodes before the kill, and
   must have looked again after they had gone.
6. A member that is alive and connected at a REST_REACHED before the phase `closing` is registered by that session. A
   rest follows a quiet time, so no registration is still under way. A member with the `consumer.id` of another member
   is not registered: its create meets NodeExists, it takes the znode for one of its own former session, and waits
   forever for it to go (`ZkUtils.createEphemeralPathExpectConflictHandleZKBug`, Kafka 0.8.2.2).

*Sampled*: from ZooKeeper 3.6 on, a server's log lists what goes with a session (CloseSessionTxn), unless that is
disabled. Where SESSION_CLOSED has `sampled`, or does not say (histories of older labs), the recorder inferred the
DELETED events that come with it. They are no evidence for rule 2: the outcome is unknown unless an observation after
the session's end shows that each of these znodes is absent or belongs to another session. When they went is not known.

Also unknown: a trial without any registration; a kill without a later rest; and a kill of a member that did not surely
own a partition, because nothing that it owned could vanish. Rules 4 and 6 compare the registry's times with the
runner's, and so does rule 5 if a reply has no zxid: if the wall clock drifted by more than 2 ms, the trial is unknown.
Two processes may use one member's name: their sessions distinguish them.

Witness: the CREATED of the znode, and what contradicts it: nothing (not ephemeral), the SESSION_CLOSED that it
outlived, the DELETED that its member did not ask for, the kill and the rest that it outlived, or the OBSERVED (with the
DELETED, if it had gone by then). For a member without registration: its MEMBER_STARTED, the CREATED of the znode in its
way, and the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rebalance_lab.checks.deletions import doubtful, late_deletions, unasked
from rebalance_lab.checks.faults import clock_drifted
from rebalance_lab.checks.members import MemberLife, member_lives
from rebalance_lab.checks.model import ZK, Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.observer import disagreements, unseen_crashes, unseen_ends
from rebalance_lab.checks.phases import rests_of
from rebalance_lab.checks.znodes import Kill, Violation, Znode, idle_crashes, kills, sessions_of, znodes_of
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, grouped


def judge(history: History) -> Finding:
    """Measures: `count` of violations, `registrations`, members `unregistered` at rest, `sessions_closed` (of
    registered members), `sampled` ends of znodes, `observations`, `longest_us` (from a kill to the end of the victim's
    id)."""
    znodes, breaches = znodes_of(history)
    violations = list(breaches)
    ids = [znode for znode in znodes if znode.is_id]
    crashes = kills(history, znodes)
    violations += _foreign_sessions(history, znodes) + _without_member(history, znodes)
    violations += unasked(history, znodes)
    violations += [found for crash in crashes for found in _survivors(crash)]
    violations += disagreements(history, znodes)
    lost = unregistered(history, ids)
    violations += lost
    if clock_drifted(history):
        violations = [violation for violation in violations if not violation.by_time]
    sessions = {znode.created.session for znode in ids}
    closed = [event for event in events_of(history, Kind.SESSION_CLOSED) if event.session in sessions]
    gone_us = [crash.gone_us for crash in crashes if crash.gone_us is not None]
    numbers = {
        "count": len(violations),
        "registrations": len(ids),
        "unregistered": len(lost),
        "sessions_closed": len(closed),
        "sampled": sum(znode.sampled for znode in znodes),
        "observations": len(events_of(history, Kind.OBSERVED)),
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
    doubts += unseen_crashes(history, crashes)
    doubts += unseen_ends(history, znodes)
    why = "each registration and its ownership lived as long as their session"
    if gone_us:
        why += f", and ended at most {seconds(max(gone_us))} after the kill"
    if numbers["sampled"]:
        why += f"; {numbers['sampled']} ends are sampled: not listed in the log, but confirmed by the outside observer"
    return not_violated(history, why, numbers, vacuous="; ".join(doubts) or None, across_layers=True)


def _foreign_sessions(history: History, znodes: list[Znode]) -> list[Violation]:
    """Znodes created by a session that their member never had."""
    own: dict[str, set[str]] = {}  # of all processes that use the member's name, if any is known
    for event in events_of(history, Kind.MEMBER_STARTED):
        if event.actor in sessions_of(history):
            own.setdefault(event.member or "", set()).update(sessions_of(history)[event.actor])
    return [
        Violation(
            f"{znode.path} was created by session {znode.created.session}, which {znode.member} never had",
            (znode.created.id,),
            znode.rank,
        )
        for znode in znodes
        if znode.member in own and znode.created.session not in own[znode.member]
    ]


def _without_member(history: History, znodes: list[Znode]) -> list[Violation]:
    """Owner znodes that name no member that started, in sessions that some process recorded."""
    started = {event.member for event in events_of(history, Kind.MEMBER_STARTED)}
    known = {session for its in sessions_of(history).values() for session in its}
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
            f"{znode.path} existed at rest, {seconds(rest.at_us - crash.began.at_us)} after its member was killed",
            (znode.created.id, crash.began.id, rest.id),
            znode.rank,
            by_time=True,
        )
        for znode in crash.znodes
        if znode.surely_there_at(rest)
    ]


# -- members without a registration --------------------------------------------------------------


def unregistered(history: History, ids: Sequence[Znode]) -> list[Violation]:
    """Rule 6: each live member that was connected at a rest before the phase `closing` while its session held no id of
    it in its group, once."""
    sessions = {event.id: event.session for event in events_of(history, Kind.CONNECTED)}
    by_member = grouped(ids, lambda znode: (znode.group, znode.member))
    found = []
    for life in member_lives(history):
        for rest in rests_of(history):
            session = _session_at(life, rest, sessions)
            own = by_member.get((life.group, life.member), ())
            if session is None or any(one.created.session == session and one.maybe_there_at(rest) for one in own):
                continue
            found.append(_violation(life, rest, session, own))
            break
    return found


def _session_at(life: MemberLife, rest: Event, sessions: Mapping[EventId, str | None]) -> str | None:
    """The session in which the member was connected at the rest; None if it was not, or had left."""
    if life.left_us is not None and life.left_us < rest.at_us:  # an event at the time of the rest follows it
        return None
    begins = [one.begin for one in life.connected if one.begin_us <= rest.at_us <= one.end_us]
    return next((sessions.get(begin) for begin in begins if begin is not None), None)


def _violation(life: MemberLife, rest: Event, session: str, ids: Iterable[Znode]) -> Violation:
    """The violation of a member without id, with the znode in its way, if there is one (defect F4)."""
    other = next((one for one in ids if one.maybe_there_at(rest)), None)
    why = f"{life.member} ({life.actor}, session {session}) was alive at rest, but not registered"
    if other is None:
        return Violation(why, (life.started.id, rest.id), 0, by_time=True)
    why += f": session {other.created.session} holds its id"
    return Violation(why, (life.started.id, other.created.id, rest.id), other.rank, by_time=True)


CHECK = Check(
    name="registration",
    compares=(Layer.REGISTRY, Layer.OP),
    meaning="A registration or its ownership did not live exactly as long as its member's session.",
    together=(
        "A registration and its owner znodes must exist exactly as long as their session. Here they did not, so others "
        "see a member that is gone, or miss one that is alive."
    ),
    plants=(Planted("persistent-registration", "zombie", control=True),),
    judge=judge,
    applies_to=(ZK,),
)
