"""The frozen ISR (KAFKA-2729): the controller changes the ISR and cannot tell the leader.

The controller has no replica. The link between it and the leader is cut, and the follower has a trouble of its own:

- It dies. The controller takes it out of the ISR, and the leader is not told. Whoever writes ISRs, the leader keeps the
  dead follower, and the high watermark waits for it until the cut ends. The cure, `move`: the controller is paused
  until its session has ended, and its successor tells the leader.
- Its link to the leader is cut as well, and nobody dies. A leader that writes its ISR itself (up to Kafka 2.6) needs no
  controller for that, and goes on alone. One that asks the controller (from 2.7 on, KIP-497) waits.

With `cut=false` only the follower has its trouble. In the control nothing fails.
"""

from __future__ import annotations

from rebalance_lab.broker.replication.isr_writes import CHECK_MS, QUIET_MS
from rebalance_lab.broker.replication.rules import IsrWriter
from rebalance_lab.checks.frozen_isr import bound_us
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.link import cut_link
from rebalance_lab.faults.pause import pause
from rebalance_lab.faults.restart import restart
from rebalance_lab.faults.silence import latest_end_ms
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    BrokerNode,
    ProducerOptions,
    ReplicationLab,
    spares_a_controller,
    with_default,
)
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario, only_ours

DIES, CUT_OFF = "dies", "cut-off"


async def frozen_isr(lab: ReplicationLab) -> None:
    plan = lab.plan
    await lab.assemble(spare_controller=True)
    lab.start("c1", ProducerOptions())
    lab.phase("control" if plan.control else "the controller and the leader part")
    if not plan.control:
        await lab.written(plan.number("messages") // 2)
        await _freeze(lab)
    await lab.conclude()


async def _freeze(lab: ReplicationLab) -> None:
    leader, (follower, *_) = await lab.leader_and_followers()
    controller = await lab.controlled()
    duration_ms = lab.plan.number("cut_ms")
    async with lab.tasks.scope("cuts") as scope:
        if lab.plan.switch("cut"):
            parted = lab.tasks.flag("the controller does not reach the leader")
            cut_off = cut_link(lab, leader, controller, duration_ms, in_place=parted)
            scope.spawn(cut_off, "leader and controller")
            await parted.wait()
        if lab.plan.text("follower") == CUT_OFF:
            scope.spawn(cut_link(lab, leader, follower, duration_ms), "leader and follower")
        else:
            scope.spawn(_die(lab, follower, controller), "the follower's death")
            scope.spawn(lab.sleep_ms(duration_ms), "the time of the cut")
    if follower.state.gone:
        await restart(lab, follower)


async def _die(lab: ReplicationLab, follower: BrokerNode, controller: BrokerNode) -> None:
    await kill(lab, follower)
    await lab.unregistered(follower)
    await lab.until(lambda: follower not in lab.isr, f"an ISR without {follower.actor}")
    if lab.plan.switch("move"):
        await pause(lab, controller, latest_end_ms(lab.plan) + 1)


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """The ISR is frozen for as long as nobody can tell the leader of the change: neither writer helps, only another
    controller does. If the follower lives, nobody but the leader wants a change."""
    frozen = plan.switch("cut") and plan.text("follower") == DIES and not plan.switch("move") and not plan.control
    return usual_of(plan, frozen_isr=Outcome.VIOLATED if frozen else Outcome.CLEAN)


def demands(plan: Plan) -> None:
    spares_a_controller(plan)
    if plan.number("min_isr") > 1:
        raise PlanError(f"min_isr={plan.number('min_isr')}: must be 1, because the leader is to write alone")
    if plan.text("follower") == CUT_OFF:
        _demands_of_cuts(plan)
        return
    expiry_ms = plan.number("session_timeout_ms") + 2 * plan.number("tick_ms")
    if plan.number("lag_ms") <= expiry_ms:
        raise PlanError(
            f"lag_ms={plan.number('lag_ms')}: must be above {expiry_ms}, so that the controller takes the follower out "
            "of the ISR before the leader does"
        )
    least_ms = expiry_ms + bound_us(plan.parameters) // 1000
    if plan.number("cut_ms") <= least_ms:
        raise PlanError(f"cut_ms={plan.number('cut_ms')}: must be above {least_ms}, so that the ISR is frozen for long")


def _demands_of_cuts(plan: Plan) -> None:
    if plan.switch("move") or not plan.switch("cut"):
        raise PlanError(
            "follower=cut-off: needs move=false and cut=true, because nobody but the leader changes the ISR"
        )
    reported_ms = plan.number("lag_ms") * 3 // 2 + CHECK_MS + QUIET_MS
    if plan.text("isr_writer") == IsrWriter.LEADER and plan.number("cut_ms") <= reported_ms:
        raise PlanError(
            f"cut_ms={plan.number('cut_ms')}: must be above {reported_ms}, because before that the controller has "
            "nothing to tell the leader, and the cut no effect"
        )


SCENARIO = Scenario(
    name="frozen-isr",
    subject=REPLICATED,
    summary="the controller changes the ISR and cannot reach the leader",
    parameters=(
        Parameter("follower", DIES, "", "what happens to the follower", choices=(DIES, CUT_OFF)),
        Parameter("cut", True, "", "cut the link between the controller and the leader"),
        Parameter("cut_ms", 9000, "ms", "how long cuts last, and a dead follower is away", 1, maximum=3_600_000),
        Parameter("move", False, "", "the cure: the controller is paused until another is elected"),
        *with_default(COMMON, min_isr=1, lag_ms=4000),
    ),
    script=frozen_isr,
    expects=expects,
    demands=demands,
    real=only_ours("it cuts or slows links, which the lab can do only between its own brokers"),
)
