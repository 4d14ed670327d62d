"""Leftover claims (defect F7): an error in the middle of the claims, and nobody takes them back.

A member of two topics claims the first, and cannot claim the second: another program's ephemeral
znode stands where the owners of that topic belong. A conflict would be undone; an error is not. The
owners it made stay, as long as its session lives, and it works on none of them. A second member
meets them and gives up. When the obstacle has gone, the group rebalances, and owners that fell to
nobody's share in between still stand. Cure: undo whatever interrupts the claims
(`--set undo=true`). In the control nothing stands in the way.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.faults.obstacle import Obstacle
from rebalance_lab.trials.lab import Lab
from rebalance_lab.trials.members import MemberOptions
from rebalance_lab.trials.plan import Parameter, Plan, common_parameters
from rebalance_lab.trials.scenario import Scenario, register, usual
from rebalance_lab.trials.shares import topics_may_differ


async def leftover_claims(lab: Lab) -> None:
    plan = lab.plan
    topics = {"t1": plan.number("partitions"), "t2": 1}
    undo = {"undo.failed.claims": plan.text("undo").lower()}
    obstacle = Obstacle(lab, "t2")
    await lab.prepare(topics)
    lab.phase("joining")
    if not plan.control:
        await obstacle.begin()
    await lab.start_member(MemberOptions(streams={"t1": 1, "t2": 1}, properties=undo))
    await lab.rest("joined")
    lab.phase("another joins")
    await join(lab, MemberOptions(streams={"t1": 1}, properties=undo))
    await lab.rest("another joined")
    if not plan.control:
        lab.phase("the obstacle goes")
        await obstacle.end()
        await lab.rest("the obstacle gone")
    await lab.close()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """What is claimed and not worked on blocks the second. The obstacle itself keeps a partition
    without an owner, undone or not."""
    if plan.control:
        return usual()
    return usual(
        non_convergence=Outcome.VIOLATED,
        omission=Outcome.VIOLATED,
        orphan_owner=Outcome.CLEAN if plan.parameters["undo"] else Outcome.VIOLATED,
        unowned_window=None,
    )


SCENARIO = register(
    Scenario(
        name="leftover-claims",
        summary="an error among the claims leaves owners behind that nobody works for, and nobody deletes",
        claims=(),
        parameters=(
            *common_parameters(partitions=4, members=2),
            Parameter("undo", False, "", "an error undoes the claims made before it"),
        ),
        script=leftover_claims,
        expects=expects,
        demands=topics_may_differ,
    )
)
