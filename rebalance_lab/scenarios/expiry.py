"""The expiry: the server ends a session whose client is alive and connected (`ZKSessionExpireListener`,
0.8.2).

All of the member's znodes are deleted at once. The others take its partitions while it keeps working,
until the rebalance of its new-session handler stops it. In the control no session is expired.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.expire import expire
from rebalance_lab.subjects.zk_group.lab import GroupLab
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.scenario import Scenario, usual


async def expiry(lab: GroupLab) -> None:
    victim, *_ = await lab.assemble()

    lab.phase("control" if lab.plan.control else "expired")
    if lab.plan.control:
        await lab.sleep_ms(lab.plan.number("session_timeout_ms"))
    else:
        await expire(lab, victim)

    await lab.recover()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Whether two members overlap depends on which is faster: the successor, or the notice of expiry."""
    if plan.control:
        return usual()
    return usual(belief_overlap=None, effect_overlap=None, zombie_overlap=None, disagreement=None, unowned_window=None)


SCENARIO = Scenario(
    name="expiry",
    subject=ZK_GROUP,
    summary="the server ends the session of a member that is alive and connected",
    parameters=common_parameters(),
    script=expiry,
    expects=expects,
)
