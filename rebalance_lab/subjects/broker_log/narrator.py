"""What happened in a trial of brokers, in at most five sentences: who leads, what is written, what is done to the
brokers, and what is there in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, groupby, pairwise
from typing import NamedTuple

from rebalance_lab.analysis.results import TrialOutcome
from rebalance_lab.checks import duplicate, lost_write, poll_skip
from rebalance_lab.checks.broker_names import broker_names
from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.model import Outcome
from rebalance_lab.checks.partition_states import lives
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import KILL, NO_PARTITION
from rebalance_lab.history.reads import polls
from rebalance_lab.history.replicas import FOLLOWS, LEADS, TRUNCATED, replica_reads
from rebalance_lab.history.views import closing_phase
from rebalance_lab.history.writes import PRODUCE, attempts, final_read, records_of
from rebalance_lab.report.deeds import deeds
from rebalance_lab.report.narrator import Narrator
from rebalance_lab.report.scene import Scene
from rebalance_lab.report.spans import Row, row_of
from rebalance_lab.report.text import count, listed, members_named, moment, partitions_named, seconds, starting, times
from rebalance_lab.subjects.broker_log.holdings import CONTROLLERSHIP
from rebalance_lab.wire.cluster import NO_LEADER

#: Up to so many leaders are named one after another.
LEADERS_TOLD = 4
#: Of up to so many partitions the leaders are told one by one.
PARTITIONS_TOLD = 2


class BrokerNarrator(Narrator):
    """Of brokers, alone or as a cluster."""

    is_printed = True

    def tell(self, scene: Scene, wrong: Sequence[TrialOutcome] = ()) -> tuple[str, ...]:
        return _story(scene)


NARRATOR = BrokerNarrator()


def _story(scene: Scene) -> tuple[str, ...]:
    """In the order of time."""
    history, ran = History(scene.trial, scene.events), _before_closing(scene)
    told = (
        f"{_cast(ran)}; {_writes(history)}.",
        starting(f"{'; '.join(each for each in (deeds(ran), _controllers(ran)) if each)}."),
        _leaders(ran, History(ran.trial, ran.events)),
        _truncations(ran),
        _end(history),
    )
    return tuple(each for each in told if each)


def _before_closing(scene: Scene) -> Scene:
    """The scene without what happens while the runner takes the brokers down: leaders and controllers that change then
    are not part of the trial. The registry's times may be TOLERANCE_US early."""
    if closing_phase(History(scene.trial, scene.events)) is None:
        return scene
    until_us = dict.fromkeys(Layer, scene.closing_us) | {Layer.REGISTRY: scene.closing_us - TOLERANCE_US}
    return replace(
        scene,
        events=tuple(each for each in scene.events if scene.since_start(each) < until_us[each.layer]),
        spans=tuple(each for each in scene.spans if each.begin_us < until_us[each.layer]),
        faults=tuple(each for each in scene.faults if each.began_us < until_us[Layer.FAULT]),
    )


def _of(scene: Scene, *kinds: Kind) -> list[Event]:
    return [event for event in scene.events if event.kind in kinds]


def _cast(scene: Scene) -> str:
    """Which brokers have which partition, and who leads first."""
    placed = _of(scene, LEADS, FOLLOWS)
    if not placed:
        return "No broker has a replica"
    rows = _rows(scene)
    partitions = partitions_named(rows)
    names = sorted({event.actor for event in placed})
    if len(names) == 1:
        return f"Broker {names[0]} leads {partitions}, and no other has a replica"
    return f"Brokers {members_named(names)} have replicas of {partitions}, and {_first_leaders(scene, rows)}"


def _rows(scene: Scene) -> list[Row]:
    """The partitions of which brokers have replicas."""
    return sorted({_partition(event) for event in _of(scene, LEADS, FOLLOWS)})


def _partition(event: Event) -> Row:
    """The row of a role's partition. Brokers have no groups, whatever an event says."""
    return row_of(event)._replace(group="")


def _first_leaders(scene: Scene, rows: Sequence[Row]) -> str:
    first: dict[Row, str] = {}
    for event in _of(scene, LEADS):
        first.setdefault(_partition(event), event.actor)
    if not first:
        return "none leads"
    if len(rows) == 1:
        return f"{first[rows[0]]} leads first"
    led = {name: [row for row in rows if first.get(row) == name] for name in sorted(set(first.values()))}
    return f"at first {listed([f'{name} leads {partitions_named(its)}' for name, its in led.items()])}"


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
    refused = sum(len(each.refused) for each in attempts(history).values())
    others = [f"{count(unanswered, 'attempt')} without an answer"] if unanswered else []
    others += [f"{count(refused, 'attempt')} refused"] if refused else []
    return told + (f" ({', '.join(others)})" if others else "")


def _controllers(scene: Scene) -> str | None:
    """Who is the controller after the first one, according to ZooKeeper."""
    terms = [span for span in scene.spans if span.layer is Layer.REGISTRY and span.place == CONTROLLERSHIP]
    if len(terms) < 2:
        return None
    if len(terms) > LEADERS_TOLD + 1:
        return f"the controller changes {times(len(terms) - 1)}"
    if len({span.member for span in terms}) == 1:
        moments = listed([moment(span.begin_us) for span in terms[1:]])
        return f"{scene.name(terms[0].member)} is the controller again from {moments}"
    told = [f"{scene.name(span.member)} from {moment(span.begin_us)}" for span in terms[1:]]
    return f"after {scene.name(terms[0].member)}, the controller is {listed(told)}"


def _leaders(scene: Scene, history: History) -> str | None:
    """Who leads after the first leader, how it was elected, and for how long nobody led."""
    told = [each for each in (_without_leader(scene), _next_leaders(scene, history), _unclean(history)) if each]
    return starting(f"{'; '.join(told)}.") if told else None


def _without_leader(scene: Scene) -> str | None:
    """Of several partitions that of the one which is without a leader for longest."""
    nobody: Counter[Row] = Counter()
    known: Counter[Row] = Counter()
    for gap in scene.gaps:
        if gap.row.partition != NO_PARTITION and gap.layer in (Layer.BELIEF, Layer.REGISTRY):
            (nobody if gap.layer is Layer.BELIEF else known)[gap.row] += gap.length_us
    if not nobody:
        return None
    row, length_us = min(nobody.items(), key=lambda item: (-item[1], item[0]))
    by_registry = f" (for {seconds(known[row])} according to ZooKeeper)" if known[row] else ""
    others = f", and {count(len(nobody) - 1, 'other partition')} for less" if len(nobody) > 1 else ""
    return f"for {seconds(length_us)} no broker leads {row}{by_registry}{others}"


def _unclean(history: History) -> str | None:
    """The leaders that were elected from outside the ISR."""
    names = broker_names(history)
    found = [
        names.get(after.leader, f"broker {after.leader}")
        for _, states in lives(history)
        for (_, before), (_, after) in pairwise(states)
        if after.leader not in (before.leader, -1) and after.leader not in before.isr
    ]
    who = listed(list(dict.fromkeys(found)))
    return f"{who} {'was' if len(set(found)) == 1 else 'were'} not in the ISR when elected" if found else None


class Turn(NamedTuple):
    """From `at_us` on a broker leads a partition; or, if `fate` says why not, is elected then and does not lead."""

    at_us: int
    name: str
    fate: str = ""


def _next_leaders(scene: Scene, history: History) -> str | None:
    rows, unled = _rows(scene), _unled(scene, history)
    turns = {row: found for row in rows if (found := sorted((*_changes(scene, row), *unled.get(row, ()))))}
    if len(turns) > PARTITIONS_TOLD:
        return _counted(list(chain(*turns.values())), f"the leaders of {partitions_named(turns)} change", " in all")
    return "; ".join(_succession(scene, row, found, alone=len(rows) == 1) for row, found in turns.items()) or None


def _changes(scene: Scene, row: Row) -> list[Turn]:
    """Where a broker leads a partition after another one, or after its own death."""
    leaders = [event for event in _of(scene, LEADS) if _partition(event) == row]
    return [
        Turn(scene.since_start(after), after.actor)
        for before, after in pairwise(leaders)
        if after.actor != before.actor or _restarted(scene, before, after)
    ]


def _unled(scene: Scene, history: History) -> dict[Row, list[Turn]]:
    """The brokers that the registry names as leaders, and that do not lead before it names another, or none."""
    names = broker_names(history)
    led = {(_partition(event), event.actor, event.of("leader_epoch")) for event in _of(scene, LEADS)}
    found: dict[Row, list[Turn]] = {}
    for place, states in lives(history):
        row = Row("", *place)
        runs = [list(its) for _, its in groupby(states, key=lambda each: each[1].leader)]
        begins_us = [scene.since_start(its[0][0]) for its in runs]
        for its, at_us, until_us in zip(runs, begins_us, [*begins_us[1:], scene.closing_us], strict=True):
            leader = its[0][1].leader
            name = names.get(leader, f"broker {leader}")
            if leader != NO_LEADER and not any((row, name, state.leader_epoch) in led for _, state in its):
                found.setdefault(row, []).append(Turn(at_us, name, _fate(scene, name, at_us, until_us)))
    return found


def _fate(scene: Scene, name: str, at_us: int, until_us: int) -> str:
    """Why a broker does not lead that is elected at `at_us`, until the registry names another at `until_us`."""
    kills = [fault for fault in scene.faults if fault.kind.name == KILL and fault.target == name]
    if any(fault.began_us < at_us < scene.back_us(fault) for fault in kills):
        return ", when it is dead already"
    died = any(at_us <= fault.began_us < until_us for fault in kills)
    return " and dies before it leads" if died else " and does not lead"


def _succession(scene: Scene, row: Row, turns: Sequence[Turn], *, alone: bool) -> str:
    """Who leads a partition after its first leader. `alone`: there is no other partition to be told from."""
    of_row, the_row = ("", "") if alone else (f" of {row}", f" {row}")
    moments = [moment(each.at_us) for each in turns]
    if len(turns) > LEADERS_TOLD:
        last = [f"the last is {each.name}, from {moment(each.at_us)}" for each in turns if not each.fate][-1:]
        return "; ".join([_counted(turns, f"the leader{of_row} changes"), *last])
    if any(each.fate for each in turns):
        as_leader = "" if alone else f" leader of {row}"
        return "; ".join(
            f"{name} is elected{as_leader} at {moment(at_us)}{fate}"
            if fate
            else f"{name} leads{the_row} from {moment(at_us)}"
            for at_us, name, fate in turns
        )
    if len({event.actor for event in _of(scene, LEADS) if _partition(event) == row}) == 1:
        return f"{turns[0].name} leads{the_row} again from {listed(moments)}"
    told = [f"{each.name} from {at}" for each, at in zip(turns, moments, strict=True)]
    leaders, are = ("leader", "is") if len(told) == 1 else ("leaders", "are")
    return f"the next {leaders}{of_row} {are} {listed(told)}"


def _counted(turns: Sequence[Turn], change: str, among: str = "") -> str:
    """Many turns. `change`: subject and verb of the sentence; `among`: how the changes are counted."""
    unled = sum(bool(each.fate) for each in turns)
    told = [f"{change} {times(len(turns) - unled)}{among}"] if unled < len(turns) else []
    told += [f"{times(unled)} a broker is elected that does not lead"] if unled else []
    return "; ".join(told)


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
    records = count(sum(map(_cut, cuts)), "record")
    if len(cuts) == 1:
        return f"To follow a leader, {names[0]} cuts off {records}, which the leader lacks or sends again."
    what = f"{'cuts' if len(names) == 1 else 'cut'} off what the leader lacks or sends again"
    told = f"{records} in {count(len(cuts), 'truncation')}, each counted as often as it is cut off"
    return f"To follow a leader, {members_named(names)} {what}: {told}."


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
    return (
        f"{found}; {kept}{_repeated(history, read)}{_replicas(list(replica_reads(history).values()))}{_along(history)}."
    )


def _repeated(history: History, read: Event) -> str:
    """How many records are in the log more than once, by the number of times, and whether the client sent them so
    often."""
    copies = Counter(value for _, value in records_of(read))
    alike = Counter(number for number in copies.values() if number > 1)
    told = [
        f"{count(records, 'record')} {'is' if records == 1 else 'are'} in the log {times(number)}"
        for number, records in sorted(alike.items())
    ]
    is_clean = duplicate.judge(history).outcome is Outcome.CLEAN
    sent = f" (no more often than {'it was' if alike.total() == 1 else 'they were'} sent)" if is_clean else ""
    return f"; {listed(told)}{sent}" if told else ""


def _along(history: History) -> str:
    """What a reader that has read along has missed."""
    readers = sorted({event.actor for event in polls(history)})
    if not readers:
        return ""
    missed = poll_skip.judge(history).measures["count"]
    return f"; {members_named(readers)} read along, and missed {count(missed, 'record') if missed else 'none of them'}"


def _replicas(reads: Sequence[Event]) -> str:
    if not reads:
        return ""
    logs = {tuple(map(tuple, records)) for each in reads if isinstance(records := each.of("records"), list | tuple)}
    same = "are alike" if len(logs) == 1 else "differ"
    return f"; the {count(len(reads), 'replica')} that were read {same}"
