"""The rolling restart: every member is restarted once, cleanly, one after another (claims Z7a, Z7b).

One round of work for an operator causes 2n(n-1) notifications and n(2n-1) rebalances in a settled group
of n: each leave stops the n-1 others, each join stops all n. In the control no member is restarted.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.faults.leave import leave
from rebalance_lab.history.rebalances import ChangeKind
from rebalance_lab.subjects.zk_group.lab import GroupLab
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.scenario import Scenario, usual


async def rolling_restart(lab: GroupLab) -> None:
    members = lab.plan.number("members")
    running = await lab.assemble()

    if lab.plan.control:
        lab.phase("control")
        await lab.sleep_ms(lab.plan.number("session_timeout_ms"))
    for old in [] if lab.plan.control else running:
        lab.phase(f"{old.actor} leaves", change=ChangeKind.LEAVE, members=members)
        await leave(lab, old)
        await lab.rest(f"{old.actor} left")
        lab.phase(f"the successor of {old.actor} joins", change=ChangeKind.JOIN, members=members - 1)
        await join(lab)
        await lab.rest(f"the successor of {old.actor} joined")

    await lab.rest("recovered")
    await lab.close()


def expects(_plan: Plan) -> dict[str, Outcome | None]:
    """It costs a lot, and nothing stays wrong."""
    return usual()


SCENARIO = Scenario(
    name="rolling-restart",
    subject=ZK_GROUP,
    summary="every member is restarted once: 2n(n-1) notifications and n(2n-1) rebalances",
    parameters=common_parameters(rebalance_max_retries=10),
    script=rolling_restart,
    expects=expects,
)
