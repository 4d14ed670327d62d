"""Two partitions with the same replicas: does ZooKeeper keep one ISR for the topic, or one for each (claim E5c)?

The controller has no replica. The partitions are led by two brokers, and the third follows both. It is cut off from one
of the leaders, and goes on fetching from the other, or it dies (`trouble`) and is away for a while. In the control
nothing fails.
"""

from __future__ import annotations

from rebalance_lab.checks.isr_of_topic import LEAST_US
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.link import cut_link
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

CUT_OFF, DIES = "cut-off", "dies"


async def isr_per_partition(lab: ReplicationLab) -> None:
    plan = lab.plan
    await lab.assemble(spare_controller=True, partitions=2)
    lab.start("c1", ProducerOptions())
    lab.phase("control" if plan.control else plan.text("trouble"))
    if not plan.control:
        await lab.written(plan.number("messages") // 4)
        await _trouble(lab)
    await lab.conclude()


async def _trouble(lab: ReplicationLab) -> None:
    leader, (*_, follower) = await lab.leader_and_followers()  # the first leads the other partition
    away_ms = lab.plan.number("away_ms")
    if lab.plan.text("trouble") == CUT_OFF:
        await cut_link(lab, leader, follower, away_ms)
        return
    await kill(lab, follower)
    await lab.unregistered(follower)
    await lab.sleep_ms(away_ms)
    await restart(lab, follower)


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """A broker that dies leaves both ISRs; one that cannot reach a leader leaves those of its partitions."""
    if plan.control:
        return usual_of(plan)
    differ = plan.text("trouble") == CUT_OFF
    return usual_of(plan, isr_of_topic=Outcome.VIOLATED if differ else Outcome.CLEAN)


def demands(plan: Plan) -> None:
    has_three_replicas(plan)
    lacks_a_replica(plan)
    least_ms = plan.number("lag_ms") * 3 // 2 + LEAST_US // 1000
    if plan.text("trouble") == CUT_OFF and plan.number("away_ms") <= least_ms:
        raise PlanError(
            f"away_ms={plan.number('away_ms')}: must be above {least_ms}, so that the leader drops the follower"
        )


SCENARIO = Scenario(
    name="isr-per-partition",
    subject=REPLICATED,
    summary="a follower of two leaders loses one of them; each partition has an ISR of its own",
    parameters=(
        Parameter("trouble", CUT_OFF, "", "what happens to the follower", choices=(CUT_OFF, DIES)),
        Parameter("away_ms", 6000, "ms", "how long it is cut off, or stays dead", 1, maximum=3_600_000),
        *with_default(COMMON, brokers=4, pause_us=20_000),
    ),
    script=isr_per_partition,
    expects=expects,
    claims=("E5c",),
    demands=demands,
    real=only_ours("it cuts or slows links, which the lab can do only between its own brokers"),
)
