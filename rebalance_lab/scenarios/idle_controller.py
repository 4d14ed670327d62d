"""A controller that owns `/controller` and does not run (KAFKA-13461; KAFKA-13407 reports the same).

ZooKeeper is restarted, and all sessions survive. Brokers of Kafka 2.8.0 to 3.0.0 whose JAAS configuration has no
section for ZooKeeper's client treat this like an expired session: when they are connected again, the controller
resigns and stands for election. But its session goes on, and with it `/controller`, which names this broker. So it is
not elected, and neither is any other broker. When the leader dies after that, nobody elects another one. The cure,
`keeps_reign`: the controller goes on as long as its session does. In the end an operator deletes `/controller`, and a
controller is elected that runs. In the control nothing fails.
"""

from __future__ import annotations

from rebalance_lab.checks.leaderless_partition import bound_us
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.restart import restart
from rebalance_lab.faults.server import restart_servers
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    ProducerOptions,
    ReplicationLab,
    spares_a_controller,
    with_default,
)
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario


async def idle_controller(lab: ReplicationLab) -> None:
    plan = lab.plan
    await lab.assemble(spare_controller=True, lab_resigns_on_reconnect=not plan.switch("keeps_reign"))
    lab.start("c1", ProducerOptions())
    lab.phase("control" if plan.control else "ZooKeeper restarts")
    await lab.written(plan.number("messages") // 2)
    if not plan.control:
        await restart_servers(lab, plan.number("down_ms"))
        await lab.sleep_ms(plan.number("settle_ms"))
        await lab.rest("after the restart")
        await _leader_dies(lab)
    await lab.conclude()


async def _leader_dies(lab: ReplicationLab) -> None:
    """And comes back once an operator has had a controller elected."""
    lab.phase("the leader dies")
    leader = lab.leader
    assert leader is not None, "no leader has died yet"
    await kill(lab, leader)
    await lab.unregistered(leader)
    await lab.sleep_ms(lab.plan.number("settle_ms"))
    lab.phase("an operator deletes /controller")
    await lab.depose()
    await lab.led()
    await restart(lab, leader)


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """After the restart a broker that has won the election does not control, and elects no leader."""
    if plan.switch("keeps_reign") or plan.control:
        return usual_of(plan)
    waits = plan.number("settle_ms") * 1000 > bound_us(plan.world, plan.parameters)
    return usual_of(
        plan,
        two_controllers=Outcome.VIOLATED,
        leaderless_partition=Outcome.VIOLATED if waits else None,
    )


def demands(plan: Plan) -> None:
    """Raises PlanError unless there are brokers enough, and unless sessions survive the restart."""
    spares_a_controller(plan)
    down_ms, session_timeout_ms = plan.number("down_ms"), plan.number("session_timeout_ms")
    if 2 * down_ms > session_timeout_ms:
        raise PlanError(
            f"down_ms={down_ms}: must be half of session_timeout_ms={session_timeout_ms} at most, so that sessions "
            "survive"
        )


def real(plan: Plan) -> None:
    if not plan.switch("keeps_reign"):
        raise PlanError("keeps_reign=false: real brokers are those of 3.9.1, which have the cure; set it to true")


SCENARIO = Scenario(
    name="idle-controller",
    subject=REPLICATED,
    summary="ZooKeeper restarts; the controller resigns, and still owns /controller",
    parameters=(
        Parameter("keeps_reign", False, "", "the cure: a session that goes on changes nothing"),
        Parameter("down_ms", 1000, "ms", "how long ZooKeeper is down", 1, maximum=3_600_000),
        Parameter("settle_ms", 6000, "ms", "how long the cluster has after that", 0, maximum=3_600_000),
        *with_default(COMMON, min_isr=1, session_timeout_ms=18_000, tick_ms=2000),
    ),
    script=idle_controller,
    expects=expects,
    demands=demands,
    real=real,
)
