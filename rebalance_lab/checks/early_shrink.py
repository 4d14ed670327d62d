"""A leader drops a follower from the ISR before it can have been behind for long.

A follower may be behind for `replica.lag.time.max.ms`. When a leader epoch begins, each replica of its ISR is in sync,
so the leader has no reason to drop one before that time has passed. The followers need it to hear of the new leader and
to connect. A follower that joins later must have caught up, so it has that time from then on; one that is dropped
earlier joined too soon, and the ISR may flap (KAFKA-19996). It joins when the leader asks for an ISR with it, or, if no
leader has recorded that, when the state znode has it. What the controller takes out of an ISR begins another leader
epoch, and is not looked at.

Later in a leader epoch a follower has the same time from the moment at which the leader saw last that it had everything
(`Replica.lastCaughtUpTimeMs`, 3.9.1). Fetches are not recorded, but commits are: a leader that has committed all of its
log has seen each replica of the ISR fetch from its end. Each has done so since the last of that log was appended,
because it cannot have fetched behind a record before there was one. So a leader that decides on the drop sooner than
`replica.lag.time.max.ms` after that append is wrong. This holds for the rules of 0.8 (`getOutOfSyncReplicas` counts
from the last fetch that moved the follower) and of 0.9 (from the last that read to the end of the log), too. A
follower that fetches no more, dead or cut off, has lagged for longer than since the next append when it is dropped: the
time counts from before. What commits do not show is not judged: a follower that is behind for a while may be dropped
too early all the same. Nor is a drop soon after a leader that heard
late of its leader epoch has begun: no fetch shows what the follower had, and a broker of Kafka takes the time first,
opens the log, and reports only then that it leads (`Partition.makeLeader`, 3.9.1).

With `replica.lag.max.messages` (0.8; the trial's `lag_messages`) a leader may also drop a follower that lacks more
records than that. It takes for lacking at most what it has not committed, because what is committed is in every replica
in sync. So it had this reason only if more records than that were not committed, with those that it was just syncing,
if it syncs (`flush_messages`): it notes them when that is done. Even then the follower was healthy if
it had all of them again before they had been lacking for `replica.lag.time.max.ms`: the leader dropped one that was not
behind for long, and the ISR may flap (KIP-16). The first record that was lacking was appended by this leader; a
follower has all of them when it has joined again and they are committed.

Witness: the state with which the leader epoch began, or the event with which the follower joined, and the state without
it. Of a follower that had everything not long before: the append, the commit, the leader's decision and the state. Of
one that lacked too many records and was healthy: the batch with the first of them, the state, and the event by which it
had everything again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.log_ends import end_in
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.checks.partition_states import Place, lives, partition_states, place_of
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.events import Event, Layer, order
from rebalance_lab.history.files import History
from rebalance_lab.history.replicas import APPENDED, COMMITTED, ISR_ASSUMED, LEADS, high_watermark_in, largest_isr
from rebalance_lab.history.views import events_of, grouped, once

#: How late a leader may note what it has done. It notes an append when that has returned, after a sync of the log; a
#: follower may have fetched the record, and asked for more, so long before.
NOTED_LATE_US = 100_000


class Shrink(NamedTuple):
    """`dropped`: a replica that was in the ISR of this leader epoch since the event `since`, with which the epoch began
    or, if `joined`, with which it joined. `decided`: the leader's view in which it was to go; None if no leader has
    recorded that. `back`: the event with which it joined again in this leader epoch, if it did."""

    partition: Place
    leader: int
    leader_epoch: int
    dropped: int
    joined: bool
    since: Event
    event: Event
    decided: Event | None
    back: Event | None = None

    @property
    def after_us(self) -> int:
        return self.event.at_us - self.since.at_us


class Lack(NamedTuple):
    """What a follower lacked at most when its leader dropped it, as far as the leader knew. `records`: so many were not
    committed. `span`: the event with which this leader wrote the first of them, and the one by which the follower had
    all of them again; None if either is not known."""

    records: int
    span: tuple[Event, Event] | None


class Early(NamedTuple):
    """A drop that came too early. `recent`: the replica had everything not long before. `counted`: it lacked more
    records than it may, and was healthy."""

    joined: bool
    recent: bool
    counted: bool
    why: str
    witness: tuple[Event, ...]


def judge(history: History) -> Finding:
    """Measures: `count`, replicas that were dropped early, each time that one was; `joined`, those of them that had
    joined in this leader epoch; `recent`, those that had everything not long before; `counted`, those that lacked more
    records than they may, and were healthy; `shrinks`, all drops that were looked at; `least_us`, the shortest time in
    the ISR before a drop, 0 if there was none."""
    found = shrinks(history)
    early = list(_early(history, found))
    measures = {
        "count": len(early),
        "joined": sum(each.joined for each in early),
        "recent": sum(each.recent for each in early),
        "counted": sum(each.counted for each in early),
        "shrinks": len(found),
        "least_us": min((each.after_us for each in found), default=0),
    }
    if early:
        return violated(early[0].why, tuple(each.id for each in early[0].witness), measures)
    nothing = None if partition_states(history) else "no partition has a state"
    why = "leaders dropped only followers that had time to catch up"
    return not_violated(history, why, measures, vacuous=nothing)


def _early(history: History, found: Iterable[Shrink]) -> Iterator[Early]:
    parameters = history.trial.parameters
    lag_us, most = 1000 * int(str(parameters["lag_ms"])), int(str(parameters.get("lag_messages", 0)))
    may = f"it may lag for {seconds(lag_us)}"
    for each in found:
        who = f"{each.partition}: broker {each.leader} dropped broker {each.dropped} from the ISR"
        lack = _lack(history, each) if most else None
        if lack is not None and lack.records > most:
            if lack.span is None or (lasted_us := lack.span[1].at_us - lack.span[0].at_us) >= lag_us - TOLERANCE_US:
                continue
            why = (
                f"{who}, which lacked {lack.records} records at most and may lack {most}; it had all of them again "
                f"{seconds(lasted_us)} after the first was appended, and {may}"
            )
            yield Early(each.joined, False, True, why, (lack.span[0], each.event, lack.span[1]))
            continue
        may_too = may + (f" or by {most} records" if most else "")
        if each.after_us < lag_us - TOLERANCE_US:
            since = "it had joined" if each.joined else "its leader epoch began"
            why = f"{who} {seconds(each.after_us)} after {since}, and {may_too}"
            yield Early(each.joined, False, False, why, (each.since, each.event))
        elif (recent := _recent(history, each, lag_us)) is not None:
            appended, committed, decided = recent
            why = (
                f"{who}, which had everything when the leader committed all up to offset {_committed(committed)}; the "
                f"last of that was appended {seconds(decided.at_us - appended.at_us)} before the leader decided on the "
                f"drop, and {may_too}"
            )
            yield Early(each.joined, True, False, why, (*recent, each.event))


def _recent(history: History, shrink: Shrink, lag_us: int) -> tuple[Event, Event, Event] | None:
    """How it is known that a dropped replica had everything less than `lag_us` before: the leader appended the last of
    its log, committed all of it, and decided on the drop; None if it is not known."""
    found = appended = None
    known_us = shrink.since.at_us + TOLERANCE_US
    for event in _before_drop(history, shrink):
        if event.kind is APPENDED:
            appended = event
        elif appended is not None and _committed(event) == end_in(appended) and event.at_us > known_us:
            found = appended, event
    if found is None or shrink.decided is None or shrink.decided.at_us - found[0].at_us >= lag_us - NOTED_LATE_US:
        return None
    return *found, shrink.decided


def shrinks(history: History) -> list[Shrink]:
    """Each drop of a replica by the leader of its epoch, in the order of the states."""
    found: list[Shrink] = []
    views = grouped(events_of(history, ISR_ASSUMED), place_of)
    for place, states in lives(history):
        since: dict[int, tuple[bool, Event]] = {}
        gone: dict[int, int] = {}
        epoch, written = -1, None
        for event, state in states:
            isr = frozenset(state.isr)
            if state.leader_epoch != epoch:
                since, gone = dict.fromkeys(isr, (False, event)), {}
            its = [each for each in views.get(place, ()) if each.of("leader_epoch") == state.leader_epoch]
            for each in sorted(since.keys() - isr):
                gone[each] = len(found)
                decided = _decided(its, each, written, event)
                found.append(Shrink(place, state.leader, state.leader_epoch, each, *since.pop(each), event, decided))
            asked = _asked(its, written, event)
            for each in sorted(isr - since.keys()):
                joined = asked.get(each, event)
                since[each] = True, joined
                if each in gone:
                    dropped = gone.pop(each)
                    found[dropped] = found[dropped]._replace(back=joined)
            epoch, written = state.leader_epoch, event
    return found


def _asked(views: Iterable[Event], after: Event | None, until: Event) -> dict[int, Event]:
    """Broker -> the first view of a leader, after the last state was written, in which it was to join."""
    found: dict[int, Event] = {}
    for event in views:
        if (after is None or order(after) < order(event)) and order(event) < order(until):
            found = dict.fromkeys(largest_isr(event), event) | found
    return found


def _decided(views: Iterable[Event], broker: int, after: Event | None, until: Event) -> Event | None:
    """The first view of a leader in which a broker was to go. The registry's clock may be ahead or behind."""
    from_us = 0 if after is None else after.at_us - TOLERANCE_US
    for event in views:
        proposed = event.of("proposed")
        goes = isinstance(proposed, list | tuple) and broker in largest_isr(event) and broker not in proposed
        if goes and from_us < event.at_us < until.at_us + TOLERANCE_US:
            return event
    return None


def _lack(history: History, shrink: Shrink) -> Lack | None:
    """What the dropped replica lacked; None if the leader has not recorded enough."""
    if shrink.decided is None:
        return None
    before = _before_drop(history, shrink)
    before += _under_way(history, shrink, shrink.decided)
    end = max((_log_end(each) for each in before), default=-1)
    committed = max((_committed(each) for each in before), default=-1)
    if min(end, committed) < 0:
        return None
    first = next((each for each in before if each.kind is APPENDED and _log_end(each) > committed), None)
    again = _again(_of_leader(history, shrink, shrink.decided.actor), end, shrink.back)
    if first is None or again is None or int(str(first.of("first"))) > committed:
        return Lack(end - committed, None)
    return Lack(end - committed, (first, again))


def _before_drop(history: History, shrink: Shrink) -> list[Event]:
    """What the leader has recorded of its log and its high watermark before it decided on a drop; nothing if it has
    not recorded that."""
    decided = shrink.decided
    if decided is None:
        return []
    return [each for each in _of_leader(history, shrink, decided.actor) if order(each) < order(decided)]


def _under_way(history: History, shrink: Shrink, decided: Event) -> list[Event]:
    """The append that the leader was perhaps syncing when it decided. It was in its log, and not noted yet."""
    if not history.trial.parameters.get("flush_messages"):
        return []
    own = (each for each in _of_leader(history, shrink, decided.actor) if each.kind is APPENDED)
    after = next((each for each in own if order(decided) < order(each)), None)
    return [after] if after is not None and after.at_us <= decided.at_us + NOTED_LATE_US else []


def _of_leader(history: History, shrink: Shrink, actor: str) -> list[Event]:
    """The same at any time in its leader epoch."""
    return _by_leader(history).get((shrink.partition, actor, shrink.leader_epoch), [])


@once
def _by_leader(history: History) -> dict[tuple[Place, str, object], list[Event]]:
    return grouped(
        events_of(history, LEADS, APPENDED, COMMITTED),
        lambda each: (place_of(each), each.actor, each.of("leader_epoch")),
    )


def _again(own: Sequence[Event], end: int, back: Event | None) -> Event | None:
    """The event by which a replica that has joined again has all before `end`. It joins with what is committed."""
    if back is None:
        return None
    if max((_committed(each) for each in own if order(each) < order(back)), default=-1) >= end:
        return back
    return next((each for each in own if order(back) < order(each) and _committed(each) >= end), None)


def _log_end(event: Event) -> int:
    """The end of the log as of an event; -1 if it does not say."""
    return end_in(event) if event.kind in {LEADS, APPENDED} else -1


def _committed(event: Event) -> int:
    """The high watermark as of an event; -1 if it does not say."""
    return high_watermark_in(event) if event.kind in {LEADS, COMMITTED} else -1


CHECK = Check(
    name="early_shrink",
    compares=(Layer.REGISTRY, Layer.BELIEF, Layer.EFFECT),
    meaning="A leader dropped a follower from the ISR that cannot have been behind for replica.lag.time.max.ms.",
    together="The follower was in sync before that, or has all that it lacked again before its time is over.",
    plants=(Planted("drops-without-grace", "leader-start", settings={"grace": "true"}),),
    judge=judge,
    applies_to=(REPLICATION,),
)
