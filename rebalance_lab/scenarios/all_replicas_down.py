"""All replicas down: the followers die, the leader writes on alone and dies too, and a follower is the first to return.

It lacks what the leader wrote alone. Either the partition waits for the leader, which is the last of the ISR, and is
not available until then (`unavailable_partition`); or the first that returns leads at once, and what it lacks is lost
(claim E7). The parameter `unclean` decides. In the end all brokers are back, the client reads everything, and every
replica is read. In the control the brokers stay alive.
"""

from __future__ import annotations

from rebalance_lab.checks.leaderless_partition import bound_us
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.restart import restart
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    ProducerOptions,
    ReplicationLab,
    last_writes_alone,
    with_default,
)
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario


async def all_replicas_down(lab: ReplicationLab) -> None:
    plan = lab.plan
    messages = plan.number("messages")
    await lab.assemble()
    lab.start("c1", ProducerOptions())
    await lab.written(messages // 4)
    lab.phase("control" if plan.control else "all replicas down")
    if not plan.control:
        await _all_down(lab)
    await lab.conclude()


async def _all_down(lab: ReplicationLab) -> None:
    leader = lab.leader
    assert leader is not None, "the partition has had a leader since the topic was created"
    followers = [each for each in lab.brokers if each is not leader]
    for each in followers:
        await kill(lab, each)
    await lab.in_sync(1)
    await lab.written(lab.acknowledged + lab.plan.number("alone"))
    await kill(lab, leader)
    await lab.leaderless()
    await restart(lab, followers[0])
    await lab.sleep_ms(lab.plan.number("wait_ms"))
    for each in (*followers[1:], leader):
        await restart(lab, each)


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """The messages that the leader wrote alone are lost exactly if the first that returns may lead. Otherwise the
    partition waits, and for longer than an election takes if the others stay away for so long."""
    waits = not plan.switch("unclean") and not plan.control
    lost = Outcome.CLEAN if waits or plan.control else Outcome.VIOLATED
    long = plan.number("wait_ms") * 1000 > bound_us(plan.world, plan.parameters)
    unavailable = Outcome.CLEAN if not waits else Outcome.VIOLATED if long else None
    return usual_of(plan, lost_write=lost, leader_completeness=lost, unavailable_partition=unavailable)


def demands(plan: Plan) -> None:
    if plan.number("brokers") < 2:
        raise PlanError("brokers=1: must be at least 2, because followers die before the leader")
    last_writes_alone(plan)


SCENARIO = Scenario(
    name="all-replicas-down",
    subject=REPLICATED,
    summary="all replicas die; wait for the last in sync, or let the first that returns lead",
    parameters=(
        Parameter("alone", 20, "", "records that the leader writes alone before it dies", 1, maximum=1_000_000),
        Parameter("wait_ms", 3000, "ms", "how long after the first broker the others return", 0, maximum=3_600_000),
        *with_default(COMMON, min_isr=1),
    ),
    script=all_replicas_down,
    expects=expects,
    claims=("E7",),
    demands=demands,
)
