"""The leave: a member shuts down cleanly, and the others take over at once.

Three members share a topic. The first is asked to leave. It closes its session itself, so its id and its
owner znodes are deleted without the wait that a crash costs (compare `crash`). In the control no member
leaves. Afterwards the group is watched for longer than a rebalance may take, to show that no partition
stays without an owner.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.leave import leave
from rebalance_lab.subjects.zk_group.lab import GroupLab
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, usual


async def clean_leave(lab: GroupLab) -> None:
    first, *_ = await lab.assemble()

    lab.phase("control" if lab.plan.control else "leaving")
    if not lab.plan.control:
        await leave(lab, first)

    lab.phase("recovery")
    await lab.rest("recovered")
    await lab.sleep_ms(lab.plan.number("watch_ms"))
    await lab.close()


def expects(_plan: Plan) -> dict[str, Outcome | None]:
    """A clean leave costs one rebalance."""
    return usual()


SCENARIO = Scenario(
    name="leave",
    subject=ZK_GROUP,
    summary="a member leaves cleanly; the others take its partitions at once",
    parameters=(
        *common_parameters(),
        Parameter("watch_ms", 3000, "ms", "how long the group is watched afterwards", 0),
    ),
    script=clean_leave,
    expects=expects,
)
