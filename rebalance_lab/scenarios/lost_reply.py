"""The lost reply: ZooKeeper creates a member's owner znode, and the connection breaks before the reply.

The member claims again and meets a znode: it must find out whether that is its own first success or
another member's claim. The owner znode holds its own thread id, so it counts as claimed
(`ZkUtils.createEphemeralPathExpectConflict`, 0.8.2). A member joins meanwhile, so that the victim has
something to claim. In the control no reply is lost.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.faults.lose_reply import lose_reply
from rebalance_lab.subjects.zk_group.lab import GroupLab, MemberOptions
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Plan, PlanError
from rebalance_lab.trials.scenario import Scenario, usual
from rebalance_lab.wire.paths import owners_path
from rebalance_lab.world.zk.server_list import JAVA_WAITS


async def lost_reply(lab: GroupLab) -> None:
    victim, *_ = await lab.assemble(MemberOptions(proxied=True))

    lab.phase("control" if lab.plan.control else "a reply is lost")
    async with lab.tasks.scope("join and loss") as scope:
        if not lab.plan.control:
            scope.spawn(lose_reply(lab, victim, created=owners_path(lab.plan.text("group"), "")), "lost reply")
        scope.spawn(join(lab), "join")

    await lab.recover()


def demands(plan: Plan) -> None:
    """Raises PlanError unless the session survives the reconnect. The control loses no connection."""
    session_ms, reconnect_ms = plan.number("session_timeout_ms"), JAVA_WAITS.longest_ms
    if not plan.control and session_ms < reconnect_ms:
        raise PlanError(
            f"session_timeout_ms={session_ms}: the victim needs up to {reconnect_ms} ms to reconnect, and its session "
            f"would end; set session_timeout_ms to {reconnect_ms} or more"
        )


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """A lost reply costs time, not correctness. The victim's partitions wait while it reconnects, which may take
    longer than an ordinary rebalance with a short back-off."""
    budget_ms = plan.number("rebalance_max_retries") * plan.number("rebalance_backoff_ms")
    if plan.control or budget_ms >= JAVA_WAITS.longest_ms:
        return usual()
    return usual(unowned_window=None)


SCENARIO = Scenario(
    name="lost-reply",
    subject=ZK_GROUP,
    summary="the reply to a member's claim is lost after the server has created the owner znode",
    parameters=common_parameters(),
    script=lost_reply,
    worlds=("simulated", "processes"),  # docker cannot lose a single reply
    expects=expects,
    demands=demands,
)
