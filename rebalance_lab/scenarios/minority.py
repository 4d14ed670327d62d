"""The minority: one of three ZooKeeper servers is cut off from the others, with a member connected to
it.

The first member is connected to z1 only, the others to the other two servers. z1 is cut off from its
peers. The others end the first member's session, and its partitions are shared out. z1 still answers the
member for a while, then stops serving; the member keeps fetching, as 0.8 does. When z1 is back the
member learns that its session has expired. In the control nothing is cut.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.partition import partition
from rebalance_lab.subjects.zk_group.lab import GroupLab, MemberOptions
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, usual
from rebalance_lab.trials.stage import LAGGARD


async def minority(lab: GroupLab) -> None:
    cut_ms = lab.plan.number("cut_ms")
    quick = MemberOptions(servers=tuple(name for name in lab.servers.names if name != LAGGARD))
    await lab.assemble(MemberOptions(servers=(LAGGARD,)), quick)

    lab.phase("control" if lab.plan.control else "partitioned")
    if lab.plan.control:
        await lab.sleep_ms(cut_ms)
    else:
        await partition(lab, LAGGARD, cut_ms)

    await lab.recover()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """After the session has ended there are two owners. The registry is never wrong."""
    if plan.control:
        return usual()
    overlap = Outcome.VIOLATED if plan.number("members") > 1 else None
    return usual(belief_overlap=overlap, effect_overlap=overlap, zombie_overlap=overlap, unowned_window=None)


SCENARIO = Scenario(
    name="minority",
    subject=ZK_GROUP,
    summary="a ZooKeeper server is cut off from the others; the member connected to it works beside its successor",
    parameters=(
        *common_parameters(servers=3),
        Parameter("cut_ms", 9000, "ms", "how long z1 is cut off from the others", 1),
    ),
    script=minority,
    expects=expects,
    worlds=("containers",),
)
