"""Flapping (defect F3): one member comes and goes again and again, and the others get no work done.

Each time it comes and each time it goes, every member stops. A member that is gone between the listing
of the ids and the read of its znode costs the others an attempt, for which they gave up everything, and
a back-off in which no member consumes. In the control it comes once and stays.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.faults.storm import flap
from rebalance_lab.subjects.zk_group.lab import GroupLab
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, usual


async def flapping(lab: GroupLab) -> None:
    await lab.assemble()

    lab.phase("control" if lab.plan.control else "flapping")
    if lab.plan.control:
        await join(lab)
    else:
        plan = lab.plan
        await flap(lab, plan.number("times"), plan.number("up_ms"), plan.number("down_ms"))

    await lab.recover()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Lists differ while they change. The group settles when the flapping ends, unless a member has used up its
    retries by then."""
    if plan.control:
        return usual()
    return usual(disagreement=None, non_convergence=None, omission=None, stays_wrong=None, unowned_window=None)


SCENARIO = Scenario(
    name="flapping",
    subject=ZK_GROUP,
    summary="one member comes and goes again and again, and all others stop each time",
    parameters=(
        *common_parameters(members=5, rebalance_max_retries=10),
        Parameter("times", 5, "times", "how often it comes and goes", 1),
        Parameter("up_ms", 0, "ms", "how long it stays", 0),
        Parameter("down_ms", 0, "ms", "how long it is away", 0),
    ),
    script=flapping,
    expects=expects,
)
