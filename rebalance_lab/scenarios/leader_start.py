"""A leader starts, and its followers need a while to find it: does it drop them from the ISR meanwhile?

The controller has no replica. The leader dies. Between its two followers, of which one leads then, the link is slow, so
the first fetch comes seconds later; it stays slow until the other one has fetched. A leader that takes followers for
behind until they have fetched from it drops the other one at its next look, though it lacks nothing, and is alone: with
`min.insync.replicas` of 2 it refuses writes. With the cure, `grace`, followers have `replica.lag.time.max.ms` from the
beginning of the leader epoch. In the control nothing fails.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.link import slow_link
from rebalance_lab.faults.restart import restart
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    ProducerOptions,
    ReplicationLab,
    has_three_replicas,
    lacks_a_replica,
    with_default,
)
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario, only_ours


async def leader_start(lab: ReplicationLab) -> None:
    plan = lab.plan
    await lab.assemble(spare_controller=True, lab_leader_grace=plan.switch("grace"))
    lab.start("c1", ProducerOptions())
    lab.phase("control" if plan.control else "another leader starts")
    if not plan.control:
        await lab.written(plan.number("messages") // 4)
        await _start(lab)
    await lab.conclude()


async def _start(lab: ReplicationLab) -> None:
    leader, (heir, other) = await lab.leader_and_followers()
    way_ms = lab.plan.number("way_ms")
    slow, over = lab.tasks.flag("the link is slow"), lab.tasks.flag("the follower has fetched")
    async with lab.tasks.scope("slow link") as scope:
        fault = slow_link(lab, heir, other, over, there_ms=way_ms, back_ms=way_ms, in_place=slow)
        scope.spawn(fault, "the two followers")
        await slow.wait()
        await kill(lab, leader)
        await lab.elected(heir)
        await lab.written(lab.acknowledged + 1)  # which the follower must have fetched
        over.raise_()
        await lab.unregistered(leader)
    await restart(lab, leader)


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Without grace the new leader looks before the first fetch comes, and drops a follower that lacks nothing."""
    if plan.control or plan.switch("grace"):
        return usual_of(plan)
    return usual_of(plan, early_shrink=Outcome.VIOLATED)


def demands(plan: Plan) -> None:
    lag_ms, way_ms = plan.number("lag_ms"), plan.number("way_ms")
    has_three_replicas(plan)
    lacks_a_replica(plan)
    if not lag_ms < 6 * way_ms < 2 * lag_ms:
        raise PlanError(
            f"way_ms={way_ms}: must be between {lag_ms // 6} and {lag_ms // 3}, so that the first fetch, which takes "
            "three ways, comes after the leader's next look and before the follower has lagged for too long"
        )


SCENARIO = Scenario(
    name="leader-start",
    subject=REPLICATED,
    summary="a new leader drops followers that had no time to find it",
    parameters=(
        Parameter("grace", False, "", "the cure: followers have time to find a new leader"),
        Parameter("way_ms", 2000, "ms", "how long messages between the followers take, one way", 1),
        *with_default(COMMON, brokers=4, lag_ms=10_000, pause_us=20_000, request_timeout_ms=10_000),
    ),
    script=leader_start,
    expects=expects,
    demands=demands,
    real=only_ours("it cuts or slows links, which the lab can do only between its own brokers"),
)
