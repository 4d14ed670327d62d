"""Unequal topics under round robin (defect F5): one new subscription stops the whole group.

Round robin requires that all members subscribe to the same topics with the same streams. A member with
one topic more joins, as in any rolling change of topics. From then on every attempt of every member
fails, after the member has given up what it owned. Cure: `--set assignor=range`. In the control the
newcomer reads the same topics as the others.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.subjects.zk_group.lab import GroupLab, MemberOptions
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.scenario import Scenario, usual


async def unequal_topics(lab: GroupLab) -> None:
    partitions, topic = lab.plan.number("partitions"), lab.plan.text("topic")
    await lab.prepare({topic: partitions, "another": partitions})
    lab.phase("joining")
    await lab.start_members(lab.plan.number("members"))
    await lab.rest("joined")
    lab.phase("a member with one topic more joins")
    more = {topic: 1} if lab.plan.control else {topic: 1, "another": 1}
    await join(lab, MemberOptions(streams=more))
    await lab.rest("it joined")
    await lab.close()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """No member owns anything any more, and nothing will change that."""
    if plan.control or plan.text("assignor") != "roundrobin":
        return usual()
    return usual(non_convergence=Outcome.VIOLATED, omission=Outcome.VIOLATED, unowned_window=Outcome.VIOLATED)


SCENARIO = Scenario(
    name="unequal-topics",
    subject=ZK_GROUP,
    summary="with round robin a member joins that reads one topic more, and the whole group stops",
    parameters=common_parameters(assignor="roundrobin"),
    script=unequal_topics,
    expects=expects,
)
