"""An ISR that forgets its last member (Kafka up to 1.0): all replicas die, and come back while the controller sleeps.

The first of the assignment dies, then the others but one, which writes on alone and dies, too. Where the topic allows
unclean elections, a controller of that time takes even this one out of the ISR. When the controller wakes, all replicas
are back. It finds nobody in sync and lets the first of the assignment lead, and what that one lacks is lost, although
the one that has it is there. From 1.1 on controllers keep the last of the ISR (`selection=2.1`), and it leads. In the
control nothing fails.
"""

from __future__ import annotations

from controller.leader_election import Selection
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.pause import pause
from rebalance_lab.faults.restart import restart
from rebalance_lab.kernel import Flag
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    ProducerOptions,
    ReplicationLab,
    last_writes_alone,
    spares_a_controller,
    with_default,
)
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, only_ours


async def emptied_isr(lab: ReplicationLab) -> None:
    plan = lab.plan
    await lab.assemble(spare_controller=True, lab_leader_selection=Selection(plan.text("selection")))
    lab.start("c1", ProducerOptions())
    await lab.written(plan.number("messages") // 4)
    lab.phase("control" if plan.control else "all replicas die")
    if not plan.control:
        await _all_die_and_return(lab)
    await lab.conclude()


async def _all_die_and_return(lab: ReplicationLab) -> None:
    first, (*others, last) = await lab.leader_and_followers()
    replicas, controller = lab.isr, await lab.controlled()
    for each in (first, *others):
        await kill(lab, each)
    await lab.in_sync(1)
    await lab.written(lab.acknowledged + lab.plan.number("alone"))
    await kill(lab, last)
    await lab.leaderless()
    lab.phase("they return while the controller sleeps")
    asleep, back = Flag("the controller sleeps"), Flag("all replicas are back")
    async with lab.tasks.scope("the controller's sleep") as scope:
        scope.spawn(pause(lab, controller, back, asleep), "the controller's pause")
        await asleep.wait()
        for each in replicas:
            await restart(lab, each)
        await lab.registered_again(replicas)
        back.raise_()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """The ISR is empty, and what the last one wrote alone is lost, exactly if it is taken out of the ISR."""
    forgets = Selection(plan.text("selection")).empties_isrs and plan.switch("unclean") and not plan.control
    lost = Outcome.VIOLATED if forgets else Outcome.CLEAN
    return usual_of(plan, leader_outside_isr=lost, lost_write=lost, leader_completeness=lost)


def demands(plan: Plan) -> None:
    spares_a_controller(plan)
    last_writes_alone(plan)


SCENARIO = Scenario(
    name="emptied-isr",
    subject=REPLICATED,
    summary="the last replica dies and leaves the ISR; all return, and nobody knows who had everything",
    parameters=(
        Parameter(
            "selection", Selection.V0_8_2.value, "", "lab.leader.selection; 2.1 is the cure", choices=tuple(Selection)
        ),
        Parameter("alone", 20, "", "records that the last replica writes alone", 1, maximum=1_000_000),
        *with_default(COMMON, min_isr=1, unclean=True),
    ),
    script=emptied_isr,
    expects=expects,
    demands=demands,
    real=only_ours("brokers of 3.9.1 keep the last replica in the ISR"),
)
