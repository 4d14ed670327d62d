"""The walk-through (claims Z3, Z5a, Z6): members come one by one, then go, as in the article.

Members 1, 2, 3 and 4 join on three partitions; then 1, 2 and 3 leave. After each step the article states
which member owns what. The same history shows the order of a member's first operations, and of release
and claim in every rebalance. With `--set filter=true` members subscribe by a white list, and watch the
list of topics, too. The control starts one member and lets time pass.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.faults.leave import leave
from rebalance_lab.history.rebalances import ChangeKind
from rebalance_lab.subjects.zk_group.lab import AS_PLANNED, GroupLab, MemberOptions
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, usual

#: The partitions of the living members after each step according to the article, in the order of their joins.
JOINS = ("0,1,2", "0,1|2", "0|1|2", "0|1|2|")
LEAVES = ("0|1|2", "0,1|2", "0,1,2")


async def walkthrough(lab: GroupLab) -> None:
    by_filter = MemberOptions(whitelist=lab.plan.text("topic"))
    options = by_filter if lab.plan.switch("filter") else AS_PLANNED
    await lab.prepare()
    for number, row in enumerate(JOINS[:1] if lab.plan.control else JOINS):
        lab.phase(f"member {number + 1} joins", change=ChangeKind.JOIN, members=number, published=published(lab, row))
        await join(lab, options)
        await lab.rest(f"member {number + 1} joined")
    if lab.plan.control:
        await lab.sleep_ms(lab.plan.number("session_timeout_ms"))
    else:
        for number, row in enumerate(LEAVES):
            living = len(JOINS) - number
            lab.phase(
                f"member {number + 1} leaves", change=ChangeKind.LEAVE, members=living, published=published(lab, row)
            )
            await leave(lab, lab.members[number])
            await lab.rest(f"member {number + 1} left")
    await lab.close()


def published(lab: GroupLab, row: str) -> list[list[tuple[str, int]]]:
    """A row as checks read it: the partitions that each living member owns."""
    topic = lab.plan.text("topic")
    return [[(topic, int(number)) for number in owned.split(",") if number] for owned in row.split("|")]


def expects(_plan: Plan) -> dict[str, Outcome | None]:
    """Changes at rest go well."""
    return usual()


SCENARIO = Scenario(
    name="walkthrough",
    subject=ZK_GROUP,
    summary="members join one by one and leave again; an article states the owners after each step",
    claims=("Z3", "Z5a", "Z6"),
    parameters=(
        *common_parameters(partitions=3, members=4),
        Parameter("filter", False, "", "members subscribe by a white list of the topic"),
    ),
    script=walkthrough,
    expects=expects,
)
