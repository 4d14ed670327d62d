"""A controller's duty is done, once, whoever has been the controller meanwhile (claim E4).

The runner asks for a duty, kills the controller at one of its operations, and heals what it has broken. Then the
cluster is to be as the duty wants it: the znodes that an inspector reads in a session of its own, what each broker
tells clients, and the folders on each broker's disk. Applied once means: once a topic is as wanted, it stays so; no
state znode of the duty's topic is created or deleted twice; and none of a partition that is to be there is deleted.

A successor does what it finds undone. So two things are asked of a controller that has not halted:

- It does the duty itself. If it is killed DONE_WITHIN_US after it was asked, or later, a look before has found the
  cluster as wanted.
- A broker that shuts down in a controlled way leads nothing any more when its registration goes. Afterwards nothing
  tells this from a crash.

Witness: what was asked for, and the last look that differs, or the kill, or the registration that went; or the two
writes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rebalance_lab.checks.faults import TOLERANCE_US, faults
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, unknown, violated
from rebalance_lab.checks.phases import before_closing
from rebalance_lab.history.durations import seconds
from rebalance_lab.history.duties import FOLDERS_READ, LOOK, Target, duties_asked, numbers_in, target_of, texts_in
from rebalance_lab.history.events import Event, Kind, Layer, order
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import KILL
from rebalance_lab.history.views import events_of
from rebalance_lab.history.writes import REPORTED
from rebalance_lab.wire.cluster import read_assignment, read_configuration, read_state
from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.paths import (
    BROKER_IDS,
    BROKER_TOPICS,
    DELETE_TOPICS,
    TOPIC_CONFIGS,
    partition_of_state,
    partition_state_path,
    topic_config_path,
    topic_path,
)

#: The detail of REPORTED of a broker whose controller carries out nothing more (`broker.halting`).
_HALTS = "halts"

#: A duty that asks a broker to shut down.
_SHUTDOWN = "controlled-shutdown"

#: A controller that nothing holds up does a duty in a second or two, and in a session timeout more if a broker fails.
DONE_WITHIN_US = 15_000_000

#: What of `/admin` stays: all others of its children are requests that the controller has not done.
_STAYS = DELETE_TOPICS.rpartition("/")[2]


class Difference(NamedTuple):
    """`why`: how something differs from the target. `broker`: on whose disk; None if the look shows it."""

    why: str
    broker: str | None = None


def judge(history: History) -> Finding:
    """Measures: `count`, differences from the target, and what went wrong on the way; `topics` and `brokers` that were
    looked at."""
    asked = duties_asked(history)[0]
    target = target_of(asked)
    look, folders = last_look(history), last_folders(history)
    if look is None or not folders:
        return unknown(history, "nobody has looked at the cluster after the duty")
    found = list(differences(target, look, folders))
    wrong = [*_left_to_others(history, asked, target), *_led_to_the_end(history, asked, target)]
    wrong += _repeated(history, asked, target)
    measures = {
        "count": len(found) + len(wrong),
        "topics": len(target.topics),
        "brokers": len(target.brokers),
    }
    if found:
        first = found[0]
        shown = look if first.broker is None else folders[first.broker]
        return violated(f"{asked.of('duty')}: {first.why}", (asked.id, shown.id), measures)
    if wrong:
        why, before, after = wrong[0]
        return violated(f"{asked.of('duty')}: {why}", (before.id, after.id), measures)
    return not_violated(history, f"{asked.of('duty')} is done, once, wherever one looks", measures)


def last_look(history: History) -> Event | None:
    """The OK of the last look before the nodes are taken down."""
    looks = [each for each in events_of(history, Kind.OK) if each.of("op") == LOOK and before_closing(history, each)]
    return looks[-1] if looks else None


def last_folders(history: History) -> dict[str, Event]:
    """Of each broker."""
    return {str(each.member): each for each in events_of(history, FOLDERS_READ)}


def differences(target: Target, look: Event, folders: Mapping[str, Event]) -> Iterator[Difference]:
    """How the cluster differs from the target, according to a look and to the disks."""
    for each in (*_of_znodes(target, look), *_of_metadata(target, look)):
        yield Difference(each)
    for broker in target.brokers:
        name = f"b{broker}"
        wanted = {
            f"{topic}-{number}"
            for topic, partitions in target.topics.items()
            for number, replicas in partitions.items()
            if broker in replicas
        }
        there = {each for each in texts_in(folders[name].of("folders")) if not each.endswith("-delete")}
        for each in sorted(wanted ^ there):
            what = f"has no log of {each}" if each in wanted else f"still has a log of {each}"
            yield Difference(f"{name} {what}", name)


# -- znodes ---------------------------------------------------------------------------------------


def _of_znodes(target: Target, look: Event) -> Iterator[str]:
    children, data = _children(look), _data(look)
    registered = sorted(map(int, children.get(BROKER_IDS, ())))
    if registered != sorted(target.brokers):
        yield f"the brokers {registered} are registered, and {sorted(target.brokers)} should be"
    for each in children.get(DELETE_TOPICS, ()):
        yield f"the request to delete {each} is still there"
    for each in children.get("/admin", ()):
        if each != _STAYS:
            yield f"/admin/{each} is still there"
    topics = sorted(children.get(BROKER_TOPICS, ()))
    if topics != sorted(target.topics):
        yield f"there are the topics {topics}, and there should be {sorted(target.topics)}"
    for each in sorted(set(children.get(TOPIC_CONFIGS, ())) - set(target.topics)):
        yield f"the settings of {each} are still there"
    for topic, its in target.settings.items():
        path = topic_config_path(topic)
        found = read_configuration(path, data[path].encode()) if path in data else {}
        if found != its:
            yield f"{topic} has the settings {found}, and should have {dict(its)}"
    for topic, wanted in target.topics.items():
        if topic in topics:
            yield from _of_topic(target, topic, wanted, data)


def _of_topic(
    target: Target, topic: str, wanted: Mapping[int, tuple[int, ...]], data: Mapping[str, str]
) -> Iterator[str]:
    try:
        assignment = read_assignment(topic, data.get(topic_path(topic), "").encode())
    except KafkaException as error:
        yield str(error)
        return
    if assignment.replicas != wanted:
        yield f"{topic} has the replicas {assignment.replicas}, and should have {dict(wanted)}"
    if assignment.adding_replicas or assignment.removing_replicas:
        yield f"{topic} has replicas that are being added or removed"
    for number, replicas in wanted.items():
        yield from _of_partition(target, topic, number, replicas, data)


def _of_partition(
    target: Target, topic: str, number: int, replicas: tuple[int, ...], data: Mapping[str, str]
) -> Iterator[str]:
    path = partition_state_path(topic, number)
    if path not in data:
        yield f"{topic}-{number} has no state"
        return
    state = read_state(topic, number, data[path].encode())
    live = {each for each in replicas if each in target.brokers}
    if set(state.isr) != live:
        yield f"{topic}-{number} has the ISR {list(state.isr)}, and {sorted(live)} should be in sync"
    if topic in target.preferred and state.leader != replicas[0]:
        yield f"{topic}-{number} is led by {state.leader}, and should be by {replicas[0]}"
    elif state.leader not in live:
        yield f"{topic}-{number} is led by {state.leader}, which is none of {sorted(live)}"


def _children(look: Event) -> dict[str, tuple[str, ...]]:
    found = look.of("children")
    assert isinstance(found, dict)
    return found


def _data(look: Event) -> dict[str, str]:
    found = look.of("data")
    assert isinstance(found, dict)
    return found


# -- metadata -------------------------------------------------------------------------------------


def _of_metadata(target: Target, look: Event) -> Iterator[str]:
    told, data = look.of("metadata"), _data(look)
    assert isinstance(told, dict)
    for broker in target.brokers:
        if str(broker) not in told:
            yield f"b{broker} tells nothing"
            continue
        its = told[str(broker)]
        if sorted(its["brokers"]) != sorted(target.brokers):
            yield f"b{broker} tells clients of the brokers {its['brokers']}"
        if sorted(its["topics"]) != sorted(target.topics):
            yield f"b{broker} tells clients of the topics {sorted(its['topics'])}"
            continue
        for topic, wanted in target.topics.items():
            partitions = its["topics"][topic]
            for number, replicas in wanted.items():
                yield from _told_of(f"b{broker}", topic, number, replicas, partitions.get(str(number)), data)
            more = sorted(set(map(int, partitions)) - set(wanted))
            if more:
                yield f"b{broker} tells clients of the partitions {more} of {topic}"


def _told_of(
    broker: str, topic: str, number: int, replicas: tuple[int, ...], told: object, data: Mapping[str, str]
) -> Iterator[str]:
    if not isinstance(told, list | tuple):
        yield f"{broker} does not tell clients of {topic}-{number}"
        return
    leader, its_replicas, isr = int(str(told[0])), numbers_in(told[1]), numbers_in(told[2])
    path = partition_state_path(topic, number)
    if path in data:
        state = read_state(topic, number, data[path].encode())
        if (leader, set(isr)) != (state.leader, set(state.isr)):
            yield (
                f"{broker} tells clients that {leader} leads {topic}-{number} with the ISR {list(isr)}, and ZooKeeper "
                f"has {state.leader} and {list(state.isr)}"
            )
    if its_replicas != replicas:
        yield f"{broker} tells clients of the replicas {list(its_replicas)} of {topic}-{number}"


# -- on the way -----------------------------------------------------------------------------------

#: What went wrong, and the events that show it.
_Wrong = tuple[str, Event, Event]


def _halted_us(history: History, asked: Event) -> float:
    """When the controller that was asked halted; infinite if it did not."""
    halts = [each for each in events_of(history, REPORTED) if each.of("event") == _HALTS and each.at_us >= asked.at_us]
    return min((each.at_us for each in halts if each.actor == asked.of("target")), default=math.inf)


def _left_to_others(history: History, asked: Event, target: Target) -> Iterator[_Wrong]:
    """The kill of the controller that was asked, if it had the time to do its duty, and had not."""
    kills = [each for each in faults(history) if each.began.of("fault") == KILL and order(each.began) > order(asked)]
    kill = next((each.began for each in kills if each.began.of("target") == asked.of("target")), None)
    if kill is None or kill.at_us - asked.at_us < DONE_WITHIN_US or _halted_us(history, asked) <= kill.at_us:
        return
    if not any(_is_done(target, *seen) for seen in _seen_between(history, asked, kill)):
        lived = seconds(kill.at_us - asked.at_us)
        yield f"{asked.of('target')} had {lived} for it, and was killed before it was done", asked, kill


def _seen_between(history: History, asked: Event, end: Event) -> Iterator[tuple[Event, dict[str, Event]]]:
    """Each look, with the folders that were listed after it, and before the next one."""
    look, folders = None, dict[str, Event]()
    for event in events_of(history, Kind.OK, FOLDERS_READ):
        if not order(asked) < order(event) < order(end):
            continue
        if event.kind is FOLDERS_READ:
            folders[str(event.member)] = event
        elif event.of("op") == LOOK:
            if look is not None:
                yield look, folders
            look, folders = event, {}
    if look is not None:
        yield look, folders


def _is_done(target: Target, look: Event, folders: Mapping[str, Event]) -> bool:
    listed = {f"b{broker}" for broker in target.brokers} <= set(folders)
    return listed and next(differences(target, look, folders), None) is None


def _led_to_the_end(history: History, asked: Event, target: Target) -> Iterator[_Wrong]:
    """The end of the registration of a broker that was to shut down, and led."""
    if asked.of("duty") != _SHUTDOWN:
        return
    halted_us = _halted_us(history, asked)
    leaders: dict[str, Event] = {}
    for event in events_of(history, Kind.CREATED, Kind.CHANGED, Kind.DELETED):
        path = str(event.of("path"))
        if event.kind is not Kind.DELETED and partition_of_state(path) is not None:
            leaders[path] = event
        number = path.removeprefix(f"{BROKER_IDS}/")
        went = event.kind is Kind.DELETED and number != path and event.at_us >= asked.at_us - TOLERANCE_US
        if (
            not went
            or not before_closing(history, event)
            or int(number) in target.brokers
            or halted_us <= event.at_us + TOLERANCE_US
        ):
            continue
        for state_path, state in leaders.items():
            topic, partition = partition_of_state(state_path) or ("", -1)
            if read_state(topic, partition, str(state.of("data")).encode()).leader == int(number):
                yield f"b{number} went, and was the leader of {topic}-{partition}", state, event


# -- once -----------------------------------------------------------------------------------------


def _repeated(history: History, asked: Event, target: Target) -> Iterator[_Wrong]:
    """What was done twice, or undone, since the duty was asked for: the first write and the one that repeats it."""
    topic = target.topic
    if topic is None:
        return
    wanted = target.topics.get(topic)
    done: Event | None = None
    seen: dict[tuple[Kind, str], Event] = {}
    for event in events_of(history, Kind.CREATED, Kind.CHANGED, Kind.DELETED):
        path = str(event.of("path"))
        if event.at_us < asked.at_us - TOLERANCE_US or not f"{path}/".startswith(f"{topic_path(topic)}/"):
            continue
        if path == topic_path(topic):
            reached = _replicas_in(topic, event) == wanted
            if reached and done is None:
                done = event
            elif not reached and done is not None:
                yield f"{topic} was as wanted, and was changed again", done, event
        state = partition_of_state(path)
        if event.kind is Kind.DELETED and state is not None and state[1] in (wanted or ()):
            yield f"the state of {topic}-{state[1]} was deleted, and the partition is to stay", asked, event
        if event.kind is not Kind.CHANGED:
            before = seen.setdefault((event.kind, path), event)
            if before is not event:
                yield f"{path} was {event.kind.value} twice", before, event


def _replicas_in(topic: str, event: Event) -> Mapping[int, tuple[int, ...]] | None:
    """What a write of a topic's znode says; None if it deletes it."""
    if event.kind is Kind.DELETED:
        return None
    return read_assignment(topic, str(event.of("data")).encode()).replicas


CHECK = Check(
    name="duty_target",
    compares=(Layer.REGISTRY, Layer.BELIEF, Layer.EFFECT),
    meaning="A controller's duty was not done, or was done twice.",
    together="The duty was asked for and nothing stands in its way any more, and the cluster is not as it should be.",
    plants=(
        Planted("forgets-deletions", "duties", settings={"duty": "delete-topic", "kill_at": "9"}),
        Planted("forgets-new-partitions", "duties", settings={"duty": "add-partitions", "kill_at": "2"}),
    ),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=duties_asked,
)
