"""What happened in a trial of brokers, in at most five sentences: who leads, what is written, what is done to the
brokers, and what is there in the end."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rebalance_lab.checks import lost_write
from rebalance_lab.checks.lost_write import BROKER_LOG, REPLICATION
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History, Trial
from rebalance_lab.history.replicas import FOLLOWS, LEADS, TRUNCATED, replica_reads
from rebalance_lab.history.writes import PRODUCE, final_read, records_of
from rebalance_lab.report.deeds import deeds
from rebalance_lab.report.scene import Scene
from rebalance_lab.report.text import count, listed, members_named, moment, starting, times

#: Up to so many leaders are named one after another.
LEADERS_TOLD = 4


def is_of_brokers(trial: Trial) -> bool:
    return trial.generation in (BROKER_LOG, REPLICATION)


def tell(scene: Scene) -> tuple[str, ...]:
    """In the order of time."""
    history = History(scene.trial, scene.events)
    told = (
        f"{_cast(scene)}; {_writes(history)}.",
        starting(f"{deeds(scene)}."),
        _leaders(scene),
        _truncations(scene),
        _end(history),
    )
    return tuple(each for each in told if each)


def _of(scene: Scene, *kinds: Kind) -> list[Event]:
    return [event for event in scene.events if event.kind in kinds]


def _cast(scene: Scene) -> str:
    """Which brokers have which partition, and who leads first."""
    placed = _of(scene, LEADS, FOLLOWS)
    if not placed:
        return "No broker has a replica"
    partition = f"{placed[0].topic}/{placed[0].partition}"
    names = sorted({event.actor for event in placed})
    first = next((event.actor for event in placed if event.kind is LEADS), None)
    if len(names) == 1:
        return f"Broker {names[0]} leads {partition}, and no other has a replica"
    leading = "none leads" if first is None else f"{first} leads first"
    return f"Brokers {members_named(names)} have replicas of {partition}, and {leading}"


def _writes(history: History) -> str:
    asked = [event for event in history.events if event.kind is Kind.INVOKED and event.of("op") == PRODUCE]
    if not asked:
        return "nothing is written"
    numbers = lost_write.judge(history).measures
    writers = sorted({event.actor for event in asked})
    records = count(len({event.of("number") for event in asked}), "record")
    done = f"of {records} that {members_named(writers)} {'writes' if len(writers) == 1 else 'write'}"
    told = f"{done}, {numbers.get('acknowledged', 0):,} are acknowledged"
    unanswered = numbers.get("unanswered", 0)
    return told + (f" ({count(unanswered, 'attempt')} without an answer)" if unanswered else "")


def _leaders(scene: Scene) -> str | None:
    """Who leads after the first leader."""
    leaders = _of(scene, LEADS)
    changes = [
        after for before, after in pairwise(leaders) if after.actor != before.actor or _restarted(scene, before, after)
    ]
    if not changes:
        return None
    moments = [moment(scene.since_start(each)) for each in changes]
    if len(changes) > LEADERS_TOLD:
        return f"The leader changes {times(len(changes))}; the last is {changes[-1].actor}, from {moments[-1]}."
    if len({each.actor for each in leaders}) == 1:
        return f"{leaders[0].actor} leads again from {listed(moments)}."
    told = [f"{each.actor} from {at}" for each, at in zip(changes, moments, strict=True)]
    return f"The next {'leader is' if len(told) == 1 else 'leaders are'} {listed(told)}."


def _restarted(scene: Scene, before: Event, after: Event) -> bool:
    """Whether the broker died in between: then it leads anew."""
    began, ended = scene.since_start(before), scene.since_start(after)
    return any(
        fault.target == after.actor
        and not fault.kind.change
        and began <= fault.began_us <= ended
        and fault.kind.momentary
        for fault in scene.faults
    )


def _truncations(scene: Scene) -> str | None:
    cuts = [event for event in _of(scene, TRUNCATED) if _cut(event)]
    if not cuts:
        return None
    names = sorted({event.actor for event in cuts})
    does = "cuts" if len(names) == 1 else "cut"
    records = count(sum(map(_cut, cuts)), "record")
    return f"To follow a leader, {members_named(names)} {does} off {records} that it lacks or sends again."


def _cut(event: Event) -> int:
    """How many records were cut off."""
    return int(str(event.of("from_offset"))) - int(str(event.of("to_offset")))


def _end(history: History) -> str:
    read = final_read(history)
    if read is None:
        return "Nothing is read in the end, so nobody knows what is left."
    numbers = lost_write.judge(history).measures
    acknowledged, lost = numbers["acknowledged"], numbers["count"]
    found = f"In the end a reader finds {count(len(records_of(read)), 'record')}"
    if lost:
        kept = (
            f"of {acknowledged:,} that were acknowledged, {count(lost, 'record')} {'is' if lost == 1 else 'are'} lost"
        )
    else:
        kept = f"all {acknowledged:,} that were acknowledged are there"
    values = [value for _, value in records_of(read)]
    extra = len(values) - len(set(values))
    twice = f"; {count(extra, 'record')} {'is' if extra == 1 else 'are'} there again" if extra else ""
    return f"{found}; {kept}{twice}{_replicas(list(replica_reads(history).values()))}."


def _replicas(reads: Sequence[Event]) -> str:
    if not reads:
        return ""
    logs = {tuple(map(tuple, records)) for each in reads if isinstance(records := each.of("records"), list | tuple)}
    same = "are alike" if len(logs) == 1 else "differ"
    return f"; the {count(len(reads), 'replica')} that were read {same}"
