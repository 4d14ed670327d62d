"""Duty: the controller is asked to do something. The proof is that it was asked.

The event of its begin has the duty's name and its target (`history.duties`). Here is also how each duty is asked for,
what there is before it, and what it is to bring about.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum

from rebalance_lab.checks.duty_target import differences
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.leave import leave
from rebalance_lab.faults.restart import restart
from rebalance_lab.history.duties import DUTY, Target
from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.kernel import RandomStream
from rebalance_lab.subjects.broker_log.subject import TOPIC
from rebalance_lab.subjects.replication.subject import BrokerNode, ReplicationLab, number_of
from rebalance_lab.trials.lab import AnyLab, AnyNode, Injection
from rebalance_lab.trials.stage import GaveUp
from rebalance_lab.wire.cluster import assignment_payload, preferred_election_payload, reassignment_payload
from rebalance_lab.wire.paths import DELETE_TOPICS, PREFERRED_ELECTION, REASSIGNMENT, topic_path
from rebalance_lab.world.errors import NodeExists

DUTY_ASKED = FaultKind(
    name=DUTY,
    noun="duty",
    suffers="has a duty",
    many="have duties",
    band="has a duty",
    begins="has a duty:",
    alone="A controller is asked to do things.",
    momentary=True,
    spares_connections=True,
    change=True,
    in_controls=True,
)


async def ask_duty(
    lab: AnyLab, controller: AnyNode, duty: str, target: Target, ask: Callable[[], Awaitable[object]]
) -> None:
    """Ask for a duty. `ask`: how."""
    fault = Injection(lab, DUTY_ASKED, controller, duty=duty, wanted=target.detail())
    await ask()
    fault.bit(f"{duty} was asked for")
    fault.ended()


#: The topic that most duties are about.
SUBJECT = "t2"

#: What its setting `retention.ms` is: longer than any trial.
RETENTION_MS = "86400000"

#: How long the cluster may take to become what a duty wants, once everything is healed.
SETTLE_MS = 20_000

#: How long a tool waits that was refused; how often an inspector looks for what a controller has begun.
REFUSED_MS, LOOKS = 500, 100


class Duty(StrEnum):
    """What the controller is to do."""

    CREATE = "create-topic"
    DELETE = "delete-topic"
    GROW = "add-partitions"
    PREFERRED = "preferred-election"
    JOINS = "broker-joins"
    SHUTDOWN = "controlled-shutdown"
    FAILS = "broker-fails"
    REASSIGN = "reassign-partitions"


#: Those in which no broker goes.
PEACEFUL = (Duty.CREATE, Duty.DELETE, Duty.GROW, Duty.REASSIGN)


class Meanwhile(StrEnum):
    """What else happens while the controller carries out a duty.

    - NOTHING.
    - REWRITTEN_EARLY, REWRITTEN_LATE: a tool writes another request over that for a reassignment, before the controller
      writes for the first time, or before it deletes the request.
    - DEAD_TARGET: before, a tool has asked for a replica on a dead broker. It asks for the reassignment as soon as that
      request is gone.
    - GROWTH: a topic that is being deleted grows while the deletion waits for a dead broker; then the controller dies.
    """

    NOTHING = "nothing"
    REWRITTEN_EARLY = "rewritten-early"
    REWRITTEN_LATE = "rewritten-late"
    DEAD_TARGET = "dead-target"
    GROWTH = "growth"


@dataclass(frozen=True, slots=True)
class Asked:
    """`ask`: asks for the duty. `before`, `target`: how the cluster is before it, and is to be after it. `gone`: a
    broker that the duty takes away; it is started again in the end. `held`: the operation before which the controller
    waits for the end of the halt; "" if it does not."""

    ask: Callable[[], Awaitable[object]]
    before: Target
    target: Target
    gone: BrokerNode | None = None
    held: str = ""


async def begun(lab: ReplicationLab, asked: Asked) -> None:
    """Wait until the cluster is as the duty finds it. Raises GaveUp: what comes of a duty says nothing otherwise."""
    if not await reached(lab, asked.before, SETTLE_MS):
        raise GaveUp(f"the cluster was not as the duty should find it within {SETTLE_MS} ms")


async def reached(lab: ReplicationLab, target: Target, limit_ms: int) -> bool:
    """Look until the cluster is as the duty wants it, or for so long. Returns whether it is; if it has looked once, the
    controller has not halted."""
    give_up_us = lab.tasks.now_us() + limit_ms * 1000
    while True:
        look = await lab.look()
        folders = {each.actor: lab.list_folders(each) for each in lab.brokers}
        if not any(True for _ in differences(target, look, folders)):
            return True
        if lab.tasks.now_us() >= give_up_us:
            return False


# -- each duty ------------------------------------------------------------------------------------

Partitions = Mapping[int, tuple[int, ...]]


def _ids(lab: ReplicationLab, *, without: BrokerNode | None = None) -> tuple[int, ...]:
    return tuple(number_of(each.actor) for each in lab.brokers if each is not without)


def _target(lab: ReplicationLab, partitions: Partitions | None) -> Target:
    """All brokers, the client's topic, and that of the duty with these partitions if it is to exist."""
    topics: dict[str, Partitions] = {TOPIC: {0: _ids(lab)}}
    if partitions is None:
        return Target(_ids(lab), topics, SUBJECT)
    topics[SUBJECT] = partitions
    return Target(_ids(lab), topics, SUBJECT, settings={SUBJECT: {"retention.ms": RETENTION_MS}})


async def _created(lab: ReplicationLab, partitions: Partitions) -> None:
    await lab.create(SUBJECT, partitions, retention_ms=RETENTION_MS)


def _rotated(replicas: tuple[int, ...], count: int) -> Partitions:
    """So many partitions with these replicas, each led by the next of them."""
    return {each: (*replicas[each % len(replicas) :], *replicas[: each % len(replicas)]) for each in range(count)}


async def _topic(lab: ReplicationLab, count: int = 2) -> Partitions:
    """Create the topic of the duty with so many partitions, and wait until all their replicas are in sync."""
    partitions = _rotated(_ids(lab), count)
    await _created(lab, partitions)
    await _in_sync(lab, partitions)
    return partitions


async def _in_sync(lab: ReplicationLab, partitions: Partitions) -> None:
    def in_sync() -> bool:
        states = {each: lab.state_of(SUBJECT, each) for each in partitions}
        return all(state is not None and set(state.isr) == set(partitions[each]) for each, state in states.items())

    await lab.until(in_sync, f"the replicas of {SUBJECT} in sync")


async def _create(lab: ReplicationLab, _other: BrokerNode) -> Asked:
    partitions = _rotated(_ids(lab), 2)
    return Asked(lambda: _created(lab, partitions), _target(lab, None), _target(lab, partitions))


async def _delete(lab: ReplicationLab, _other: BrokerNode) -> Asked:
    partitions = await _topic(lab)
    request = f"{DELETE_TOPICS}/{SUBJECT}"
    return Asked(lambda: lab.create_znode(request), _target(lab, partitions), _target(lab, None))


async def _grow(lab: ReplicationLab, _other: BrokerNode) -> Asked:
    before, after = await _topic(lab, 1), _rotated(_ids(lab), 3)
    payload = assignment_payload(after)
    return Asked(lambda: lab.write_znode(topic_path(SUBJECT), payload), _target(lab, before), _target(lab, after))


async def _preferred(lab: ReplicationLab, other: BrokerNode) -> Asked:
    """Another broker leads what `other` should: it went, and came back."""
    replicas = (number_of(other.actor), *_ids(lab, without=other))
    partitions: Partitions = dict.fromkeys(range(2), replicas)
    await _created(lab, partitions)
    await _in_sync(lab, partitions)
    await leave(lab, other)
    await lab.until(lambda: _led_by_others(lab, partitions), f"other leaders of {SUBJECT}")
    await restart(lab, other)
    before = _target(lab, partitions)
    payload = preferred_election_payload([(SUBJECT, each) for each in partitions])
    return Asked(lambda: lab.create_znode(PREFERRED_ELECTION, payload), before, replace(before, preferred=(SUBJECT,)))


async def _reassign(lab: ReplicationLab, _other: BrokerNode) -> Asked:
    """Each of two partitions moves on by one broker: its leader goes, and its follower is to lead. The seed draws which
    of the brokers, and so whether that of the controller loses a replica."""
    ids = _ids(lab)
    at = RandomStream(lab.plan.seed, "duties", "moved").below(len(ids))
    first, second, third = (*ids[at:], *ids[:at])
    before: Partitions = {0: (first, second), 1: (second, third)}
    after: Partitions = {0: (second, third), 1: (third, first)}
    await _created(lab, before)
    await _in_sync(lab, before)
    payload = _request(after)
    return Asked(lambda: lab.create_znode(REASSIGNMENT, payload), _target(lab, before), _target(lab, after))


async def _rewritten(lab: ReplicationLab, held: str) -> Asked:
    """The request is for one partition, and the one that is written over it for another as well."""
    first, second, third = _ids(lab)
    before: Partitions = {0: (first, second), 1: (second, third)}
    after: Partitions = {0: (second, third), 1: (third, first)}
    await _created(lab, before)
    await _in_sync(lab, before)

    async def ask() -> None:
        await lab.create_znode(REASSIGNMENT, _request({0: after[0]}))
        await lab.halts()
        await lab.write_znode(REASSIGNMENT, _request(after))
        await lab.forget_halt()

    return Asked(ask, _target(lab, before), _target(lab, after), held=held)


async def _rewritten_early(lab: ReplicationLab, _other: BrokerNode) -> Asked:
    return await _rewritten(lab, f"set {topic_path(SUBJECT)},")


async def _rewritten_late(lab: ReplicationLab, _other: BrokerNode) -> Asked:
    return await _rewritten(lab, f"delete {REASSIGNMENT},")


async def _dead_target(lab: ReplicationLab, other: BrokerNode) -> Asked:
    """A partition is to get a replica on a dead broker. The duty is to take a replica of another partition away."""
    here = _ids(lab, without=other)
    before: Partitions = {0: here, 1: here}
    await _created(lab, before)
    await _in_sync(lab, before)
    await kill(lab, other)
    await lab.unregistered(other)

    async def ask() -> None:
        await lab.create_znode(REASSIGNMENT, _request({0: (here[1], number_of(other.actor))}))
        await _accepted(lab, _request({1: here[1:]}))

    brokers = replace(_target(lab, before), brokers=here)
    after: Partitions = {0: here, 1: here[1:]}
    return Asked(ask, brokers, replace(_target(lab, after), brokers=here), other)


async def _accepted(lab: ReplicationLab, request: bytes) -> None:
    """Ask for a reassignment again and again until no other request is there, or for SETTLE_MS.
    `ReassignPartitionsCommand` would give up at once."""
    for _ in range(SETTLE_MS // REFUSED_MS):
        with suppress(NodeExists):
            await lab.create_znode(REASSIGNMENT, request)
            return
        await lab.sleep_ms(REFUSED_MS)


async def _growth(lab: ReplicationLab, other: BrokerNode) -> Asked:
    """The controller has begun to delete the topic once brokers tell clients no more of it."""
    partitions = await _topic(lab)
    await kill(lab, other)
    await lab.unregistered(other)
    controller = await lab.controlled()

    async def ask() -> None:
        await lab.create_znode(f"{DELETE_TOPICS}/{SUBJECT}")
        await _forgotten(lab)
        await lab.write_znode(topic_path(SUBJECT), assignment_payload(_rotated(_ids(lab), 3)))
        await _looked(lab)
        await kill(lab, controller)
        await lab.controlled(not_by=controller)
        await restart(lab, controller)
        await restart(lab, other)

    before = replace(_target(lab, partitions), brokers=_ids(lab, without=other))
    return Asked(ask, before, _target(lab, None))


async def _forgotten(lab: ReplicationLab) -> None:
    """Wait until no broker tells clients of the topic. Raises GaveUp after LOOKS."""
    for _ in range(LOOKS):
        told = (await lab.look()).of("metadata")
        assert isinstance(told, dict)
        if not any(SUBJECT in its["topics"] for its in told.values()):
            return
    raise GaveUp(f"brokers still tell clients of topic {SUBJECT} after {LOOKS} looks: its deletion has not begun")


async def _looked(lab: ReplicationLab) -> None:
    """Give the controller time to hear of a change: two looks."""
    await lab.look()
    await lab.look()


def _request(targets: Partitions) -> bytes:
    return reassignment_payload([((SUBJECT, each), target) for each, target in targets.items()])


def _led_by_others(lab: ReplicationLab, partitions: Partitions) -> bool:
    states = {each: lab.state_of(SUBJECT, each) for each in partitions}
    return all(state is not None and state.leader not in (partitions[each][0], -1) for each, state in states.items())


async def _joins(lab: ReplicationLab, other: BrokerNode) -> Asked:
    partitions = await _topic(lab)
    await leave(lab, other)
    target = _target(lab, partitions)
    return Asked(lambda: restart(lab, other), replace(target, brokers=_ids(lab, without=other)), target)


async def _shutdown(lab: ReplicationLab, other: BrokerNode) -> Asked:
    before = _target(lab, await _topic(lab))
    return Asked(lambda: leave(lab, other), before, replace(before, brokers=_ids(lab, without=other)), other)


async def _fails(lab: ReplicationLab, other: BrokerNode) -> Asked:
    before = _target(lab, await _topic(lab))
    return Asked(lambda: kill(lab, other), before, replace(before, brokers=_ids(lab, without=other)), other)


#: Prepares a duty: what there must be before is there when it returns. Given is a broker that does not control.
Prepare = Callable[[ReplicationLab, BrokerNode], Awaitable[Asked]]

#: What else happens -> the duty during which it does, and what prepares both.
DISTURBED: Mapping[Meanwhile, tuple[Duty, Prepare]] = {
    Meanwhile.REWRITTEN_EARLY: (Duty.REASSIGN, _rewritten_early),
    Meanwhile.REWRITTEN_LATE: (Duty.REASSIGN, _rewritten_late),
    Meanwhile.DEAD_TARGET: (Duty.REASSIGN, _dead_target),
    Meanwhile.GROWTH: (Duty.DELETE, _growth),
}

#: duty -> prepares it, if nothing else happens.
PREPARED: Mapping[Duty, Prepare] = {
    Duty.CREATE: _create,
    Duty.DELETE: _delete,
    Duty.GROW: _grow,
    Duty.PREFERRED: _preferred,
    Duty.REASSIGN: _reassign,
    Duty.JOINS: _joins,
    Duty.SHUTDOWN: _shutdown,
    Duty.FAILS: _fails,
}
