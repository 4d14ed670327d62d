"""Mixed settings (defect S5): one member deals by range, another by round robin, forever.

Each computes its own share, so the shares collide: with four partitions the first wants 0 and 1, the
second 1 and 3. Both claim partition 1, and neither claims 2. Retries do not help; both use them up. The
cure is one rule for all (`--set second=range`), which is also the control. With few partitions or
several streams both rules may deal the same shares (one partition goes to the first member); then
nothing goes wrong.
"""

from __future__ import annotations

from rebalance_lab.assignors import ASSIGNORS
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.subjects.zk_group.lab import GroupLab, MemberOptions
from rebalance_lab.subjects.zk_group.shares import shares_of
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, usual


async def mixed_settings(lab: GroupLab) -> None:
    second = "range" if lab.plan.control else lab.plan.text("second")
    await lab.prepare()
    lab.phase("joining")
    await lab.start_member(MemberOptions(assignor="range"))
    await lab.rest("joined")
    lab.phase("another joins")
    await join(lab, MemberOptions(assignor=second))
    await lab.rest("another joined")
    await lab.close()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Two rules in one group leave a gap that no retry mends, unless the shares happen to fit."""
    first = shares_of(plan, members=2, rule="range")[0]
    second = shares_of(plan, members=2, rule="range" if plan.control else plan.text("second"))[1]
    if not first & second and len(first | second) == plan.number("partitions"):
        return usual()
    return usual(
        contradiction=Outcome.VIOLATED,
        non_convergence=Outcome.VIOLATED,
        omission=Outcome.VIOLATED,
        stays_wrong=Outcome.VIOLATED,
        unowned_window=Outcome.VIOLATED,
    )


SCENARIO = Scenario(
    name="mixed-settings",
    subject=ZK_GROUP,
    summary="one member uses range and another round robin: their shares overlap and leave a gap",
    parameters=(
        *common_parameters(partitions=4, members=2),
        Parameter(
            "second",
            "roundrobin",
            "",
            "the second member's partition.assignment.strategy",
            choices=tuple(sorted(ASSIGNORS)),
        ),
    ),
    script=mixed_settings,
    expects=expects,
)
