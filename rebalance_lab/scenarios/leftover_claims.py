"""Leftover claims (defect F7): an error interrupts a member's claims, and the claims stay.

A member of two topics claims the first, and cannot claim the second: another program's ephemeral znode
stands where the owner znodes of that topic belong. A conflict would undo the claims; an error does not.
The owner znodes stay as long as the member's session, and it works on none of these partitions. A second
member meets them and gives up. When the obstacle has gone the group rebalances, and owner znodes outside
of any member's new share still stay. Cure: undo the claims on any error (`--set undo=true`). In the
control there is no obstacle.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.faults.obstacle import Obstacle
from rebalance_lab.subjects.zk_group.lab import GroupLab, MemberOptions
from rebalance_lab.subjects.zk_group.shares import topics_may_differ
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, usual
from zkconsumer.lab_settings import Cures, LabSettings


async def leftover_claims(lab: GroupLab) -> None:
    plan = lab.plan
    topics = {"t1": plan.number("partitions"), "t2": 1}
    undo = LabSettings(cures=Cures(undo_failed_claims=plan.switch("undo")))
    obstacle = Obstacle(lab, "t2")
    await lab.prepare(topics)
    lab.phase("joining")
    if not plan.control:
        await obstacle.begin()
    await lab.start_member(MemberOptions(streams={"t1": 1, "t2": 1}, lab=undo))
    await lab.rest("joined")
    lab.phase("another joins")
    await join(lab, MemberOptions(streams={"t1": 1}, lab=undo))
    await lab.rest("another joined")
    if not plan.control:
        lab.phase("the obstacle goes")
        await obstacle.end()
        await lab.rest("the obstacle gone")
    await lab.close()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Partitions that are claimed and not worked on block the second member. The obstacle itself leaves a partition
    without an owner, whether claims are undone or not."""
    if plan.control:
        return usual()
    return usual(
        non_convergence=Outcome.VIOLATED,
        omission=Outcome.VIOLATED,
        orphan_owner=Outcome.CLEAN if plan.switch("undo") else Outcome.VIOLATED,
        unowned_window=None,
    )


SCENARIO = Scenario(
    name="leftover-claims",
    subject=ZK_GROUP,
    summary="an error interrupts a member's claims; their owner znodes stay, and no member works on them",
    parameters=(
        *common_parameters(partitions=4, members=2),
        Parameter("undo", False, "", "an error undoes the claims made before it"),
    ),
    script=leftover_claims,
    expects=expects,
    demands=topics_may_differ,
)
