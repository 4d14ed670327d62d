"""The next leader: is it the first of the ISR list, or the first of the assignment that is in sync (claims E5a, E5b)?

The assignment is 1, 2, 3. Broker 2 dies and comes back, so that it stands last in the ISR, after 3. Then the leader,
broker 1, dies: the ISR is 3, 2 and the assignment says 2, 3. In
the control nothing fails.
"""

from __future__ import annotations

from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.restart import restart
from rebalance_lab.subjects.replication.subject import COMMON, REPLICATED, BrokerNode, ProducerOptions, ReplicationLab
from rebalance_lab.trials.plan import Plan, PlanError
from rebalance_lab.trials.scenario import Scenario, usual


async def isr_election(lab: ReplicationLab) -> None:
    plan = lab.plan
    messages = plan.number("messages")
    await lab.assemble()
    lab.start("c1", ProducerOptions())
    lab.phase("control" if plan.control else "elections")
    if not plan.control:
        await lab.written(messages // 3)
        await _bounce(lab, lab.brokers[1])
        await lab.written(2 * messages // 3)
        await _bounce(lab, lab.brokers[0])
    await lab.conclude()


async def _bounce(lab: ReplicationLab, broker: BrokerNode) -> None:
    """Kill a broker, wait until another leads, and start it again."""
    await kill(lab, broker)
    await lab.unregistered(broker)
    await lab.in_sync(lab.plan.number("brokers") - 1)
    await restart(lab, broker)
    await lab.in_sync()


def expects(_plan: Plan) -> dict[str, Outcome | None]:
    """Kafka elects in the order of the assignment, so the statement about the ISR's order fails."""
    return usual(REPLICATION)


def demands(plan: Plan) -> None:
    if plan.number("brokers") < 3:
        raise PlanError(
            f"brokers={plan.number('brokers')}: must be at least 3, so that the ISR has an order of its own"
        )


SCENARIO = Scenario(
    name="isr-election",
    subject=REPLICATED,
    summary="the leader dies when the order of the ISR and that of the assignment differ",
    parameters=tuple(COMMON),
    script=isr_election,
    expects=expects,
    claims=("E5a",),
    demands=demands,
)
