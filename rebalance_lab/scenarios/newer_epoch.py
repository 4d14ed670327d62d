"""A broker refuses orders because it does not know yet that it is registered (KAFKA-9839).

The controller has no replica. The session of a broker expires while the broker lives, and the broker registers in its
next one. The reply to the registration is lost with the connection, so the controller hears of it before the broker
does, which has to connect again and ask. Meanwhile the controller tells the broker of all partitions and their leaders,
in the broker epoch of the new registration. Brokers of 2.2 to 2.4 know only their former one, and answer with an error.
No controller sends a request again that was answered. So the broker does not follow, or still believes that it leads,
and tells clients of the leaders that it knew before, until it is started anew, as here in the end, or something
changes. The cure, `accepts_newer`: a broker obeys orders for a later registration than it knows. In the control no
session expires.
"""

from __future__ import annotations

from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.checks.model import Outcome
from rebalance_lab.checks.unequal_views import bound_us
from rebalance_lab.faults.expire import expire
from rebalance_lab.faults.leave import leave
from rebalance_lab.faults.lose_reply import lose_reply
from rebalance_lab.faults.restart import restart
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    BrokerNode,
    ProducerOptions,
    ReplicationLab,
    number_of,
    spares_a_controller,
    with_default,
)
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, only_ours
from rebalance_lab.wire.paths import broker_path
from rebalance_lab.world.zk.server_list import JAVA_WAITS

LEADER, FOLLOWER = "leader", "follower"


async def newer_epoch(lab: ReplicationLab) -> None:
    plan = lab.plan
    accepts = plan.switch("accepts_newer")
    await lab.assemble(spare_controller=True, proxied=True, lab_accepts_newer_epochs=accepts)
    lab.start("c1", ProducerOptions())
    await lab.written(plan.number("messages") // 4)
    lab.phase("control" if plan.control else "a registration whose reply is lost")
    if not plan.control:
        leader, followers = await lab.leader_and_followers()
        victim = leader if plan.text("who") == LEADER else followers[0]
        await _registers(lab, victim)
        await lab.sleep_ms(plan.number("settle_ms"))
        await lab.rest("after the registration")
        if not accepts:
            lab.phase("an operator starts the broker anew")
            await lab.sleep_ms(1)  # or what it ends as it closes has the time of the rest
            await leave(lab, victim)
            await restart(lab, victim)
    await lab.conclude()


async def _registers(lab: ReplicationLab, victim: BrokerNode) -> None:
    """Its session expires, and it does not get the reply to the registration in the next one."""
    async with lab.tasks.scope("a session that expires") as scope:
        scope.spawn(expire(lab, victim), "the end of the session")
        await lose_reply(lab, victim, created=broker_path(number_of(victim.actor)))
    await lab.registered_again([victim])


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """The broker keeps the role and the metadata that it had before its session expired. While it was not registered,
    it left the ISR, with another leader epoch. Leaders that fence refuse a fetch in the former one, and the follower's
    fetcher ends."""
    if plan.control or plan.switch("accepts_newer"):
        return usual_of(plan)
    calm_us = bound_us(plan.parameters) + JAVA_WAITS.longest_ms * 1000  # a fault disturbs as long again as it lasts
    calm = plan.number("settle_ms") * 1000 > calm_us
    fenced = plan.text("who") == FOLLOWER and ReplicationRules(plan.rules).fences
    return usual_of(
        plan,
        stale_role=Outcome.VIOLATED,
        unequal_views=Outcome.VIOLATED if calm else None,
        stray_fetcher=Outcome.VIOLATED if fenced else Outcome.CLEAN,
    )


SCENARIO = Scenario(
    name="newer-epoch",
    subject=REPLICATED,
    summary="a broker gets orders before it knows that it is registered, and refuses them",
    parameters=(
        Parameter("who", FOLLOWER, "", "whose session expires", choices=(LEADER, FOLLOWER)),
        Parameter("accepts_newer", False, "", "the cure: brokers obey orders for a later registration than they know"),
        Parameter("settle_ms", 5000, "ms", "how long the cluster has after that", 0, maximum=3_600_000),
        *with_default(COMMON, min_isr=1, pause_us=20_000, session_timeout_ms=18_000, tick_ms=2000),
    ),
    script=newer_epoch,
    worlds=("simulated", "processes"),  # docker cannot lose a single reply
    expects=expects,
    demands=spares_a_controller,
    real=only_ours("those of 3.9.1 have the cure"),
)
