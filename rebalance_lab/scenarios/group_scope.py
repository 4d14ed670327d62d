"""The group's scope (claims Z14, Z15a): a group spans topics; and a member may name no group.

Two members read topic a, one reads topic b, all in one group. A second member of topic b joins. No
partition of topic a has to move, but the readers of a stop and take the same partitions again (defect
H2). Then two members come that name no group, one for each topic. A group named after the topic would
separate them. As described, both join the default group; as shipped, both are refused. Real members skip
this part: kafka.tools.ConsoleConsumer makes up a group if none is given, before the consumer can refuse.
In the control no further member comes.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.history.rebalances import ChangeKind
from rebalance_lab.subjects.zk_group.lab import GroupLab, MemberOptions
from rebalance_lab.subjects.zk_group.shares import topics_may_differ
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.scenario import Scenario, usual

READS_A = MemberOptions(streams={"a": 1})
READS_B = MemberOptions(streams={"b": 1})
NAME_NO_GROUP = (MemberOptions(streams={"a": 1}, group=""), MemberOptions(streams={"b": 1}, group=""))


async def group_scope(lab: GroupLab) -> None:
    partitions = lab.plan.number("partitions")
    await lab.prepare({"a": partitions, "b": partitions})
    lab.phase("joining")
    for options in (READS_A, READS_A, READS_B):
        await lab.start_member(options)
    await lab.rest("joined")

    if lab.plan.control:
        lab.phase("control")
        await lab.sleep_ms(lab.plan.number("session_timeout_ms"))
    else:
        lab.phase("a reader of b joins", change=ChangeKind.JOIN, members=3)
        await join(lab, READS_B)
        await lab.rest("a reader of b joined")
        if not lab.plan.has_real_nodes:
            lab.phase("two without a group come")
            for options in NAME_NO_GROUP:
                await lab.start_member(options)
    await lab.rest("recovered")
    await lab.close()


def expects(_plan: Plan) -> dict[str, Outcome | None]:
    """All members stop because of one, and then go on. A member that is refused harms no other."""
    return usual()


SCENARIO = Scenario(
    name="group-scope",
    subject=ZK_GROUP,
    summary="readers of one topic stop when a member joins that reads another; two members name no group",
    claims=("Z14", "Z15a"),
    parameters=common_parameters(members=3, topic="a"),
    script=group_scope,
    expects=expects,
    demands=topics_may_differ,
)
