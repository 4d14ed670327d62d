"""A controller that owns `/controller` and does not run (KAFKA-13461; KAFKA-13407 reports the same).

`cause` says how a broker comes to that:

- `restart`: ZooKeeper is restarted, and all sessions survive. Brokers of Kafka 2.8.0 to 3.0.0 whose JAAS configuration
  has no section for ZooKeeper's client treat this like an expired session: when they are connected again, the
  controller resigns and stands for election. But its session goes on, and with it `/controller`, which names this
  broker. So it is not elected, and neither is any other broker. The cure, `keeps_reign`: the controller goes on as long
  as its session does.
- `lost-reply`: a broker is elected, and the connection breaks before the reply. It asks again, and is refused, because
  `/controller` is there. The cure, `reads_back`: the broker reads whose it is. All releases of Kafka that were read do.

When the leader dies after that, nobody elects another one. In the end an operator deletes `/controller`, and a
controller is elected that runs. In the control nothing fails.
"""

from __future__ import annotations

from enum import StrEnum

from rebalance_lab.checks.leaderless_partition import bound_us
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.lose_reply import lose_reply
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
from rebalance_lab.wire.paths import CONTROLLER
from rebalance_lab.world.zk.server_list import JAVA_WAITS

#: How often another election is tried until the broker wins one whose reply is to be lost.
TRIES = 100


class Cause(StrEnum):
    """How a broker comes to own `/controller` and not to run."""

    RESTART = "restart"
    LOST_REPLY = "lost-reply"


async def idle_controller(lab: ReplicationLab) -> None:
    plan, loses = lab.plan, _loses_reply(lab.plan)
    await lab.assemble(
        spare_controller=True,
        proxied=loses,
        lab_resigns_on_reconnect=not loses and not plan.switch("keeps_reign"),
        lab_election_read_back=not loses or plan.switch("reads_back"),
    )
    lab.start("c1", ProducerOptions())
    lab.phase("control" if plan.control else "the reply to an election is lost" if loses else "ZooKeeper restarts")
    await lab.written(plan.number("messages") // 2)
    if not plan.control:
        await (_reply_is_lost(lab) if loses else restart_servers(lab, plan.number("down_ms"), lab.controller))
        await lab.sleep_ms(plan.number("settle_ms"))
        await lab.rest("after the election" if loses else "after the restart")
        await _leader_dies(lab)
    await lab.conclude()


async def _reply_is_lost(lab: ReplicationLab) -> None:
    """Controllers are elected until a follower is, which does not get the reply."""
    _, (follower, *_) = await lab.leader_and_followers()
    lost = lab.tasks.flag("the reply is lost")

    async def lose() -> None:
        await lose_reply(lab, follower, created=CONTROLLER)
        lost.raise_()

    async with lab.tasks.scope("lost reply") as scope:
        scope.spawn(lose(), "the reply to an election")
        for _ in range(TRIES):
            if lost.raised:
                break
            await lab.controlled()
            await lab.depose(unless=lambda: lost.raised)
        await lost.wait()


def _loses_reply(plan: Plan) -> bool:
    return Cause(plan.text("cause")) is Cause.LOST_REPLY


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
    """A broker that has won the election does not control, and elects no leader. One that has never begun to control
    knows of no partition."""
    if plan.control or plan.switch("reads_back" if _loses_reply(plan) else "keeps_reign"):
        return usual_of(plan)
    waits = plan.number("settle_ms") * 1000 > bound_us(plan.world, plan.parameters)
    return usual_of(
        plan,
        two_controllers=Outcome.VIOLATED,
        unequal_views=Outcome.VIOLATED if _loses_reply(plan) else Outcome.CLEAN,
        leaderless_partition=Outcome.VIOLATED if waits else None,
    )


def demands(plan: Plan) -> None:
    """Raises PlanError unless there are brokers enough, and unless sessions survive."""
    spares_a_controller(plan)
    down_ms, session_timeout_ms = plan.number("down_ms"), plan.number("session_timeout_ms")
    if _loses_reply(plan):
        if plan.world == "containers":
            raise PlanError("cause=lost-reply: docker cannot lose a single reply; take --world processes")
        if session_timeout_ms < 2 * JAVA_WAITS.longest_ms:
            raise PlanError(
                f"session_timeout_ms={session_timeout_ms}: must be {2 * JAVA_WAITS.longest_ms} at least, so that a "
                "session survives the loss of a connection"
            )
    elif 2 * down_ms > session_timeout_ms:
        raise PlanError(
            f"down_ms={down_ms}: must be half of session_timeout_ms={session_timeout_ms} at most, so that sessions "
            "survive"
        )


def real(plan: Plan) -> None:
    if _loses_reply(plan):
        raise PlanError("cause=lost-reply: real brokers are those of 3.9.1, which read back; set it to restart")
    if not plan.switch("keeps_reign"):
        raise PlanError("keeps_reign=false: real brokers are those of 3.9.1, which have the cure; set it to true")


SCENARIO = Scenario(
    name="idle-controller",
    subject=REPLICATED,
    summary="a broker owns /controller, and does not control",
    parameters=(
        Parameter("cause", Cause.RESTART.value, "", "how it comes to that", choices=tuple(Cause)),
        Parameter("keeps_reign", False, "", "the cure of restart: a session that goes on changes nothing"),
        Parameter("reads_back", False, "", "the cure of lost-reply: a broker that is refused reads who is elected"),
        Parameter("down_ms", 1000, "ms", "how long ZooKeeper is down", 1, maximum=3_600_000),
        Parameter("settle_ms", 6000, "ms", "how long the cluster has after that", 0, maximum=3_600_000),
        *with_default(COMMON, min_isr=1, session_timeout_ms=18_000, tick_ms=2000),
    ),
    script=idle_controller,
    expects=expects,
    demands=demands,
    claims=("E1",),
    real=real,
)
