"""The storm: many members come while others go, all within a moment (`spread_ms`).

Every member's list is outdated by the time it is read. Attempts fail because of partitions that their
owners have not given up yet, and because of lists that differ. The group settles, or members use up
their retries. In the control one member joins. (`flapping` is about attempts that fail because members
vanished.)
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.faults.storm import storm
from rebalance_lab.subjects.zk_group.lab import GroupLab
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, usual


async def storm_over(lab: GroupLab) -> None:
    await lab.assemble()

    lab.phase("control" if lab.plan.control else "storm")
    if lab.plan.control:
        await join(lab)
    else:
        leaving = lab.members[: lab.plan.number("leaves")]
        await storm(lab, lab.plan.number("joins"), leaving, lab.plan.number("spread_ms"))

    await lab.recover()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Lists differ while they change, and retries may be used up. No member ever owns what another one owns."""
    if plan.control:
        return usual()
    return usual(disagreement=None, non_convergence=None, omission=None, stays_wrong=None, unowned_window=None)


SCENARIO = Scenario(
    name="storm",
    subject=ZK_GROUP,
    summary="many members come and go at almost the same time",
    parameters=(
        *common_parameters(members=5, partitions=12, rebalance_max_retries=10),
        Parameter("joins", 4, "members", "members that join", 0),
        Parameter("spread_ms", 100, "ms", "time between the first and the last that joins or leaves", 0),
        Parameter("leaves", 2, "members", "members that leave", 0),
    ),
    script=storm_over,
    expects=expects,
)
