"""The rule (claim Z5b): N = ceil(P/C) partitions for each member, the i-th those from iN to (i+1)N-1.

A group of `members` settles on a topic of `partitions`. The article's rule gives each member its
partitions; so does range, as shipped. The two differ exactly if P >= C and 1 <= P mod C <= C-2. At the
default, 10 partitions over 3 members, the rule deals 4, 4, 2 and range 4, 3, 3. A trial in which they do
not differ says nothing about the rule. To see all of it: `sweep rule --set
partitions=1,2,3,4,5,6,7,8,9,10,11,12 --set members=1,2,3,4,5,6`. The control has one member, which owns
everything by either rule.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.subjects.zk_group.lab import GroupLab
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.scenario import Scenario, usual


async def rule(lab: GroupLab) -> None:
    members = 1 if lab.plan.control else lab.plan.number("members")
    await lab.prepare()
    for number in range(members):
        lab.phase(f"member {number + 1} joins", published=by_rule(lab, number + 1))
        await join(lab)
        await lab.rest(f"member {number + 1} joined")
    await lab.close()


def by_rule(lab: GroupLab, members: int) -> list[list[tuple[str, int]]]:
    """The partitions of each member by N = ceil(P/C), in the order of the members' ids."""
    partitions, topic = lab.plan.number("partitions"), lab.plan.text("topic")
    size = -(-partitions // members)
    owned = (range(index * size, min((index + 1) * size, partitions)) for index in range(members))
    return [[(topic, number) for number in numbers] for numbers in owned]


def expects(_plan: Plan) -> dict[str, Outcome | None]:
    """Both rules give every partition one owner."""
    return usual()


SCENARIO = Scenario(
    name="rule",
    subject=ZK_GROUP,
    summary="which partitions each member owns by N = ceil(P/C), and by range as shipped",
    claims=("Z5b",),
    parameters=common_parameters(partitions=10),
    script=rule,
    expects=expects,
)
