"""A bounce faster than the watch (KAFKA-1120): a broker dies and is back before the controller looks.

The controller, which has no replica, is paused for less than its session. Meanwhile a broker leaves and comes back.
When the controller reads the list of brokers again, the ids are the same. If it compares nothing else, as before Kafka
2.2, it takes the broker for one that stayed, and tells it nothing: the broker leads and fetches nothing. The cure,
`broker_epochs`: the czxid of the registration tells two lives of one broker apart. After that the broker is killed, for
long enough to be seen, and comes back. In the control nothing fails.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.leave import leave
from rebalance_lab.faults.pause import pause
from rebalance_lab.faults.restart import restart
from rebalance_lab.faults.silence import pause_keeps_session
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
from rebalance_lab.trials.scenario import Scenario

LEADER, FOLLOWER = "leader", "follower"


async def missed_bounce(lab: ReplicationLab) -> None:
    plan = lab.plan
    await lab.assemble(spare_controller=True, lab_broker_epochs=plan.switch("broker_epochs"))
    lab.start("c1", ProducerOptions())
    lab.phase("control" if plan.control else "a bounce")
    await lab.written(plan.number("messages") // 2)
    if not plan.control:
        victim = await _bounce(lab)
        await lab.sleep_ms(plan.number("settle_ms"))
        await lab.rest("after the bounce")
        lab.phase("a death that the controller sees")
        await kill(lab, victim)
        await lab.unregistered(victim)
        await restart(lab, victim)
    await lab.conclude()


async def _bounce(lab: ReplicationLab) -> BrokerNode:
    leader, followers = await lab.leader_and_followers()
    controller = await lab.controlled()
    victim = leader if lab.plan.text("who") == LEADER else followers[0]
    stopped = lab.tasks.flag("the controller stands still")
    async with lab.tasks.scope("bounce") as scope:
        scope.spawn(pause(lab, controller, lab.plan.number("pause_ms"), stopped), "pause of the controller")
        await stopped.wait()  # docker takes its time, and a controller that still runs may see the broker go
        await leave(lab, victim)
        await kill(lab, victim)  # its session is closed; now its process is surely gone, too
        await restart(lab, victim)
    return victim


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """A broker that nobody tells anything has no role, and it may have nothing to tell clients."""
    missed = not plan.switch("broker_epochs") and not plan.control
    stale_role, unequal_views = (Outcome.VIOLATED, None) if missed else (Outcome.CLEAN, Outcome.CLEAN)
    return usual_of(plan, stale_role=stale_role, unequal_views=unequal_views)


def demands(plan: Plan) -> None:
    spares_a_controller(plan)
    if not pause_keeps_session(plan, plan.number("pause_ms")):
        raise PlanError(
            f"pause_ms={plan.number('pause_ms')}: must be a third of session_timeout_ms at most, so that the "
            "controller keeps its session"
        )


def real(plan: Plan) -> None:
    if not plan.switch("broker_epochs"):
        raise PlanError("broker_epochs=false: real brokers are those of 3.9.1, which have epochs; set it to true")


SCENARIO = Scenario(
    name="missed-bounce",
    subject=REPLICATED,
    summary="a broker dies and is back before the controller looks",
    parameters=(
        Parameter("who", FOLLOWER, "", "who bounces", choices=(LEADER, FOLLOWER)),
        Parameter("broker_epochs", False, "", "the cure: the controller tells lives of one broker apart"),
        Parameter("pause_ms", 5000, "ms", "how long the controller is paused", 1, maximum=3_600_000),
        Parameter("settle_ms", 5000, "ms", "how long the cluster has after that", 0, maximum=3_600_000),
        *with_default(COMMON, min_isr=1, session_timeout_ms=18_000, tick_ms=2000),
    ),
    script=missed_bounce,
    expects=expects,
    demands=demands,
    real=real,
)
