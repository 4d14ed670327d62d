"""A controller tells a broker whom to follow before it tells it which brokers are live (KAFKA-4443).

The controller has no replica. A follower shuts down. While the controller is paused, the follower comes back, and an
operator deletes `/controller`, so the next controller finds the follower among the live brokers as it begins. Up to
0.10.1 it sends the leaderships first, and the list of live brokers with what follows. From 0.9 on a follower looks for
the address of its leader in that list. One that has just started knows no broker, so it does not follow, and nobody
tells it again: it stays out of the ISR until it is started anew, its leader changes, or another controller is elected.
In the end it is started anew. The cure, `metadata_first` (0.10.2): who is live comes first. In the control nothing
fails.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.leave import leave
from rebalance_lab.faults.pause import pause
from rebalance_lab.faults.restart import restart
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    BrokerNode,
    ProducerOptions,
    ReplicationLab,
    lacks_a_replica,
    spares_a_controller,
    with_default,
)
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, only_ours


async def early_order(lab: ReplicationLab) -> None:
    plan = lab.plan
    await lab.assemble(
        spare_controller=True,
        first=plan.number("brokers"),  # else the first controller may find some that have just started, too
        lab_orders_before_metadata=not plan.switch("metadata_first"),
        lab_leaders_from_metadata=True,
    )
    lab.start("c1", ProducerOptions())
    await lab.written(plan.number("messages") // 4)
    lab.phase("control" if plan.control else "a follower comes back during a failover")
    if not plan.control:
        _, (follower, *_) = await lab.leader_and_followers()
        await _comes_back(lab, follower)
        await lab.rest("after the failover")
        if follower not in lab.isr:
            lab.phase("an operator starts the follower anew")
            await leave(lab, follower)
            await restart(lab, follower)
    await lab.conclude()


async def _comes_back(lab: ReplicationLab, follower: BrokerNode) -> None:
    """The controller that pauses hears nothing of it, and the next one finds it there."""
    controller = await lab.controlled()
    await leave(lab, follower)
    await lab.until(lambda: follower not in lab.isr, f"an ISR without {follower.actor}")
    async with lab.tasks.scope("failover") as scope:
        stopped, elected = lab.tasks.flag("the controller stands still"), lab.tasks.flag("another one has begun")
        scope.spawn(pause(lab, controller, elected, stopped), "pause of the controller")
        await stopped.wait()
        await restart(lab, follower)
        await lab.registered_again([follower])
        await lab.depose()
        await lab.sleep_ms(
            lab.plan.number("settle_ms")
        )  # before it hears of its successor it would send its own orders
        elected.raise_()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """The follower has no role, though the state znode has one for it."""
    ignored = not plan.switch("metadata_first") and not plan.control
    return usual_of(plan, stale_role=Outcome.VIOLATED if ignored else Outcome.CLEAN)


def demands(plan: Plan) -> None:
    spares_a_controller(plan)
    lacks_a_replica(plan)


SCENARIO = Scenario(
    name="early-order",
    subject=REPLICATED,
    summary="a new controller tells a broker whom to follow, and not yet who is live",
    parameters=(
        Parameter("metadata_first", False, "", "the cure: brokers hear first who is live"),
        Parameter(
            "settle_ms", 3000, "ms", "how long the first controller stays paused after that", 100, maximum=3_600_000
        ),
        *with_default(COMMON, brokers=4, min_isr=1, pause_us=20_000, session_timeout_ms=18_000, tick_ms=2000),
    ),
    script=early_order,
    expects=expects,
    demands=demands,
    real=only_ours("those of 3.9.1 have the cure"),
)
