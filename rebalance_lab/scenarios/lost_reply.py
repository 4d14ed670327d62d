"""The lost reply: ZooKeeper made a member's owner znode, and the connection broke before it said so.

The member claims again, and must tell its own first success from somebody else's znode: the owner znode holds its own
thread id, so it counts as claimed (`ZkUtils.createEphemeralPathExpectConflict`, 0.8.2). A member joins meanwhile, so
that the victim has something to claim. In the control no reply is lost.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.faults.lose_reply import lose_reply
from rebalance_lab.trials.lab import Lab
from rebalance_lab.trials.members import MemberOptions
from rebalance_lab.trials.plan import Plan, common_parameters
from rebalance_lab.trials.scenario import Scenario, register, usual
from rebalance_lab.wire.paths import owners_path


async def lost_reply(lab: Lab) -> None:
    await lab.prepare()
    lab.phase("joining")
    victim = await lab.start_member(MemberOptions(proxied=True))
    await lab.start_members(lab.plan.number("members") - 1)
    await lab.rest("joined")

    lab.phase("control" if lab.plan.control else "a reply is lost")
    async with lab.tasks.scope("join and loss") as scope:
        if not lab.plan.control:
            scope.spawn(lose_reply(lab, victim, created=owners_path(lab.plan.text("group"), "")), "lost reply")
        scope.spawn(join(lab), "join")

    lab.phase("recovery")
    await lab.rest("recovered")
    await lab.close()


def expects(_plan: Plan) -> dict[str, Outcome | None]:
    """A reply costs time, not correctness."""
    return usual()


SCENARIO = register(
    Scenario(
        name="lost-reply",
        summary="the reply to a member's claim is lost after the server has made the owner znode",
        claims=(),
        parameters=common_parameters(),
        script=lost_reply,
        worlds=("simulated", "processes"),  # docker loses no single reply
        expects=expects,
    )
)
