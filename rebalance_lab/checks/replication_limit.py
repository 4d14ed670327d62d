"""A topic cannot have more replicas than there are brokers (claim P1).

Looked at are the topics that a client has asked brokers to create. One with a larger replication factor must be refused
with INVALID_REPLICATION_FACTOR, and leave nothing in the registry, neither an assignment nor settings. One whose factor
is possible must be created with so many replicas, on registered brokers, of as many partitions as were asked for:
otherwise brokers that refuse everything, or half of it, would keep the rule.

Witness: the request, and its answer or the znode that should not be there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rebalance_lab.checks.broker_registrations import registered_brokers
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Check, Finding, Planted, not_violated, violated
from rebalance_lab.history.creations import Creation, creations
from rebalance_lab.history.events import Event, EventId, Kind, Layer
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of
from rebalance_lab.wire.cluster import read_assignment
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.paths import topic_config_path, topic_path

REFUSAL = ErrorCode.INVALID_REPLICATION_FACTOR.name


def judge(history: History) -> Finding:
    """Measures: `count`, topics that break the rule; `refused` and `created`, those that keep it; `undecided`, those
    that no broker has answered, or while brokers came or went."""
    wrong: list[tuple[str, tuple[EventId, ...]]] = []
    measures = dict.fromkeys(("count", "refused", "created", "undecided"), 0)
    for each in creations(history):
        brokers = None if each.answered is None else registered_brokers(history, each.asked, each.answered)
        if each.answered is None or brokers is None:
            measures["undecided"] += 1
            continue
        mistake = _mistake(history, each, each.answered, brokers)
        if mistake is None:
            measures["created" if each.replication <= len(brokers) else "refused"] += 1
        else:
            wrong.append(mistake)
    measures["count"] = len(wrong)
    if wrong:
        return violated(*wrong[0], measures)
    nothing = None if measures["created"] else "no topic had a possible replication factor"
    return not_violated(
        history, f"{measures['refused']} topics with too many replicas were refused", measures, vacuous=nothing
    )


def excessive(history: History) -> list[Creation]:
    """Topics that were to have more replicas than there were brokers."""
    found = []
    for each in creations(history):
        brokers = None if each.answered is None else registered_brokers(history, each.asked, each.answered)
        if brokers is not None and each.replication > len(brokers):
            found.append(each)
    return found


def _mistake(
    history: History, each: Creation, answered: Event, brokers: tuple[int, ...]
) -> tuple[str, tuple[EventId, ...]] | None:
    """What is wrong with the answer to a request, and its witness; None if nothing is."""
    what = f"topic {each.topic}, {each.replication} replicas on {len(brokers)} brokers"
    there = _created(history, topic_path(each.topic))
    if each.replication <= len(brokers):
        if there is None or each.error is not None:
            return f"{what}: was not created ({each.error})", (each.asked.id, answered.id)
        made = _made(each, read_assignment(each.topic, str(there.of("data")).encode()).replicas, brokers)
        return None if made is None else (f"{what}: was created with {made}", (each.asked.id, there.id))
    left = there or _created(history, topic_config_path(each.topic))
    if left is not None:
        return f"{what}: left {left.of('path')} in ZooKeeper", (each.asked.id, left.id)
    if each.error != REFUSAL:
        return f"{what}: was answered {each.error or 'without an error'}", (each.asked.id, answered.id)
    return None


def _made(asked: Creation, replicas: Mapping[int, Sequence[int]], brokers: tuple[int, ...]) -> str | None:
    """What a topic has that was not asked for; None if nothing."""
    if any(len(set(each)) != asked.replication for each in replicas.values()):
        return "another number of replicas"
    if set(replicas) != set(range(asked.partitions)):
        return f"{len(replicas)} partitions instead of {asked.partitions}"
    unknown = {each for its in replicas.values() for each in its} - set(brokers)
    return f"a replica on broker {min(unknown)}, which is not registered" if unknown else None


def _created(history: History, path: str) -> Event | None:
    return next((event for event in events_of(history, Kind.CREATED) if event.of("path") == path), None)


CHECK = Check(
    name="replication_limit",
    compares=(Layer.REGISTRY,),
    meaning="A topic with more replicas than there are brokers was not refused, or left something behind.",
    together="There are too few brokers for so many replicas, and the brokers did something else than to say so.",
    plants=(Planted("makes-fewer-replicas", "placement", settings={}),),
    judge=judge,
    applies_to=(REPLICATION,),
    looks_at=excessive,
)
