"""An order for a former life of a broker arrives in its next one (KAFKA-7235, KIP-380).

The controller has no replica. It sends a follower an order over a link that is slow for a moment. Before the order
arrives the follower's session expires, and it registers again: with that its next life begins. The controller sees it,
and tells it everything anew over another connection, which is faster. Then the late order arrives. It names the
controller that reigns. `order` says which one it is:

- `deletion`: to delete a replica of a topic, which has been deleted and created anew meanwhile. A broker that obeys
  deletes its replica of the new topic, and nobody gives it another one.
- `metadata`: the leader of a partition, which has another one by then. A broker that obeys tells clients of the old
  leader, and nobody corrects it.

Orders name the registration for which they are meant. The cure, `fences_lives` (2.2): a broker refuses those for a
former one. In the control no session expires and no link is slow.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum

from rebalance_lab.broker.halting import Order
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.expire import expire
from rebalance_lab.faults.leave import leave
from rebalance_lab.faults.link import slow_link
from rebalance_lab.faults.restart import restart
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    BrokerNode,
    ProducerOptions,
    ReplicationLab,
    has_three_replicas,
    number_of,
    with_default,
)
from rebalance_lab.trials.lab import TrialError
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, only_ours
from rebalance_lab.wire.paths import DELETE_TOPICS

#: The topic that the late order is about.
OTHER = "t2"

#: How long a controller may take to send what it has held back. Nobody sees what is under way; that the link has slowed
#: it proves that it was sent.
SENT_MS = 1000


class LateOrder(StrEnum):
    """What arrives too late."""

    DELETION = "deletion"
    METADATA = "metadata"


async def former_life(lab: ReplicationLab) -> None:
    plan = lab.plan
    await lab.assemble(spare_controller=True, lab_halts=True, lab_fences_lives=plan.switch("fences_lives"))
    lab.start("c1", ProducerOptions())
    await lab.written(1)
    lab.phase("control" if plan.control else "an order is under way")
    _, followers = await lab.leader_and_followers()
    await _ORDERS[LateOrder(plan.text("order"))](lab, followers[-1])
    await lab.conclude()


async def _deletion(lab: ReplicationLab, victim: BrokerNode) -> None:
    replicas = [number_of(each.actor) for each in lab.isr]
    await lab.created_in_sync(OTHER, replicas)

    async def asked() -> None:
        await lab.create_znode(f"{DELETE_TOPICS}/{OTHER}")

    async def again() -> None:
        await lab.deleted(OTHER)
        await lab.created_in_sync(OTHER, replicas)

    if lab.plan.control:
        await asked()
        await again()
        return
    await _arrives_late(lab, victim, "StopReplica", asked, again)


async def _metadata(lab: ReplicationLab, victim: BrokerNode) -> None:
    """The partition has no replica on the broker, so it gets no other order."""
    other, (leader, *_) = await lab.leader_and_followers()
    replicas = [number_of(leader.actor), number_of(other.actor)]

    async def asked() -> None:
        await lab.create(OTHER, {0: replicas})

    async def again() -> None:
        await leave(lab, leader)
        await lab.left(leader)
        await restart(lab, leader)
        await lab.all_in_sync(OTHER, replicas)

    if lab.plan.control:
        await asked()
        await lab.all_in_sync(OTHER, replicas)
        return
    await _arrives_late(lab, victim, "UpdateMetadata", asked, again)


async def _arrives_late(
    lab: ReplicationLab,
    victim: BrokerNode,
    kind: str,
    asked: Callable[[], Awaitable[None]],
    meanwhile: Callable[[], Awaitable[None]],
) -> None:
    """An order of this kind, which follows from what is `asked`, arrives in the broker's next life. `meanwhile`: what
    happens in that life before it arrives."""
    controller, late_ms = await lab.controlled(), lab.plan.number("late_ms")
    await lab.halt(Order(number_of(controller.actor), before=f"{kind} to broker {number_of(victim.actor)}", holds=True))
    await asked()
    await lab.halts()
    sent_us = lab.tasks.now_us()
    async with lab.tasks.scope("the slow link") as scope:
        slow, under_way = lab.tasks.flag("the link is slow"), lab.tasks.flag("the order is under way")
        link = slow_link(lab, controller, victim, under_way, there_ms=late_ms, back_ms=0, in_place=slow)
        scope.spawn(link, "the controller and the broker")
        await slow.wait()
        await lab.forget_halt()
        await lab.sleep_ms(SENT_MS)
        under_way.raise_()
    await expire(lab, victim)
    await lab.registered_again([victim])
    lab.phase("the next life")
    await meanwhile()
    left_ms = late_ms - (lab.tasks.now_us() - sent_us) // 1000
    if left_ms <= 0:
        raise TrialError(f"late_ms={late_ms} is too short here: the order came before the next life was ready for it")
    await lab.sleep_ms(left_ms + SENT_MS + lab.plan.number("settle_ms"))


_ORDERS: Mapping[LateOrder, Callable[[ReplicationLab, BrokerNode], Awaitable[None]]] = {
    LateOrder.DELETION: _deletion,
    LateOrder.METADATA: _metadata,
}


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """What a broker obeys that does not fence its lives. Nobody repairs it: the state znode counts on the replica that
    it has deleted, and its metadata stay as they are until there are others."""
    if plan.control or plan.switch("fences_lives"):
        return usual_of(plan)
    harm = "stale_role" if LateOrder(plan.text("order")) is LateOrder.DELETION else "unequal_views"
    return usual_of(plan, stale_order=Outcome.VIOLATED, **{harm: Outcome.VIOLATED})


SCENARIO = Scenario(
    name="former-life",
    subject=REPLICATED,
    summary="an order for a former life of a broker arrives in its next one",
    parameters=(
        Parameter("order", LateOrder.DELETION.value, "", "what arrives too late", choices=tuple(LateOrder)),
        Parameter("fences_lives", False, "", "the cure: brokers refuse orders for a former life of theirs"),
        Parameter("late_ms", 10_000, "ms", "how long the order is under way", 5000, maximum=3_600_000),
        Parameter("settle_ms", 3000, "ms", "how long the cluster has after that", 0, maximum=3_600_000),
        *with_default(COMMON, brokers=4, messages=60, pause_us=20_000, session_timeout_ms=18_000, tick_ms=2000),
    ),
    script=former_life,
    expects=expects,
    demands=has_three_replicas,
    real=only_ours("it slows links, which the lab can do only between its own brokers"),
)
