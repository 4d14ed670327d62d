"""Growth: a topic gets more partitions in the middle of a rebalance (`ZKTopicPartitionChangeListener`,
0.8.2).

Members that read the topic before the change deal different partitions from those that read it after the
change. Each subscriber watches the topic's data, so all rebalance once more. In the control the topic
grows while all members are at rest.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.cluster import set_topic
from rebalance_lab.faults.join import join
from rebalance_lab.subjects.zk_group.lab import GroupLab
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, usual


async def growth(lab: GroupLab) -> None:
    topic, partitions = lab.plan.text("topic"), lab.plan.number("partitions") + lab.plan.number("more")
    await lab.assemble()

    lab.phase("the topic grows")
    if lab.plan.control:
        await set_topic(lab, topic, partitions)
        await lab.rest("grown")
        await join(lab)
    else:
        async with lab.tasks.scope("join and growth") as scope:
            scope.spawn(join(lab), "join")
            await lab.until(lambda: lab.members[-1].started, "the newcomer's start")
            await lab.sleep_ms(lab.plan.number("after_ms"))
            await set_topic(lab, topic, partitions)

    await lab.recover()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """For a moment some members may have seen both changes and others only one; in the end all is right."""
    return usual(disagreement=Outcome.CLEAN if plan.control else None)


SCENARIO = Scenario(
    name="growth",
    subject=ZK_GROUP,
    summary="a topic gets more partitions in the middle of a rebalance",
    parameters=(
        *common_parameters(),
        Parameter("more", 3, "partitions", "partitions that are added", 1),
        Parameter("after_ms", 10, "ms", "how long after the newcomer's start the topic grows", 0),
    ),
    script=growth,
    expects=expects,
)
