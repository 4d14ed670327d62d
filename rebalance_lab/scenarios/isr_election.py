"""The next leader: is it the first of the ISR list, or the first of the assignment that is in sync (claims E5a, E5b)?

The assignment is 1, 2, 3. Broker 2 goes and comes back, so that it stands last in the ISR, after 3. Then the leader,
broker 1, goes: the ISR is 3, 2 and the assignment says 2, 3. Brokers go by dying, or by a controlled shutdown.

`selection` names the release whose rules the controller follows. After a failure `0.8.0` takes the first of the ISR,
and all others the first of the assignment that is in sync. At a controlled shutdown `0.8.0` and `0.8.2` (which stands
for 0.8.2 and 0.9) take the first of the ISR; `1.0` (0.10.0 to 1.0), `1.1` and `2.1` the first of the assignment that is
in sync (KAFKA-3670). In the control all stay.
"""

from __future__ import annotations

from controller.leader_election import Selection
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.leave import leave
from rebalance_lab.faults.restart import restart
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import COMMON, REPLICATED, BrokerNode, ProducerOptions, ReplicationLab
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario

DIES, SHUTS_DOWN = "dies", "shuts-down"


async def isr_election(lab: ReplicationLab) -> None:
    plan = lab.plan
    messages = plan.number("messages")
    await lab.assemble(
        controlled_shutdown_enable=plan.text("leaves") == SHUTS_DOWN,
        lab_leader_selection=Selection(plan.text("selection")),
    )
    lab.start("c1", ProducerOptions())
    lab.phase("control" if plan.control else "elections")
    if not plan.control:
        await lab.written(messages // 3)
        await _bounce(lab, lab.brokers[1])
        await lab.written(2 * messages // 3)
        await _bounce(lab, lab.brokers[0])
    await lab.conclude()


async def _bounce(lab: ReplicationLab, broker: BrokerNode) -> None:
    """Let a broker go, wait until another leads, and start it again."""
    if lab.plan.text("leaves") == SHUTS_DOWN:
        await leave(lab, broker)
    else:
        await kill(lab, broker)
        await lab.unregistered(broker)
    await lab.in_sync(lab.plan.number("brokers") - 1)
    await restart(lab, broker)
    await lab.in_sync()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Kafka elects in the order of the assignment, but for 0.8.0 and for controlled shutdowns of 0.8.2, which take the
    ISR's.

    A broker that comes back joins the ISR once it has reached the high watermark. If the leader looks right after that,
    and the broker has not been at the end of the log yet, it is dropped (early_shrink): in 1 of 60 trials.
    """
    if plan.control:
        return usual_of(plan)
    selection = plan.text("selection")
    by_isr = selection == Selection.V0_8_0 or (plan.text("leaves") == SHUTS_DOWN and selection == Selection.V0_8_2)
    isr_order, assignment_order = (Outcome.CLEAN, Outcome.VIOLATED) if by_isr else (Outcome.VIOLATED, Outcome.CLEAN)
    return usual_of(plan, isr_order=isr_order, assignment_order=assignment_order, early_shrink=None)


def demands(plan: Plan) -> None:
    if plan.number("brokers") < 3:
        raise PlanError(
            f"brokers={plan.number('brokers')}: must be at least 3, so that the ISR has an order of its own"
        )
    if plan.text("leaves") == SHUTS_DOWN and plan.world == "containers":
        raise PlanError("leaves=shuts-down: not in the world containers, where only killed nodes are started again")


def real(plan: Plan) -> None:
    if plan.text("selection") != Selection.V2_1:
        raise PlanError(
            f"selection={plan.text('selection')}: real brokers are those of 3.9.1, which select as 2.1 does"
        )


SCENARIO = Scenario(
    name="isr-election",
    subject=REPLICATED,
    summary="the leader goes when the order of the ISR and that of the assignment differ",
    parameters=(
        Parameter("leaves", DIES, "", "how brokers go", choices=(DIES, SHUTS_DOWN)),
        Parameter("selection", Selection.V2_1.value, "", "lab.leader.selection", choices=tuple(Selection)),
        *COMMON,
    ),
    script=isr_election,
    expects=expects,
    claims=("E5a", "E5b"),
    demands=demands,
    real=real,
)
