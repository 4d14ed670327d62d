"""The last replica standing (KIP-966): it loses its power, and the others cut off what they have.

The controller has no replica. The followers die, and the controller takes them out of the ISR; or they are cut off
from the leader, which drops them. The leader is the last of the ISR. It loses its power, with it what it had
acknowledged and not synced, and comes back. The followers have all of that, but they are not in the ISR: the leader
leads again, and they cut off what it lacks. With the cure, `flush_messages=1`, it has synced what it acknowledged. In
the control nothing fails.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.link import cut_link
from rebalance_lab.faults.power_loss import lose_power, perhaps_lose_power
from rebalance_lab.faults.restart import restart
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    BrokerNode,
    ProducerOptions,
    ReplicationLab,
    spares_a_controller,
)
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario, only_ours

DIE, CUT_OFF = "die", "cut-off"


async def last_replica_standing(lab: ReplicationLab) -> None:
    plan = lab.plan
    await lab.assemble(spare_controller=True)
    lab.start("c1", ProducerOptions())
    lab.phase("control" if plan.control else "one replica is left")
    if not plan.control:
        await lab.written(plan.number("messages") // 2)
        await _fail(lab)
    await lab.conclude()


async def _fail(lab: ReplicationLab) -> None:
    leader, followers = await lab.leader_and_followers()
    async with lab.tasks.scope("troubles of followers") as scope:
        for each in followers:
            scope.spawn(_suffer(lab, leader, each), f"trouble of {each.actor}")
        await lab.in_sync(1)
        await _lose_and_return(lab, leader)
    for each in followers:
        if each.state.gone:
            await restart(lab, each)


async def _suffer(lab: ReplicationLab, leader: BrokerNode, follower: BrokerNode) -> None:
    if lab.plan.text("followers") == DIE:
        await kill(lab, follower)
    else:
        await cut_link(lab, leader, follower, lab.plan.number("cut_ms"))


async def _lose_and_return(lab: ReplicationLab, leader: BrokerNode) -> None:
    """The leader dies, loses power, and is back as the leader."""
    await kill(lab, leader)
    if lab.plan.number("flush_messages") == 1:
        await perhaps_lose_power(lab, leader)
    else:
        await lose_power(lab, leader, everything=True)
    await lab.unregistered(leader)
    await restart(lab, leader)
    await lab.led()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """What the leader has not synced is lost, though the followers have it."""
    forgets = plan.number("flush_messages") != 1 and not plan.control
    lost = Outcome.VIOLATED if forgets else Outcome.CLEAN
    return usual_of(plan, lost_write=lost, leader_completeness=lost)


def demands(plan: Plan) -> None:
    brokers, min_isr = plan.number("brokers"), plan.number("min_isr")
    spares_a_controller(plan)
    if not 2 <= min_isr < brokers:
        raise PlanError(
            f"min_isr={min_isr}: must be from 2 to {brokers - 1}, the number of replicas, because a leader that is "
            "alone must not acknowledge anything"
        )
    dropped_ms = plan.number("lag_ms") * 3 // 2
    if plan.text("followers") == CUT_OFF and plan.number("cut_ms") <= dropped_ms:
        raise PlanError(
            f"cut_ms={plan.number('cut_ms')}: must be above {dropped_ms}, so that the leader drops its followers"
        )


SCENARIO = Scenario(
    name="last-replica-standing",
    subject=REPLICATED,
    summary="the last of the ISR loses its power; the others have what it lacks",
    parameters=(
        Parameter("followers", DIE, "", "what happens to the followers", choices=(DIE, CUT_OFF)),
        Parameter("cut_ms", 6000, "ms", "how long cuts last", 1, maximum=3_600_000),
        *COMMON,
    ),
    script=last_replica_standing,
    expects=expects,
    demands=demands,
    real=only_ours("it needs a loss of power, and a broker of Kafka does not record what it has synced"),
)
